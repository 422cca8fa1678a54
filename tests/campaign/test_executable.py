"""Executable bits by `.svc.yaml`: named when they would be lost, listed, and set where files are written."""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.campaign.conftest import Place
from tests.campaign.world import Machine
from tests.svc.conftest import ROOT


def script(place: Place, path: str, mode: int = 0o755) -> None:
    place.write(place.ann, path, "#!/bin/sh\necho ran\n")
    (place.ann.folder / path).chmod(mode)


def executable(machine: Machine) -> list[str]:
    found = [path for path in machine.files() if (machine.folder / path).stat().st_mode & 0o100]
    return sorted(found)


def test_a_first_push_names_what_loses_its_bit_and_the_list_keeps_it(place: Place) -> None:
    for path in ("run", "scripts/a.sh", "odd [1]*.sh"):
        script(place, path)
    script(place, "plain.txt", 0o644)
    place.write(place.ann, ".svc.yaml", "name: Notes\nexecutable: [run]\ndepends: [a/b]\n")
    pushed = place.ann.ok("push", "-m", "first")
    assert "2 files will not be executable elsewhere (odd [1]*.sh, scripts/a.sh)" in pushed.err
    place.ann.ok("repo", "executable", "--write")
    written = (place.ann.folder / ".svc.yaml").read_text()
    assert "name: Notes\n" in written
    assert "depends: [a/b]\n" in written
    assert place.ann.ok("repo", "executable", "--json", "unlisted").json()["unlisted"] == []
    place.ann.ok("push", "-m", "listed")
    bob = place.machine("bob")
    assert executable(bob) == ["odd [1]*.sh", "run", "scripts/a.sh"]
    assert "executable" not in place.ann.ok("push", "-m", "nothing").err


def test_a_later_push_names_new_files_that_lose_their_bit(place: Place) -> None:
    place.write(place.ann, "plain.txt", "x\n")
    place.ann.ok("push", "-m", "first")
    script(place, "run.sh")
    pushed = place.ann.ok("push", "-m", "second")
    assert "1 file will not be executable elsewhere (run.sh)" in pushed.err
    place.write(place.ann, "run.sh", "#!/bin/sh\necho again\n")
    assert "executable" not in place.ann.ok("push", "-m", "third").err


def test_pull_and_restore_set_the_bit(place: Place) -> None:
    script(place, "scripts/a.sh")
    place.ann.ok("push", "-m", "first")
    bob = place.machine("bob")
    assert executable(bob) == []
    place.write(place.ann, ".svc.yaml", 'executable: ["scripts/*", late]\n')
    place.ann.ok("push", "-m", "listed")
    bob.ok("pull")
    assert executable(bob) == ["scripts/a.sh"]
    script(place, "late")
    place.write(place.ann, "other", "x\n")
    place.ann.ok("push", "-m", "late")
    bob.ok("pull")
    assert executable(bob) == ["late", "scripts/a.sh"]
    (bob.folder / "late").unlink()
    bob.ok("restore", "late")
    assert executable(bob) == ["late", "scripts/a.sh"]
    assert bob.ok("repo", "status", "--json", "changed").json()["changed"] == []


def test_nothing_outside_of_the_branch_is_touched(place: Place) -> None:
    outside = place.base / "outside"
    outside.write_text("x\n")
    outside.chmod(0o644)
    bob = place.machine("bob")
    (bob.folder / "link").symlink_to(outside)
    place.write(bob, "mine", "mine\n")
    place.write(place.ann, ".svc.yaml", 'executable: ["../outside", "/../outside", "*", "**"]\n')
    place.write(place.ann, "a", "a\n")
    place.ann.ok("push", "-m", "first")
    bob.ok("pull", "--merge")
    assert outside.stat().st_mode & 0o777 == 0o644
    assert not (bob.folder / "mine").stat().st_mode & 0o100
    assert (bob.folder / "a").stat().st_mode & 0o100


def test_too_many_patterns_are_refused(place: Place) -> None:
    place.write(place.ann, ".svc.yaml", "executable:\n" + "".join(f"  - f{n}\n" for n in range(1001)))
    refused = place.ann.run("push", "-m", "first")
    assert (refused.code, "at most 1000 patterns" in refused.err) == (1, True), refused


def test_the_own_repository_works_when_it_is_cloned(place: Place) -> None:
    """Every file that git has as executable is so after a clone."""
    listed = subprocess.run(
        ["git", "ls-files", "-s"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    rows = [line.split(None, 3) for line in listed.splitlines()]
    programs = sorted(path for mode, _, _, path in rows if mode == "100755")
    for path in [*programs, ".svc.yaml"]:
        place.write(place.ann, path, Path(ROOT / path).read_bytes())
    place.ann.ok("push", "-m", "first")
    bob = place.machine("bob")
    assert "scripts/quickstart" in programs
    assert executable(bob) == programs


def _dies_at(where: str) -> Callable[[], None]:
    """For `before`: the command is killed when it calls this function of `svc.flows`, `module:name`."""

    def change() -> None:
        module, _, name = where.partition(":")

        def die(*_: object) -> None:
            os.kill(os.getpid(), signal.SIGKILL)

        setattr(importlib.import_module(f"svc.flows.{module}"), name, die)

    return change


def _listed_scripts(place: Place) -> list[str]:
    paths = [f"scripts/{n}.sh" for n in range(4)]
    for path in paths:
        script(place, path)
    place.write(place.ann, ".svc.yaml", 'executable: ["scripts/*"]\n')
    place.ann.ok("push", "-m", "first")
    return paths


@pytest.mark.parametrize("where", ["clone:mark", "clone:clear"])
def test_what_an_interrupted_clone_wrote_gets_its_bits_from_a_pull(place: Place, where: str) -> None:
    paths = _listed_scripts(place)
    bob = place.machine("bob", clone=False)
    words = ("repo", "clone", place.repo, str(bob.folder))
    killed = bob.run(*words, where=place.base, before=_dies_at(where))
    assert (killed.code, executable(bob)) == (-signal.SIGKILL, [])
    place.write(place.ann, "other", "x\n")
    place.ann.ok("push", "-m", "second")
    bob.ok("pull")
    assert executable(bob) == paths


def test_what_an_interrupted_pull_wrote_gets_its_bits_from_the_next(place: Place) -> None:
    place.write(place.ann, "plain.txt", "x\n")
    place.ann.ok("push", "-m", "nothing to run")
    bob = place.machine("bob")
    paths = _listed_scripts(place)
    assert bob.run("pull", before=_dies_at("pull:mark")).code == -signal.SIGKILL
    assert (executable(bob), set(bob.files()) >= set(paths)) == ([], True)
    bob.ok("pull")
    assert executable(bob) == paths


def test_a_dry_run_sets_no_bit(place: Place) -> None:
    script(place, "run")
    place.ann.ok("push", "-m", "first")
    bob = place.machine("bob")
    place.write(place.ann, ".svc.yaml", "executable: [run]\n")
    place.ann.ok("push", "-m", "listed")
    bob.ok("pull", "--dry-run")
    assert executable(bob) == []
