"""Which database a URL names, and what comes of a password told apart from it."""

from __future__ import annotations

from pathlib import Path

import pytest

from relay.db import url
from relay.environment import StartRefused


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
        url.check(wrong)


def test_the_two_kinds():
    assert url.sqlite_path(url.check("sqlite:////var/relay.db")) == Path("/var/relay.db")
    for good in ("postgresql://relay@db/relay", "postgres:///relay?host=/run/postgresql"):
        assert url.is_postgres(url.check(good))


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
    assert url.with_password(given, "p@/%") == whole
    assert url.with_password(given, None) == given
    assert url.role("postgresql://re%40lay@db/relay") == "re@lay"
