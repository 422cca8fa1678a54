"""Lists of proposals walk the index of what they are filtered by, in its order."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine

from relay.db.collaboration import issue as issues
from relay.db.collaboration import proposal as rows
from relay.db.engine.sqlite import _expand, compile_statement
from relay.db.schema.base import metadata

LEADING = {
    "state": "ix_proposal_of_state (repo_id=? AND state=?",
    "head state": "ix_proposal_of_head (repo_id=? AND head=? AND state=?",
    "base state": "ix_proposal_of_base (repo_id=? AND base=? AND state=?",
    "draft state": "ix_proposal_of_draft (repo_id=? AND draft=? AND state=?",
    "author state": "ix_subject_of_author (repo_id=? AND author_id=? AND kind=? AND state=?",
    "reviewer state": "ix_reviewer_listed (account_id=? AND repo_id=? AND state=?",
    "label state": "ix_subject_label_listed (repo_id=? AND folded=? AND kind=? AND state=?",
    "label author state": "ix_subject_label_listed (repo_id=? AND folded=? AND kind=? AND state=?",
}

# Statements for which an index of all open proposals is there too.
NARROW = {
    "SAME": "ix_proposal_head_moves (head_id=? AND state=?)",
    "OPEN_OF_SEAL": "ix_proposal_of_seal (repo_id=? AND head_seal=? AND state=?)",
    "ANY_OPEN_OF_BASE": "ix_proposal_base_moves (base_id=? AND state=?)",
}


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> sqlite3.Connection:
    file = Path(tmp_path_factory.mktemp("plans")) / "empty.db"
    engine = create_engine(f"sqlite:///{file}")
    metadata.create_all(engine)
    engine.dispose()
    return sqlite3.connect(file)


@pytest.mark.parametrize("filters", LEADING)
@pytest.mark.parametrize("page", ["first", "next"])
def test_a_list_walks_its_index(database: sqlite3.Connection, filters: str, page: str) -> None:
    form = compile_statement(getattr(rows.keyset_of(frozenset(filters.split())), page))
    values = [None] * form.sql.count("?")
    steps = [row[3] for row in database.execute(f"EXPLAIN QUERY PLAN {form.sql}", values)]
    walked = next(step for step in steps if "account_1" not in step)
    behind = " AND number<?)" if page == "next" else ")"
    assert walked.endswith(LEADING[filters] + behind), steps
    assert not any("TEMP B-TREE" in step for step in steps), steps


@pytest.mark.parametrize("lead", ["author", "label"])
@pytest.mark.parametrize("of", [rows, issues])
def test_the_rarest_filter_leads(database: sqlite3.Connection, of: Any, lead: str) -> None:
    form = compile_statement(of.keyset_of(frozenset({"label", "author", "state"}), lead).first)
    steps = [
        row[3] for row in database.execute(f"EXPLAIN QUERY PLAN {form.sql}", [None] * form.sql.count("?"))
    ]
    walked = next(step for step in steps if "account_1" not in step)
    assert walked.endswith(LEADING[f"{lead} state"] + ")"), steps
    assert not any("TEMP B-TREE" in step for step in steps), steps


@pytest.mark.parametrize("of", [rows, issues])
def test_what_a_filter_has_is_counted_in_its_index(database: sqlite3.Connection, of: Any) -> None:
    for name in of.LEADERS:
        form = compile_statement(of.count_statement(name, True))
        steps = [
            row[3] for row in database.execute(f"EXPLAIN QUERY PLAN {form.sql}", [None] * form.sql.count("?"))
        ]
        assert any("SEARCH" in step and "INDEX ix_" in step for step in steps), (name, steps)


def test_what_a_page_depends_on_is_found_by_its_branches(database: sqlite3.Connection) -> None:
    """Not by walking every open proposal of the repository for each row of the page."""
    ((sql, values),) = _expand(rows.DEPENDS, {"of_repo": "r", "numbers": [1, 2, 3]})
    steps = [row[3] for row in database.execute(f"EXPLAIN QUERY PLAN {sql}", values)]
    assert any("lower USING INDEX ix_proposal_head_moves (head_id=? AND state=?" in step for step in steps), (
        steps
    )


@pytest.mark.parametrize("name", NARROW)
def test_a_statement_about_few_does_not_walk_all_open_proposals(
    database: sqlite3.Connection, name: str
) -> None:
    sql = compile_statement(getattr(rows, name)).sql
    steps = [row[3] for row in database.execute(f"EXPLAIN QUERY PLAN {sql}", [None] * sql.count("?"))]
    assert any(step.endswith(NARROW[name]) for step in steps), steps
    assert not any(step.endswith("ix_proposal_of_state (repo_id=? AND state=?)") for step in steps), steps
