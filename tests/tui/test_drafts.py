"""Drafts: one file for each, in their folder alone, readable by their owner alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tui.drafts import Drafts, name_draft


@pytest.mark.parametrize(
    "repo_id", ["01JB", "../../escaped", "/tmp/escaped", "a/b", "..", "", "x" * 5000, "\ud800", "a\0b"]
)
def test_a_server_that_names_a_repository_strangely_reaches_no_other_folder(
    repo_id: str, tmp_path: Path
) -> None:
    drafts, other = Drafts(tmp_path / "home" / "drafts"), name_draft(repo_id, 2, "verdict")
    drafts.keep(name_draft(repo_id, 1), "one")
    drafts.keep(other, "two")
    files = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert {file.parent for file in files} == {tmp_path / "home" / "drafts"}
    assert [file.stat().st_mode & 0o777 for file in files] == [0o600, 0o600]
    assert (drafts.read(name_draft(repo_id, 1)), drafts.read(other)) == ("one", "two")
    drafts.keep(other, " ")
    assert (drafts.read(name_draft(repo_id, 1)), drafts.read(other)) == ("one", "")
