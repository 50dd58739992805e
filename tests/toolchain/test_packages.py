"""Debian packages and wheels: a private apt that follows the machine's settings, and errors that say what is missing."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import pytest

from fusion.errors import FusionError
from fusion.toolchain import apt, commands, recipe, wheels

LISTING = """\
'http://mirror.example/debian-security/dists/bookworm-security/InRelease' a_InRelease 0
'http://third.example/tools/dists/stable/InRelease' b_InRelease 0
'http://mirror.example/debian/dists/bookworm-updates/InRelease' c_InRelease 0
'http://mirror.example/debian/dists/bookworm/InRelease' d_InRelease 0
"""


def program(folder: Path, name: str, text: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text("#!/bin/sh\n" + text, encoding="utf-8")
    (folder / name).chmod(0o755)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine whose apt-get lists LISTING, updates only from mirrors in $GOOD, and logs its configuration."""
    folder = tmp_path / "bin"
    (tmp_path / "listing").write_text(LISTING, encoding="utf-8")
    update = 'grep -q "$GOOD" "$(dirname "$APT_CONFIG")/sources.list" && exit 0\necho "E: 404 Not Found"; exit 100'
    program(folder, "apt-get", f'case "$*" in *--print-uris*) cat {tmp_path}/listing ;; *update*) {update} ;; esac\n')
    program(folder, "apt-config", "echo 'Acquire::http::Proxy \"http://proxy.example:3128\";'; echo 'Acquire::Languages \"de\";'\n")
    program(folder, "dpkg", "echo riscv64\n")
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setenv("GOOD", "mirror.example/debian ")
    monkeypatch.delenv(apt.MIRROR_VARIABLE, raising=False)
    monkeypatch.setattr(apt, "keyrings", lambda: ["/keys/archive.gpg"])
    return tmp_path


def test_archives_come_from_apts_own_sources_likeliest_first(machine: Path) -> None:
    assert apt.mirrors(machine / "scratch") == [
        "http://mirror.example/debian",
        "http://mirror.example/debian-security",
        "http://third.example/tools",
    ]


def test_the_user_can_name_an_archive(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(apt.MIRROR_VARIABLE, "http://mine.example/debian/")
    assert apt.mirrors(machine / "scratch") == ["http://mine.example/debian"]


def test_the_private_apt_keeps_proxies_and_drops_hooks_and_parts(machine: Path) -> None:
    opened = apt.open_suite(machine / "apt", recipe.PYTHON_PART, lambda: None)
    text = (opened.folder / "apt.conf").read_text(encoding="utf-8")
    assert 'Acquire::http::Proxy "http://proxy.example:3128";' in text
    assert 'Acquire::Languages "none";' in text and '"de"' not in text
    assert f'Dir::Etc::Parts "{opened.folder}/empty";' in text and 'Dir::Etc::Main "/dev/null";' in text
    assert 'APT::Architecture "arm64";' in text
    source = (opened.folder / "sources.list").read_text(encoding="utf-8")
    assert source == "deb [signed-by=/keys/archive.gpg] http://mirror.example/debian bookworm main\n"


def test_the_emulator_is_for_this_machines_architecture(machine: Path) -> None:
    opened = apt.open_suite(machine / "apt", recipe.EMULATOR_PART, lambda: None)
    assert opened.architecture == "riscv64"


def test_an_archive_without_the_suite_is_passed_over(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOD", "third.example")
    opened = apt.open_suite(machine / "apt", recipe.PYTHON_PART, lambda: None)
    assert "third.example/tools" in (opened.folder / "sources.list").read_text(encoding="utf-8")


def test_no_archive_with_the_suite_says_which_and_what_to_do(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOD", "nowhere")
    with pytest.raises(FusionError, match=r"gave Debian bookworm \(arm64\).*404 Not Found") as caught:
        apt.open_suite(machine / "apt", recipe.PYTHON_PART, lambda: None)
    assert "resumes" in caught.value.remedy and apt.MIRROR_VARIABLE in caught.value.remedy


def test_no_source_at_all_is_said(machine: Path) -> None:
    (machine / "listing").write_text("", encoding="utf-8")
    with pytest.raises(FusionError, match="no package source configured"):
        apt.open_suite(machine / "apt", recipe.PYTHON_PART, lambda: None)


def test_a_machine_without_apt_is_told_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(FusionError, match="apt-get, apt-config, dpkg not found") as caught:
        apt.open_suite(tmp_path, recipe.PYTHON_PART, lambda: None)
    assert "Debian or Ubuntu" in caught.value.remedy


def test_without_the_archives_keys_nothing_is_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apt, "KEYRING_FOLDERS", (str(tmp_path),))
    with pytest.raises(FusionError, match="no keys of the Debian archive") as caught:
        apt.keyrings()
    assert "debian-archive-keyring" in caught.value.remedy


def test_the_whole_keyring_is_preferred_to_its_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apt, "KEYRING_FOLDERS", (str(tmp_path),))
    pieces = [tmp_path / f"debian-archive-{name}.gpg" for name in ("bookworm-stable", "trixie-stable")]
    for path in [*pieces, tmp_path / "debian-archive-removed-keys.gpg", tmp_path / "nodesource.gpg"]:
        path.touch()
    assert apt.keyrings() == [str(path) for path in pieces]
    (tmp_path / "debian-archive-keyring.gpg").touch()
    assert apt.keyrings() == [str(tmp_path / "debian-archive-keyring.gpg")]


def test_pip_of_this_python_first_then_of_the_path_then_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert wheels.pip()[1:] == ["-m", "pip"]
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(FusionError, match="no pip") as caught:
        wheels.pip()
    assert "ensurepip" in caught.value.remedy
    program(tmp_path, "pip", "exit 0\n")
    assert wheels.pip() == [str(tmp_path / "pip")]


def test_an_unreachable_index_is_an_error_that_says_it_resumes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"INDEX_URL": "http://127.0.0.1:9/simple", "EXTRA_INDEX_URL": "", "RETRIES": "0", "FIND_LINKS": ""}.items():
        monkeypatch.setenv(f"PIP_{name}", value)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    with pytest.raises(FusionError, match=r"downloading the compiler with pip: .*tilelang-ascend==0\.1\.4") as caught:
        wheels.download(tmp_path / "wheels", tmp_path / "scratch", lambda: None)
    assert "resumes" in caught.value.remedy


def test_a_failing_program_is_an_error_with_its_last_words() -> None:
    with pytest.raises(FusionError, match="the thing: E: broken") as caught:
        commands.run(["/bin/sh", "-c", "echo fine; echo 'E: broken' >&2; echo more; exit 1"], what="the thing", remedy="mend it")
    assert caught.value.remedy == "mend it"
    with pytest.raises(FusionError, match="the thing: cannot start no-such-program"):
        commands.run(["no-such-program"], what="the thing", remedy="")


def test_progress_is_told_while_a_program_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "POLL_SECONDS", 0.02)
    ticks: list[int] = []
    assert commands.run(["/bin/sh", "-c", "sleep 0.3; echo done"], what="", remedy="", tick=lambda: ticks.append(1)) == "done\n"
    assert len(ticks) >= 3
