"""Debian packages without root: apt-get with a private configuration, then dpkg -x. The machine's own apt state is only read."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

from fusion.errors import FusionError
from fusion.toolchain import commands
from fusion.toolchain.recipe import DebianPart

MIRROR_VARIABLE = "FUSION_PLAN_DEBIAN_MIRROR"
KEYRING_FOLDERS = ("/usr/share/keyrings", "/etc/apt/keyrings", "/etc/apt/trusted.gpg.d")
NETWORK = "check the network and the proxy settings of apt (Acquire::http::Proxy), then run the same command again: it resumes"
PROGRAMS = ("apt-get", "apt-config", "dpkg")


def require_programs() -> None:
    """Raise unless apt and dpkg are there; they are on Debian and its derivatives."""
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    if missing:
        raise FusionError(
            f"{', '.join(missing)} not found: the compiler's Python {_needed()} comes from Debian packages",
            remedy="run fusion-plan on Debian or Ubuntu, or on a machine where `import tilelang` (tilelang-ascend) works",
        )


def _needed() -> str:
    return "3.11 for aarch64"


class PrivateApt:
    """An apt of our own below `folder`, for one suite and architecture, with the network settings of the machine's apt."""

    def __init__(self, folder: Path, part: DebianPart) -> None:
        self.part = part
        self.architecture = host_architecture() if part.architecture == "host" else part.architecture
        self.folder = folder / f"{part.suite}-{self.architecture}"
        self.environment = {**os.environ, "APT_CONFIG": str(self.folder / "apt.conf"), "LC_ALL": "C.UTF-8"}

    def configure(self, mirror: str, keyrings: list[str]) -> None:
        for name in ("lists/partial", "cache/archives/partial", "empty"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        (self.folder / "status").touch()
        source = f"deb [signed-by={','.join(keyrings)}] {mirror} {self.part.suite} main\n"
        (self.folder / "sources.list").write_text(source, encoding="utf-8")
        (self.folder / "apt.conf").write_text(self._configuration() + _network_settings(), encoding="utf-8")

    def _configuration(self) -> str:
        """No part of the machine's configuration is read: its hooks would run on our updates."""
        here = self.folder
        values = {
            "Dir::State": f"{here}/",
            "Dir::State::Lists": f"{here}/lists/",
            "Dir::State::status": f"{here}/status",
            "Dir::Cache": f"{here}/cache/",
            "Dir::Cache::pkgcache": "",
            "Dir::Cache::srcpkgcache": "",
            "Dir::Etc::SourceList": f"{here}/sources.list",
            "Dir::Etc::SourceParts": f"{here}/empty",
            "Dir::Etc::Parts": f"{here}/empty",
            "Dir::Etc::Main": "/dev/null",
            "Dir::Etc::Preferences": "/dev/null",
            "Dir::Etc::PreferencesParts": f"{here}/empty",
            "APT::Architecture": self.architecture,
            "APT::Sandbox::User": "",
            "Acquire::Languages": "none",
            "Acquire::Retries": "2",
            "Debug::NoLocking": "1",
        }
        lines = [f'{name} "{value}";' for name, value in values.items()]
        return "\n".join([*lines, f'APT::Architectures {{ "{self.architecture}"; }};', ""])

    def update(self, tick: Callable[[], None]) -> None:
        what = f"package index of Debian {self.part.suite} ({self.architecture})"
        options = ("-o", "APT::Update::Error-Mode=any")
        commands.run(["apt-get", *options, "update"], what=what, remedy=NETWORK, environment=self.environment, tick=tick)

    def download(self, folder: Path, tick: Callable[[], None]) -> list[Path]:
        """The part's packages as files in `folder`; those already there and whole are not fetched again."""
        folder.mkdir(parents=True, exist_ok=True)
        names = list(self.part.packages)
        what = f"packages of Debian {self.part.suite} ({self.architecture})"
        commands.run(["apt-get", "download", *names], what=what, remedy=NETWORK, environment=self.environment, folder=folder, tick=tick)
        return sorted(folder.glob("*.deb"))


def unpack(packages: list[Path], folder: Path, tick: Callable[[], None] | None = None) -> None:
    """Unpack packages one over the other, later ones winning."""
    folder.mkdir(parents=True, exist_ok=True)
    for package in packages:
        remedy = "the disk may be full or the file damaged: run `fusion-plan toolchain remove`, then install again"
        commands.run(["dpkg", "-x", str(package), str(folder)], what=f"unpacking {package.name}", remedy=remedy, tick=tick)


def host_architecture() -> str:
    return commands.run(["dpkg", "--print-architecture"], what="dpkg", remedy="see the message above").strip()


def _network_settings() -> str:
    """Proxies, certificates and the like of the machine's apt, as configuration text."""
    dump = commands.run(["apt-config", "dump", "Acquire"], what="reading apt's configuration", remedy="run `apt-config dump`")
    kept = [line for line in dump.splitlines() if not re.match(r"Acquire::(IndexTargets|Languages|Retries|GzipIndexes)", line)]
    return "\n".join(kept) + "\n"


def mirrors(scratch: Path) -> list[str]:
    """Candidate archive addresses, likeliest first: the user's choice, else those that the machine's apt is configured with."""
    chosen = os.environ.get(MIRROR_VARIABLE)
    if chosen:
        return [chosen.rstrip("/")]
    scratch.mkdir(parents=True, exist_ok=True)
    (scratch / "partial").mkdir(exist_ok=True)
    options = ("-o", f"Dir::State::Lists={scratch}", "-o", "Debug::NoLocking=1")
    listing = commands.run(["apt-get", *options, "update", "--print-uris"], what="reading apt's sources", remedy="check /etc/apt")
    found = re.findall(r"'(\S+?)/dists/([^/']+)\S*'", listing)
    ranked = sorted(dict.fromkeys(found), key=lambda pair: _rank(*pair))
    return list(dict.fromkeys(address for address, _ in ranked))


def _rank(address: str, suite: str) -> tuple[bool, bool]:
    """Archives named after Debian first, security and update suites last."""
    return ("debian" not in address, "security" in suite or "security" in address or "-" in suite)


def keyrings() -> list[str]:
    """Files with the keys of the Debian archive; raises FusionError if there is none."""
    files = [path for folder in KEYRING_FOLDERS for path in sorted(Path(folder).glob("debian-archive-*")) if _is_keyring(path)]
    whole = [path for path in files if path.name.startswith("debian-archive-keyring.")]
    if not files:
        raise FusionError(
            "no keys of the Debian archive on this machine, so its packages cannot be verified",
            remedy="install the package debian-archive-keyring",
        )
    return [str(path) for path in (whole[:1] or files)]


def _is_keyring(path: Path) -> bool:
    return path.suffix in (".gpg", ".pgp", ".asc") and "removed" not in path.name


def open_suite(folder: Path, part: DebianPart, tick: Callable[[], None]) -> PrivateApt:
    """A private apt whose index is up to date, from the first configured archive that has the suite."""
    require_programs()
    apt = PrivateApt(folder, part)
    candidates = mirrors(folder / "sources")
    failures: list[str] = []
    for mirror in candidates:
        apt.configure(mirror, keyrings())
        try:
            apt.update(tick)
        except FusionError as error:
            failures.append(error.what)
            continue
        return apt
    raise FusionError(_no_archive(part, failures), remedy=f"{NETWORK}; or set {MIRROR_VARIABLE} to the address of a Debian archive")


def _no_archive(part: DebianPart, failures: list[str]) -> str:
    if not failures:
        return "apt has no package source configured"
    return f"no archive that apt is configured with gave Debian {part.suite} ({part.architecture}): {failures[0]}"
