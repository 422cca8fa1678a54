"""Tables that only proposals use: the two branches of each proposal, versions, reviewers and reviews. `state`
is repeated in each table whose lists are filtered by it. The rest of a proposal is in the tables of
issues."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    LargeBinary,
    String,
    Table,
    Text,
)

from relay.db.schema.base import BY_KEY, at, metadata

proposal = Table(
    "proposal",
    metadata,
    Column("repo_id", ForeignKey("repo.id"), primary_key=True),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("state", String, nullable=False),  # open, closed, merged
    Column("draft", Boolean, nullable=False),
    Column("head_repo_id", String),  # None: this repository
    Column("head_id", String, nullable=False),  # of a branch, which may be deleted since
    Column("head", String, nullable=False),  # its name
    Column("base_id", String, nullable=False),
    Column("base", String, nullable=False),
    Column("version", BigInteger, nullable=False),  # the newest
    Column("head_seal", String, nullable=False),  # of the newest version
    Column("merged_seal", String),
    Index("ix_proposal_of_state", "repo_id", "state", "number"),
    Index("ix_proposal_of_head", "repo_id", "head", "state", "number"),
    Index("ix_proposal_of_base", "repo_id", "base", "state", "number"),
    Index("ix_proposal_of_draft", "repo_id", "draft", "state", "number"),
    Index("ix_proposal_of_seal", "repo_id", "head_seal", "state"),
    Index("ix_proposal_head_moves", "head_id", "state"),
    Index("ix_proposal_base_moves", "base_id", "state"),
    Index("ix_proposal_from_repo", "head_repo_id", "state"),
)

version = Table(
    "version",
    metadata,
    Column("repo_id", ForeignKey("repo.id"), primary_key=True),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("n", BigInteger, primary_key=True, autoincrement=False),
    Column("head", String, nullable=False),  # seal id
    Column("base", String, nullable=False),  # seal id: head of the base branch at that time
    Column("settled", Boolean, nullable=False),  # the two that follow are worked out
    Column("merge_base", String),
    Column("change_id", String),
    Column("by_id", ForeignKey("account.id"), nullable=False),
    at("created_at"),
    **BY_KEY,
)

# Whoever is asked for a review, or whose verdict stands.
reviewer = Table(
    "reviewer",
    metadata,
    Column("repo_id", ForeignKey("repo.id"), primary_key=True),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("account_id", ForeignKey("account.id"), primary_key=True),
    Column("state", String, nullable=False),  # of the proposal
    Column("requested", Boolean, nullable=False),
    Column("review_id", String),  # whose verdict stands
    Index("ix_reviewer_listed", "account_id", "repo_id", "state", "number"),
    **BY_KEY,
)

review = Table(
    "review",
    metadata,
    Column("id", String, primary_key=True),
    Column("repo_id", ForeignKey("repo.id"), nullable=False),
    Column("number", BigInteger, nullable=False),
    Column("account_id", ForeignKey("account.id"), nullable=False),
    Column("verdict", String, nullable=False),  # approve, request_changes, comment
    Column("body", Text, nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("seal_id", String, nullable=False),
    at("created_at"),
    at("dismissed_at", True),
    Index("ix_review_listed", "repo_id", "number", "created_at", "id"),
    Index("ix_review_posted", "account_id", "created_at"),
)

# A signed merge that lands when nothing blocks it. What was signed is a `prepare` for this purpose.
auto_merge = Table(
    "auto_merge",
    metadata,
    Column("repo_id", ForeignKey("repo.id"), primary_key=True),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("prepare_id", String, nullable=False),
    Column("account_id", ForeignKey("account.id"), nullable=False, index=True),
    Column("principal", Text, nullable=False),  # JSON: who asked, and under which session
    Column("body", Text, nullable=False),  # JSON: the request that finalizes
    Column("strategy", String, nullable=False),
    at("created_at"),
    **BY_KEY,
)

# The files that a merge of this head into this base would conflict in; none of other heads and bases.
merge_trial = Table(
    "merge_trial",
    metadata,
    Column("repo_id", ForeignKey("repo.id"), primary_key=True),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("head", String, nullable=False),  # seal id
    Column("base", String, nullable=False),  # seal id
    Column("conflicts", Text, nullable=False),  # JSON: paths
    **BY_KEY,
)

# Issues that merging closes, as the text of the proposal says.
closing = Table(
    "closing",
    metadata,
    Column("repo_id", ForeignKey("repo.id"), primary_key=True),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("issue", BigInteger, primary_key=True, autoincrement=False),
    **BY_KEY,
)

# A thread on lines. What it says are rows of `comment`. `at_…`: where its lines were found last;
# `carried_to`: the seal in which they were looked for last.
thread = Table(
    "thread",
    metadata,
    Column("id", String, primary_key=True),
    Column("repo_id", ForeignKey("repo.id"), nullable=False),
    Column("number", BigInteger, nullable=False),
    Column("author_id", ForeignKey("account.id"), nullable=False),
    Column("path", String, nullable=False),
    Column("side", String, nullable=False),  # old, new
    Column("first_line", BigInteger, nullable=False),
    Column("last_line", BigInteger, nullable=False),
    Column("seal_id", String, nullable=False),  # the head that was looked at
    Column("quote", LargeBinary, nullable=False),  # digest of the lines
    Column("state", String, nullable=False),  # open, resolved
    Column("draft", Boolean, nullable=False),  # it waits for the author's review
    Column("suggestion", Text),
    Column("applied_seal", String),
    Column("at_seal", String, nullable=False),
    Column("at_path", String, nullable=False),
    Column("at_from", BigInteger, nullable=False),  # bytes
    Column("at_to", BigInteger, nullable=False),
    Column("at_first", BigInteger, nullable=False),  # lines
    Column("at_last", BigInteger, nullable=False),
    Column("how", String, nullable=False),  # same, moved, edited
    Column("carried_to", String, nullable=False),
    at("created_at"),
    at("updated_at"),
    Index("ix_thread_listed", "repo_id", "number", "created_at", "id"),
    Index("ix_thread_of_state", "repo_id", "number", "draft", "state"),
)
