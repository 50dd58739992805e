"""What an installation consists of: package names and the suites that have them. Sizes are for telling the user beforehand."""

from __future__ import annotations

from dataclasses import dataclass

VERSION = "0.1.4"
"""The release of tilelang-ascend that is installed; every rule and workaround of fusion-plan was measured with it."""

PYTHON = "3.11"
"""The only Python that the release has wheels for."""

REQUIREMENTS = (f"tilelang-ascend=={VERSION}", "numpy>=1.23.5", "typing_extensions>=4.10")
"""What lowering imports; the release's other requirements belong to running on a device."""

PLATFORMS = ("manylinux2014_aarch64", "manylinux_2_17_aarch64", "manylinux_2_27_aarch64", "manylinux_2_28_aarch64")


@dataclass(frozen=True)
class DebianPart:
    """Packages of one Debian suite and architecture ("host": that of this machine)."""

    suite: str
    architecture: str
    packages: tuple[str, ...]


PYTHON_PART = DebianPart(
    "bookworm",
    "arm64",
    (
        "libbz2-1.0",
        "libcrypt1",
        "libexpat1",
        "libffi8",
        "liblzma5",
        "libpython3.11-minimal",
        "libpython3.11-stdlib",
        "libssl3",
        "libuuid1",
        "python3.11",
        "python3.11-minimal",
    ),
)
"""An aarch64 Python 3.11 and what it is linked with."""

LIBRARY_PART = DebianPart("trixie", "arm64", ("libc6", "libgcc-s1", "libgomp1", "libstdc++6", "zlib1g"))
"""Newer C and C++ libraries: the compiler needs GLIBCXX_3.4.32, which the suite of Python 3.11 lacks."""

EMULATOR_PART = DebianPart("trixie", "host", ("qemu-user",))
"""A statically linked user-mode emulator; its version 10 is about twice as fast here as 7.2."""

EMULATOR_PROGRAM = "usr/bin/qemu-aarch64"


@dataclass(frozen=True)
class Sizes:
    """Bytes downloaded and bytes kept on disk, rounded up."""

    download: int
    disk: int


MEGABYTE = 1_000_000
SIZES = {
    "wheels": Sizes(68 * MEGABYTE, 275 * MEGABYTE),
    "sysroot": Sizes(31 * MEGABYTE, 60 * MEGABYTE),
    "emulator": Sizes(81 * MEGABYTE, 17 * MEGABYTE),
    "check": Sizes(0, 10 * MEGABYTE),
}
"""Per step; the Debian steps include their package indexes."""
