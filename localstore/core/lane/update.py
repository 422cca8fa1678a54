"""Live updates: one change of one path of a branch, signed by the device that made it (docs/design/004).

    create_text  a text file begins with the stored bytes `blake3`
    edit_text    CRDT operations on lane `gen` in `epoch`
    set_blob     a file becomes the stored bytes `blake3`
    delete       the file on lane `gen` is deleted

An edit is *captured* (computed from the saved file) unless it is `typed` (character by character). Only typed
edits are accepted on a lane that others changed since `base`.

`gen`: the lane (0: the device knows no file there). `base`: newest sequence number of the path that the
device has seen (0: none). `n`: this replica's update number. `settled`: this replica has received the answers
to all its updates up to this number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from localstore.core.encoding import hex_digest, is_hex_digest, length_prefixed, unb64u
from localstore.core.errors import Invalid, TooLarge
from localstore.core.model import limits

UpdateKind = Literal["create_text", "edit_text", "set_blob", "delete"]

PREFIX = b"svc-live-update-v1\n"
SIGNATURE_SIZE = 64
NUMBER_MAX = (1 << 53) - 1

_BYTES_KINDS = ("create_text", "set_blob")
_LANE_KINDS = ("edit_text", "delete")


class LiveUpdate(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One update as it is sent. `signature`: Ed25519 signature of `signing_bytes`, in base64url. Updates of
    the kinds create_text and set_blob have `blake3` (hex) and `size` (bytes). Those of the kind edit_text
    have `epoch`, `ops` (CRDT updates in base64url) and `typed`."""

    n: int
    settled: int
    path: str
    kind: UpdateKind
    gen: int
    base: int
    signature: str
    blake3: str | None = None
    size: int | None = None
    epoch: int | None = None
    ops: list[str] | None = None
    typed: bool = False


class _Signed(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The signed members of an update, declared in the order of canonical JSON (JCS), so that encoding them
    gives canonical bytes."""

    base: int
    blake3: str | None = None
    branch_id: str
    device_key_id: str
    epoch: int | None = None
    gen: int
    kind: str
    n: int
    ops_blake3: str | None = None
    path: str
    replica: int
    repo_id: str
    settled: int
    size: int | None = None
    typed: bool = False


_encoded = msgspec.json.Encoder().encode


def signing_bytes(
    repo_id: str,
    branch_id: str,
    replica: int,
    device_key_id: str,
    update: LiveUpdate,
    ops: Sequence[bytes] | None = None,
) -> bytes:
    """The exact bytes that the device signs: a prefix, then the members of the update without its signature
    as canonical JSON (JCS).

    The member `ops` is replaced by `ops_blake3`, the hex BLAKE3 of the length-prefixed operations. Absent
    members are left out. `ops`: the result of `decoded_ops`, if the caller has it. Raises Invalid for values
    that JCS cannot represent."""
    epoch, size = update.epoch, update.size
    numbers = (replica, update.n, update.settled, update.gen, update.base, epoch or 0, size or 0)
    if min(numbers) < -NUMBER_MAX or max(numbers) > NUMBER_MAX:
        raise Invalid("signed data holds exact integers only")
    signed = _Signed(
        repo_id=repo_id,
        branch_id=branch_id,
        replica=replica,
        device_key_id=device_key_id,
        n=update.n,
        settled=update.settled,
        path=update.path,
        kind=update.kind,
        gen=update.gen,
        base=update.base,
        blake3=update.blake3,
        size=size,
        epoch=epoch,
        ops_blake3=None if update.ops is None else ops_digest(decoded_ops(update) if ops is None else ops),
        typed=update.typed,
    )
    try:
        return PREFIX + _encoded(signed)
    except UnicodeEncodeError:
        raise Invalid("signed text is not valid Unicode") from None


def decoded_ops(update: LiveUpdate) -> list[bytes]:
    """The CRDT updates of an edit, decoded; [] for other kinds."""
    return [unb64u(op) for op in update.ops or ()]


def ops_digest(ops: Sequence[bytes]) -> str:
    """The digest of an edit's CRDT operations: the hex BLAKE3 of all operations, each after its length."""
    return hex_digest(length_prefixed(*ops))


def check(update: LiveUpdate) -> bytes:
    """Check that the update has the members of its kind, and return its decoded signature. Raises Invalid if
    it does not, TooLarge for more than UPDATE_BYTES of operations.

    Checks only the shape: the path and the content are checked elsewhere."""
    _check_numbers(update)
    if not update.path:
        raise Invalid("an update names a path", "/path")
    _check_bytes_members(update)
    _check_edit_members(update)
    if update.kind in _LANE_KINDS and update.gen == 0:
        raise Invalid(f"{update.kind} names the lane it means: gen is at least 1", "/gen")
    return unb64u(update.signature, SIGNATURE_SIZE)


def _check_numbers(update: LiveUpdate) -> None:
    for name, least, number in (
        ("n", 1, update.n),
        ("settled", 0, update.settled),
        ("gen", 0, update.gen),
        ("base", 0, update.base),
    ):
        if number < least or number > NUMBER_MAX:
            raise Invalid(f"{name} is between {least} and 2**53-1", f"/{name}")
    if update.settled >= update.n:
        raise Invalid("settled is below n: an update without an answer is not settled", "/settled")


def _check_bytes_members(update: LiveUpdate) -> None:
    if update.kind not in _BYTES_KINDS:
        _refuse_members(update, blake3=update.blake3, size=update.size)
        return
    if update.blake3 is None or not is_hex_digest(update.blake3):
        raise Invalid(f"{update.kind} names its bytes: blake3 is 64 lowercase hex digits", "/blake3")
    if update.size is None or not 0 <= update.size <= NUMBER_MAX:
        raise Invalid(f"{update.kind} says the size of its bytes", "/size")


def _check_edit_members(update: LiveUpdate) -> None:
    if update.kind != "edit_text":
        _refuse_members(update, epoch=update.epoch, ops=update.ops, typed=update.typed or None)
        return
    if update.epoch is None or not 0 <= update.epoch <= NUMBER_MAX:
        raise Invalid("edit_text names its epoch", "/epoch")
    if not update.ops:
        raise Invalid("edit_text carries operations", "/ops")
    if sum(map(len, update.ops)) * 3 // 4 > limits.UPDATE_BYTES:
        raise TooLarge(f"one update carries at most {limits.UPDATE_BYTES} bytes of operations")
    if not all(update.ops):
        raise Invalid("an operation is empty", "/ops")


def _refuse_members(update: LiveUpdate, **members: object) -> None:
    for name, value in members.items():
        if value is not None:
            raise Invalid(f"{update.kind} has no {name}", f"/{name}")
