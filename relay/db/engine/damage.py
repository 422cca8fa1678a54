"""Recognises errors that say that the database's own files are damaged."""

from __future__ import annotations

import sqlite3

_SQLITE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_POSTGRES = ("XX001", "XX002")  # data corrupted, index corrupted


def find_damage(error: BaseException | None) -> str | None:
    """Return what the database reports about damage to its files: the message of `error`, or of an error that
    caused it. Returns None if neither reports damage."""
    while error is not None:
        code = getattr(error, "sqlite_errorcode", None)
        if isinstance(code, int) and code & 0xFF in _SQLITE:
            return str(error)
        if getattr(error, "sqlstate", None) in _POSTGRES:
            return str(error)
        error = error.__cause__ or error.__context__
    return None
