"""Issues and proposals are found by the words of their titles and texts."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

from relay.base.words import words

revision = "0024"
down_revision = "0023"

AT_ONCE = 500  # issues


def upgrade() -> None:
    made = op.create_table(
        "subject_word",
        sa.Column("repo_id", sa.String(), nullable=False),
        sa.Column("number", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("word", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(["repo_id"], ["repo.id"], name=op.f("fk_subject_word_repo_id")),
        sa.PrimaryKeyConstraint("repo_id", "number", "word", name=op.f("pk_subject_word")),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_subject_word_listed", "subject_word", ["repo_id", "word", "kind", "number", "state"])
    _fill(made)
    op.drop_column("subject", "folded_title")


def _fill(into: sa.Table) -> None:
    """A start that is killed begins again with none of this: the migration is one transaction."""
    columns: list[sa.ColumnClause[Any]] = [sa.column(name) for name in ("repo_id", "number", "kind", "state", "title", "body")]
    repo, number = columns[:2]
    rows = sa.select(*columns).select_from(sa.table("subject", *columns)).order_by(repo, number).limit(AT_ONCE)
    page = rows
    while page_rows := op.get_bind().execute(page).all():
        op.bulk_insert(
            into,
            [
                {"repo_id": one.repo_id, "number": one.number, "word": word, "kind": one.kind, "state": one.state}
                for one in page_rows
                for word in words(one.title, one.body)
            ],
        )
        page = rows.where(sa.tuple_(repo, number) > sa.tuple_(page_rows[-1].repo_id, page_rows[-1].number))
