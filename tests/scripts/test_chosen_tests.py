"""Which tests a change runs: those that it can reach, the nearest first."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from scripts import chosen_tests
from scripts.chosen_tests import ALWAYS, BUDGET, MARK, ROOT
from tests import schedule

TESTS = chosen_tests.test_files(ROOT)


def chosen(*changed: str) -> list[str]:
    return chosen_tests.choose(changed, chosen_tests.distances(changed, TESTS)).files


@pytest.mark.parametrize(
    ("changed", "test"),
    [
        ("localstore/core/lane/crdt.py", "tests/localstore/core/lane/test_crdt.py"),
        ("localstore/sync/compose.py", "tests/localstore/sync/test_uncarried.py"),
        ("svc/cmd/label/label.py", "tests/relay/domain/discussion/test_label.py"),
        ("relay/domain/repository/repo.py", "tests/relay/domain/repository/test_repo.py"),
        ("tui/text.py", "tests/tui/code/test_overview.py"),
        ("llm/guard.py", "tests/llm/test_api.py"),
        ("tests/transcripts/issues.md", "tests/svc/test_transcripts.py"),
        ("docs/guide/live.md", "tests/test_guide_runs.py"),
        ("pyproject.toml", "tests/localstore/test_home.py"),
    ],
)
def test_a_change_runs_the_tests_that_it_can_reach(changed: str, test: str) -> None:
    assert test in chosen(changed)


def test_a_file_of_tests_that_changed_is_run_whatever_it_costs() -> None:
    slowest = max(schedule.SECONDS, key=schedule.seconds)
    files = chosen(slowest, "relay/domain/repository/repo.py", "svc/flows/push.py")
    assert slowest in files
    assert sum(map(schedule.seconds, files)) <= BUDGET + schedule.seconds(slowest) + 60


def test_what_can_be_reached_and_is_not_run_is_counted() -> None:
    changed = ["localstore/core/errors.py"]  # all of svc leans on it
    choice = chosen_tests.choose(changed, chosen_tests.distances(changed, TESTS))
    assert choice.left
    assert set(ALWAYS) <= set(choice.files)
    assert not set(choice.files) & set(choice.left)


def test_a_change_that_nothing_reads_runs_the_checks_of_the_house_alone() -> None:
    assert chosen("editors/neovim/README.txt") == [*ALWAYS, "tests/editors/test_neovim.py"]


def test_changes_are_counted_from_the_mark_and_there_is_none_in_a_fresh_clone(tmp_path: Path) -> None:
    def git(*words: str) -> None:
        who = ("-c", "user.name=a", "-c", "user.email=a@localhost")
        subprocess.run(["git", *who, *words], cwd=tmp_path, check=True, capture_output=True)

    assert chosen_tests.changed_files(tmp_path) is None
    git("init", "-q")
    (tmp_path / "a.py").write_text("1\n")
    (tmp_path / "b.py").write_text("1\n")
    git("add", ".")
    git("commit", "-qm", "First")
    assert chosen_tests.changed_files(tmp_path) is None
    git("update-ref", MARK, "HEAD")
    assert chosen_tests.changed_files(tmp_path) == []
    (tmp_path / "a.py").write_text("2\n")
    git("commit", "-qam", "Second")
    (tmp_path / "b.py").write_text("2\n")
    (tmp_path / "new ü.py").write_text("1\n")
    assert chosen_tests.changed_files(tmp_path) == ["a.py", "b.py", "new ü.py"]
