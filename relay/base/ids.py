"""Identifiers: opaque to clients, ordered by time where that helps the database."""

from __future__ import annotations

import secrets
import uuid

from relay.base.clock import now_ms


def new_id() -> str:
    """32 hex digits, UUIDv7 layout (RFC 9562): 48 bits of milliseconds, then randomness."""
    value = now_ms() << 80 | secrets.randbits(80)
    value = value & ~(0xF << 76) | (0x7 << 76)
    value = value & ~(0x3 << 62) | (0x2 << 62)
    return f"{value:032x}"


def new_repo_id() -> str:
    """A new repository id of 20 hex digits: 48 bits of milliseconds, then randomness. It is short, because
    each object of the repository has a database row that contains it."""
    return f"{now_ms() << 32 | secrets.randbits(32):020x}"


def new_branch_id() -> str:
    """A new branch id of 16 random hex digits. It is short, because every row of the branch's frontier
    contains it."""
    return secrets.token_hex(8)


def new_account_id() -> str:
    """A UUIDv4 with dashes; the capability token contains its 16 bytes."""
    return str(uuid.UUID(bytes=secrets.token_bytes(16), version=4))
