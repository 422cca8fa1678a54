"""svc where a machine lacks what most have: a home folder, the current folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.svc.conftest import ROOT, Svc

AS_NOBODY = ["unshare", "--user", "--map-user=12345", "--map-group=12345"]


@pytest.mark.parametrize("words", [["repo", "view", "a/b"], ["login"]])
def test_a_user_without_a_home_is_told_what_to_set(words: list[str], node: str) -> None:
    """As `docker run -u 12345`, and OpenShift."""
    if not shutil.which("unshare") or subprocess.run([*AS_NOBODY, "true"], capture_output=True).returncode:
        pytest.skip("needs a name space of users")
    done = subprocess.run(
        [*AS_NOBODY, sys.executable, "-m", "svc", *words],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "SVC_SERVER": node},
        cwd="/",
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (1, ""), done
    assert done.stderr == (
        "svc: this user has no home folder; set HOME, or SVC_HOME to a folder for svc's files\n"
    )


@pytest.fixture
def gone(alice: Svc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Svc:
    """A shell whose folder was deleted."""
    assert alice("repo", "create", "app").code == 0
    folder = tmp_path / "gone"
    folder.mkdir()
    monkeypatch.chdir(folder)
    folder.rmdir()
    return alice


def test_a_folder_that_was_deleted_is_named_where_one_is_needed(gone: Svc, tmp_path: Path) -> None:
    for words in (
        ["status"],
        ["push", "-m", "x"],
        ["repo", "view"],
        ["repo", "clone", f"{os.environ['TEST_HANDLE']}/app"],
    ):
        told = gone(*words)
        assert (told.code, told.out) == (1, ""), (words, told)
        assert "the folder that you stand in does not exist any more" in told.err, words


def test_what_needs_no_folder_works_without_one(gone: Svc, tmp_path: Path) -> None:
    name = f"{os.environ['TEST_HANDLE']}/app"
    assert name in gone("repo", "list").out
    assert gone("repo", "view", name).code == 0
    assert gone("issue", "list", "-R", name).code == 0
    told = gone("repo", "clone", name, str(tmp_path / "copy"))
    assert (told.code, (tmp_path / "copy" / ".svc").is_dir()) == (0, True), told
