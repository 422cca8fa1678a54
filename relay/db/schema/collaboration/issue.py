"""Tables of issues and reports. Proposals are numbered together with issues. They also use the same tables
for everything that belongs to a number: labels, people, comments, reactions. `kind` and `state` are repeated
in the tables whose lists are filtered by them."""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, ForeignKey, Index, String, Table, Text

from relay.db.schema.base import BY_KEY, at, metadata

numbering = Table(
    "numbering",
    metadata,
    Column("repo_id", ForeignKey("repo.id"), primary_key=True),
    Column("last", BigInteger, nullable=False),  # the number that was given last
    **BY_KEY,
)

subject = Table(
    "subject",
    metadata,
    Column("repo_id", ForeignKey("repo.id"), primary_key=True),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("kind", String, nullable=False),  # issue
    Column("state", String, nullable=False),  # open, closed
    Column("state_reason", String),  # completed, not_planned
    Column("title", Text, nullable=False),
    Column("body", Text, nullable=False),
    Column("author_id", ForeignKey("account.id"), nullable=False),
    Column("comments", BigInteger, nullable=False),
    at("created_at"),
    at("updated_at"),
    at("closed_at", True),
    Index("ix_subject_of_state", "repo_id", "kind", "state", "number"),
    Index("ix_subject_of_author", "repo_id", "author_id", "kind", "state", "number"),
    Index("ix_subject_posted", "author_id", "created_at"),
)

subject_label = Table(
    "subject_label",
    metadata,
    Column("repo_id", ForeignKey("repo.id"), primary_key=True),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("folded", String, primary_key=True),  # of `label`
    Column("kind", String, nullable=False),
    Column("state", String, nullable=False),
    Index("ix_subject_label_listed", "repo_id", "folded", "kind", "state", "number"),
    **BY_KEY,
)

# The index of words in titles and texts.
subject_word = Table(
    "subject_word",
    metadata,
    Column("repo_id", ForeignKey("repo.id"), primary_key=True),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("word", String, primary_key=True),
    Column("kind", String, nullable=False),
    Column("state", String, nullable=False),
    Index("ix_subject_word_listed", "repo_id", "word", "kind", "number", "state"),
    **BY_KEY,
)

# Who takes part in an issue.
part = Table(
    "part",
    metadata,
    Column("repo_id", ForeignKey("repo.id"), primary_key=True),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("account_id", ForeignKey("account.id"), primary_key=True),
    Column("kind", String, nullable=False),
    Column("state", String, nullable=False),
    Column("posted", Boolean, nullable=False),  # opened it, or commented on it
    Column("assigned", Boolean, nullable=False),
    # With all that a list asks of it: SQLite, which keeps no statistics here, walks the key otherwise.
    Index("ix_part_listed", "account_id", "repo_id", "kind", "state", "number", "assigned", "posted"),
    **BY_KEY,
)

comment = Table(
    "comment",
    metadata,
    Column("id", String, primary_key=True),
    Column("repo_id", ForeignKey("repo.id"), nullable=False),
    Column("number", BigInteger, nullable=False),
    Column("author_id", ForeignKey("account.id"), nullable=False),
    Column("body", Text, nullable=False),  # empty once it is deleted
    at("created_at"),
    at("updated_at"),
    at("deleted_at", True),
    Column("thread_id", String),  # None: on the issue or proposal itself
    Column("draft", Boolean, nullable=False, default=False),  # it waits for its author's review
    Column("review_id", String),  # with which it went out
    Index("ix_comment_listed", "repo_id", "number", "created_at", "id"),
    Index("ix_comment_of_thread", "thread_id", "created_at", "id"),
    Index("ix_comment_of_review", "review_id"),
    Index("ix_comment_posted", "author_id", "created_at"),
)

reaction = Table(
    "reaction",
    metadata,
    Column("repo_id", ForeignKey("repo.id"), primary_key=True),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("comment_id", String, primary_key=True),  # empty: on the issue itself
    Column("name", String, primary_key=True),
    Column("account_id", ForeignKey("account.id"), primary_key=True),
    **BY_KEY,
)

# What somebody tells the owner in confidence.
report = Table(
    "report",
    metadata,
    Column("id", String, primary_key=True),  # in the order of creation
    Column("repo_id", ForeignKey("repo.id"), nullable=False),
    Column("title", Text, nullable=False),
    Column("body", Text, nullable=False),
    Column("severity", String, nullable=False),
    Column("state", String, nullable=False),  # new, triaged, published, dismissed
    Column("advisory_id", String),  # what was published of it
    Column("reporter_id", ForeignKey("account.id"), nullable=False),
    at("created_at"),
    at("decided_at", True),
    Index("ix_report_listed", "repo_id", "id"),
    Index("ix_report_of_state", "repo_id", "state", "id"),
    Index("ix_report_posted", "reporter_id", "created_at"),
)
