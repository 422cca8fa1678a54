"""Seals: the exact bytes that a device signs, their id and their verification.

    bytes = "svc-seal-v1\\n" ‖ JCS(payload)
    id = hex BLAKE3 of the bytes; the Ed25519 signature is stored beside them

The payload names accounts, keys and repositories by id, not by handle, so that a rename breaks no signature.
Absent optional members are omitted; unknown members are refused.
"""

from __future__ import annotations

import re
from datetime import datetime

import msgspec

from localstore.core.encoding import hex_digest, is_hex_digest, jcs, unb64u
from localstore.core.errors import Invalid, SignatureInvalid, TooLarge
from localstore.core.identity import keys
from localstore.core.model import limits
from localstore.core.times import rfc3339

PREFIX = b"svc-seal-v1\n"
VERSION = 1
NONCE_SIZE = 16
PARENTS_MAX = 2  # of a merge seal; any other has one, and a first seal none
SOURCES_MAX = 64  # seals that a merge came from: git has merges of many
LINKED = ("git", "merge")  # strategies whose sources are parents of the commit in git
LISTED = (
    *LINKED,
    "fast_forward",
)  # those whose sources stand in history; a squash or a rebase replaces its own
PAYLOAD_BYTES = 256 * limits.KIB
GIT_ID_DIGITS = 40

_ID = re.compile(r"[!-~]{1,200}")
_GIT_ID = re.compile(rf"[0-9a-f]{{{GIT_ID_DIGITS}}}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", re.ASCII)


class GitOrigin(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The git commit this seal was made from: its id (40 hex) and the BLAKE3 (hex) of its raw bytes."""

    id: str
    raw_blake3: str


class MergeOrigin(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Which seals this seal merges. `strategy`: how; `sources` ("from" on the wire): their ids; `proposal`:
    number of the merged proposal, None without one."""

    strategy: str
    sources: list[str] = msgspec.field(name="from")
    proposal: int | None = None


class Provenance(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Who made the seal, with which device key and with which capability (a short text). Also says what the
    seal was imported or merged from. `author`: the author that an imported git commit names."""

    account_id: str
    device_key_id: str
    capability: str
    author: str | None = None
    git: GitOrigin | None = None
    merge: MergeOrigin | None = None


class SealPayload(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The signed members of a seal. `parents`: seal ids (hex); `content_digest`: root digest of the tree
    (hex); `tree_key_id`: which tree key salts the tree; `created_at`: in the format of `timestamp`; `nonce`:
    base64url of 16 bytes."""

    repo_id: str
    branch: str
    parents: list[str]
    content_digest: str
    tree_key_id: str
    message: str
    provenance: Provenance
    created_at: str
    nonce: str
    v: int = VERSION


def timestamp(moment: datetime) -> str:
    """The moment as RFC 3339 in UTC with milliseconds, 24 characters: 2026-01-31T23:59:59.000Z. `moment` has
    a time zone."""
    return rfc3339(moment, "milliseconds")


def encode(payload: SealPayload) -> bytes:
    """The exact bytes to sign. Raises Invalid or TooLarge if a member of the payload breaks its rule."""
    _check(payload)
    return PREFIX + jcs(msgspec.to_builtins(payload))


def decode(raw: bytes) -> SealPayload:
    """The payload of the signed bytes `raw` (the inverse of `encode`). Raises Invalid unless encoding the
    payload gives exactly `raw`."""
    if len(raw) > PAYLOAD_BYTES:
        raise TooLarge(f"a seal has at most {PAYLOAD_BYTES} bytes")
    if not raw.startswith(PREFIX):
        raise Invalid("not a seal of version 1")
    try:
        payload = msgspec.json.decode(raw[len(PREFIX) :], type=SealPayload)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise Invalid(f"seal payload: {error}") from None
    if encode(payload) != raw:
        raise Invalid("seal payload is not in canonical form")
    return payload


def seal_id(raw: bytes) -> str:
    """The id of the seal with the signed bytes `raw`: 64 lowercase hex digits."""
    return hex_digest(raw)


def verify(raw: bytes, signature: bytes, public_key: bytes) -> None:
    """Raises SignatureInvalid unless `signature` (64 bytes) over `raw` is by `public_key` (32 bytes).

    Does not check the payload: call `decode` first, and compare the key with `provenance.device_key_id`.
    """
    if not keys.verify(public_key, raw, signature):
        raise SignatureInvalid(f"seal {seal_id(raw)[:12]} is not signed by this device key")


def _check(payload: SealPayload) -> None:
    if payload.v != VERSION:
        raise Invalid(f"seal of version {payload.v}, expected {VERSION}")
    _check_id("repo_id", payload.repo_id)
    _check_id("tree_key_id", payload.tree_key_id)
    _check_text("branch", payload.branch, limits.REF_NAME_BYTES)
    _check_text("message", payload.message, limits.MESSAGE_BYTES, required=False)
    if len(payload.parents) > PARENTS_MAX or len(set(payload.parents)) != len(payload.parents):
        raise Invalid(f"a seal has at most {PARENTS_MAX} different parents", "/parents")
    for parent in payload.parents:
        _check_digest("parents", parent)
    _check_digest("content_digest", payload.content_digest)
    _check_time(payload.created_at)
    unb64u(payload.nonce, NONCE_SIZE)
    _check_provenance(payload.provenance)


def _check_provenance(provenance: Provenance) -> None:
    _check_id("provenance/account_id", provenance.account_id)
    _check_id("provenance/device_key_id", provenance.device_key_id)
    _check_text("provenance/capability", provenance.capability, 200)
    if provenance.author is not None:
        _check_text("provenance/author", provenance.author, 4 * limits.KIB)
    if provenance.git is not None:
        if not _GIT_ID.fullmatch(provenance.git.id):
            raise Invalid(f"a git id has {GIT_ID_DIGITS} lowercase hex digits", "/provenance/git/id")
        _check_digest("provenance/git/raw_blake3", provenance.git.raw_blake3)
    if provenance.merge is not None:
        _check_merge(provenance.merge)


def _check_merge(merge: MergeOrigin) -> None:
    _check_text("provenance/merge/strategy", merge.strategy, 32)
    if not 1 <= len(merge.sources) <= SOURCES_MAX:
        raise Invalid(f"a merge names 1 to {SOURCES_MAX} seals", "/provenance/merge/from")
    for source in merge.sources:
        _check_digest("provenance/merge/from", source)
    if merge.proposal is not None and merge.proposal < 1:
        raise Invalid("proposals count from 1", "/provenance/merge/proposal")


def _check_id(member: str, value: str) -> None:
    if not _ID.fullmatch(value):
        raise Invalid(f"{member} is not an id", f"/{member}")


def _check_digest(member: str, value: str) -> None:
    if not is_hex_digest(value):
        raise Invalid(f"{member} is not 64 lowercase hex digits", f"/{member}")


def _check_text(member: str, value: str, most: int, *, required: bool = True) -> None:
    if required and not value:
        raise Invalid(f"{member} is empty", f"/{member}")
    if "\0" in value:
        raise Invalid(f"{member} holds a NUL character", f"/{member}")
    if len(value) > most or len(value.encode("utf-8", "surrogatepass")) > most:
        raise TooLarge(f"{member} has more than {most} bytes")


def _check_time(value: str) -> None:
    try:
        if _TIME.fullmatch(value) and timestamp(datetime.fromisoformat(value)) == value:
            return
    except ValueError:
        pass
    raise Invalid("created_at is RFC 3339 in UTC with milliseconds: 2026-01-31T23:59:59.000Z", "/created_at")
