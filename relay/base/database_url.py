"""Reads the URLs of databases: `sqlite:///PATH` or `postgresql://USER@HOST/NAME`."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from relay.base.environment import StartRefused

_POSTGRES = ("postgresql", "postgres")


def check(url: str) -> str:
    """Check the URL and return it unchanged. Raises StartRefused unless it names a database of one of the two
    kinds."""
    if is_postgres(url):
        try:
            parts = urlsplit(url)
            named = parts.path.strip("/")
            _ = parts.port
        except ValueError:
            named = ""
        if not named:
            raise StartRefused("DATABASE_URL is not of the form postgresql://USER:PASSWORD@HOST:PORT/NAME")
    else:
        sqlite_path(url)
    return url


def is_postgres(url: str) -> bool:
    return url.partition("://")[0] in _POSTGRES


def sqlite_path(url: str) -> Path:
    """The file of a `sqlite:///PATH` URL (four slashes for an absolute path)."""
    path = url.removeprefix("sqlite:///")
    if path == url or not path or "?" in path:
        raise StartRefused("DATABASE_URL is not of the form sqlite:///PATH or postgresql://USER@HOST/NAME")
    return Path(path)


def role_of(url: str) -> str | None:
    """The role with which a PostgreSQL URL signs in; None if it names none."""
    name = urlsplit(url).username
    return unquote(name) if name else None


def with_password(url: str, password: str | None) -> str:
    """The URL with this password added. A URL of SQLite, or one that has a password, is returned
    unchanged."""
    parts = urlsplit(url)
    if password is None or not is_postgres(url) or parts.password or not parts.username:
        return url
    place = parts.netloc.rpartition("@")[2]
    return urlunsplit(
        parts._replace(netloc=f"{quote(parts.username, safe='%')}:{quote(password, safe='')}@{place}")
    )
