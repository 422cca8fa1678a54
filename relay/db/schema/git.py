"""The table of the names that accounts have in git commits. A name stays as it was at the first export,
because the ids of git commits depend on it."""

from __future__ import annotations

from sqlalchemy import Column, String, Table, Text

from relay.db.schema.base import BY_KEY, metadata

# How an account is named in commits: as at the first export, since ids of commits depend on it. Neither a
# new handle nor another host changes it.
git_person = Table(
    "git_person",
    metadata,
    Column("account_id", String, primary_key=True),
    Column("person", Text, nullable=False),  # NAME <EMAIL>
    **BY_KEY,
)
