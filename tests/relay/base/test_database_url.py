"""Which database a URL names, and what comes of a password told apart from it."""

from __future__ import annotations

from pathlib import Path

import pytest

from relay.base import database_url
from relay.base.environment import StartRefused


@pytest.mark.parametrize(
    "wrong",
    [
        "",
        "relay.db",
        "sqlite://relay.db",
        "sqlite:///",
        "sqlite:///a?mode=ro",
        "mysql://db/relay",
        "postgresql://db",
        "postgresql://db/",
        "postgresql://db:port/relay",
        "postgresql://[db/relay",
    ],
)
def test_what_names_no_database_is_refused(wrong):
    with pytest.raises(StartRefused, match="not of the form"):
        database_url.check(wrong)


def test_the_two_kinds():
    assert database_url.sqlite_path(database_url.check("sqlite:////var/relay.db")) == Path("/var/relay.db")
    for good in ("postgresql://relay@db/relay", "postgres:///relay?host=/run/postgresql"):
        assert database_url.is_postgres(database_url.check(good))


@pytest.mark.parametrize(
    ("given", "whole"),
    [
        ("postgresql://relay@db:5433/relay?x=1", "postgresql://relay:p%40%2F%25@db:5433/relay?x=1"),
        ("postgresql://re%40lay@db/relay", "postgresql://re%40lay:p%40%2F%25@db/relay"),
        ("postgresql://relay:own@db/relay", "postgresql://relay:own@db/relay"),
        ("postgresql:///relay", "postgresql:///relay"),
        ("sqlite:///relay.db", "sqlite:///relay.db"),
    ],
)
def test_a_password_told_apart_is_put_in_where_none_is(given, whole):
    assert database_url.with_password(given, "p@/%") == whole
    assert database_url.with_password(given, None) == given
    assert database_url.role_of("postgresql://re%40lay@db/relay") == "re@lay"
