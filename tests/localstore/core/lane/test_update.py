"""Live updates: what is signed, and which shapes are refused."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
import rfc8785
from hypothesis import given, settings
from hypothesis import strategies as st

from localstore.core.encoding import b64u, hex_digest, length_prefixed
from localstore.core.errors import Invalid, TooLarge
from localstore.core.lane.update import LiveUpdate, check, decoded_ops, ops_digest, signing_bytes
from localstore.core.model import limits

COMMON: dict[str, Any] = {"n": 8, "settled": 6, "path": "src/é.py", "signature": b64u(bytes(64))}
CREATE = LiveUpdate(kind="create_text", gen=0, base=0, blake3="ab" * 32, size=3, **COMMON)
BLOB = LiveUpdate(kind="set_blob", gen=5, base=7, blake3="cd" * 32, size=0, **COMMON)
EDIT = LiveUpdate(kind="edit_text", gen=5, base=7, epoch=0, ops=[b64u(b"one"), b64u(b"two")], **COMMON)
DELETE = LiveUpdate(kind="delete", gen=5, base=7, **COMMON)
ALL = [CREATE, BLOB, EDIT, DELETE]
PLACE = ("repo1", "branch1", (1 << 53) - 1, "k" * 43)


@pytest.mark.parametrize("update", ALL)
def test_good_shapes_pass_and_travel(update: LiveUpdate) -> None:
    assert check(update) == bytes(64)
    assert msgspec.json.decode(msgspec.json.encode(update), type=LiveUpdate) == update


@pytest.mark.parametrize("update", ALL)
def test_signing_bytes_are_the_prefix_and_jcs_of_the_protocol_fields(update: LiveUpdate) -> None:
    fields = {k: v for k, v in msgspec.to_builtins(update).items() if k not in ("signature", "ops")}
    fields |= {"repo_id": "repo1", "branch_id": "branch1", "replica": PLACE[2], "device_key_id": "k" * 43}
    if update.ops is not None:
        fields["ops_blake3"] = hex_digest(b"\0\0\0\3one\0\0\0\3two")
    assert signing_bytes(*PLACE, update) == b"svc-live-update-v1\n" + rfc8785.dumps(fields)


def test_golden_signing_bytes() -> None:
    assert signing_bytes(*PLACE, DELETE) == (
        b'svc-live-update-v1\n{"base":7,"branch_id":"branch1","device_key_id":"' + b"k" * 43 + b'","gen":5,'
        b'"kind":"delete","n":8,"path":"src/\xc3\xa9.py","replica":9007199254740991,"repo_id":"repo1","settled":6}'
    )
    assert (
        hex_digest(signing_bytes(*PLACE, EDIT))
        == "acfa3b9c0eebce84f9323b65a0cfd1fb86c2e701693ff6ebb5d1a9ad0d1b295a"
    )


def test_every_field_changes_what_is_signed() -> None:
    changed = [
        *(msgspec.structs.replace(EDIT, **{name: 99}) for name in ("n", "settled", "gen", "base", "epoch")),
        msgspec.structs.replace(EDIT, path="other"),
        msgspec.structs.replace(EDIT, kind="delete"),
        msgspec.structs.replace(EDIT, ops=[b64u(b"onet"), b64u(b"wo")]),
        msgspec.structs.replace(EDIT, ops=[b64u(b"onetwo")]),
        msgspec.structs.replace(CREATE, size=4),
        msgspec.structs.replace(CREATE, blake3="ef" * 32),
    ]
    signed = {signing_bytes(*PLACE, update) for update in [*ALL, *changed]}
    for place in (
        ("r", *PLACE[1:]),
        ("repo1", "b", *PLACE[2:]),
        (*PLACE[:2], 1, PLACE[3]),
        (*PLACE[:3], "d"),
    ):
        signed.add(signing_bytes(*place, EDIT))
    assert len(signed) == len(ALL) + len(changed) + 4


def test_signature_is_not_part_of_what_is_signed() -> None:
    other = msgspec.structs.replace(EDIT, signature=b64u(b"\1" * 64))
    assert signing_bytes(*PLACE, other) == signing_bytes(*PLACE, EDIT)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.binary(min_size=1, max_size=20), min_size=1, max_size=5))
def test_operations_decode_and_enter_by_digest(ops: list[bytes]) -> None:
    update = msgspec.structs.replace(EDIT, ops=[b64u(op) for op in ops])
    check(update)
    assert decoded_ops(update) == ops
    assert signing_bytes(*PLACE, update, ops) == signing_bytes(*PLACE, update)
    document = json.loads(signing_bytes(*PLACE, update).partition(b"\n")[2])
    assert document["ops_blake3"] == ops_digest(ops) == hex_digest(length_prefixed(*ops))


WRONG: list[tuple[LiveUpdate, dict[str, Any]]] = [
    (EDIT, {"n": 0}),
    (EDIT, {"n": 1 << 53}),
    (EDIT, {"settled": -1}),
    (EDIT, {"settled": 8}),
    (EDIT, {"gen": -1}),
    (EDIT, {"base": -1}),
    (EDIT, {"base": 1 << 53}),
    (EDIT, {"path": ""}),
    (EDIT, {"gen": 0}),
    (EDIT, {"epoch": None}),
    (EDIT, {"epoch": -1}),
    (EDIT, {"ops": None}),
    (EDIT, {"ops": []}),
    (EDIT, {"ops": [""]}),
    (EDIT, {"blake3": "ab" * 32}),
    (EDIT, {"size": 1}),
    (EDIT, {"signature": ""}),
    (EDIT, {"signature": b64u(bytes(63))}),
    (EDIT, {"signature": b64u(bytes(64)) + "=="}),
    (CREATE, {"blake3": None}),
    (CREATE, {"blake3": "AB" * 32}),
    (CREATE, {"size": None}),
    (CREATE, {"size": -1}),
    (CREATE, {"epoch": 0}),
    (CREATE, {"ops": [b64u(b"x")]}),
    (BLOB, {"blake3": "ab"}),
    (BLOB, {"ops": []}),
    (DELETE, {"gen": 0}),
    (DELETE, {"blake3": "ab" * 32}),
    (DELETE, {"size": 0}),
    (DELETE, {"epoch": 0}),
]


@pytest.mark.parametrize(("update", "change"), WRONG)
def test_wrong_shapes_are_invalid(update: LiveUpdate, change: dict[str, Any]) -> None:
    with pytest.raises(Invalid):
        check(msgspec.structs.replace(update, **change))


def test_too_many_bytes_of_operations() -> None:
    piece = "A" * (16 * limits.MIB)
    with pytest.raises(TooLarge):
        check(msgspec.structs.replace(EDIT, ops=[piece] * 6))


def test_operations_in_a_second_spelling_cannot_be_signed() -> None:
    with pytest.raises(Invalid):
        signing_bytes(*PLACE, msgspec.structs.replace(EDIT, ops=["AB"]))


def test_typed_is_signed_where_it_is_said_and_belongs_to_edits() -> None:
    typed = msgspec.structs.replace(EDIT, typed=True)
    check(typed)
    assert b"typed" not in signing_bytes(*PLACE, EDIT) + msgspec.json.encode(EDIT)
    assert signing_bytes(*PLACE, typed) == signing_bytes(*PLACE, EDIT)[:-1] + b',"typed":true}'
    with pytest.raises(Invalid):
        check(msgspec.structs.replace(CREATE, typed=True))


def test_unknown_members_and_kinds_do_not_decode() -> None:
    document = msgspec.to_builtins(EDIT)
    for wrong in ({**document, "extra": 1}, {**document, "kind": "rename"}, {**document, "n": 1.5}):
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert(wrong, LiveUpdate)


@settings(max_examples=200, deadline=None)
@given(st.text(min_size=1, max_size=30), st.integers(0, (1 << 53) - 1))
def test_every_text_and_number_is_signed_as_jcs_has_it(text: str, number: int) -> None:
    update = msgspec.structs.replace(CREATE, path=text, size=number, blake3=text)
    fields = {k: v for k, v in msgspec.to_builtins(update).items() if k != "signature"}
    place = {"repo_id": text, "branch_id": text, "replica": number, "device_key_id": text}
    signed = signing_bytes(text, text, number, text, update)
    assert signed == b"svc-live-update-v1\n" + rfc8785.dumps(fields | place)


@pytest.mark.parametrize("change", [{"size": 1 << 53}, {"base": -(1 << 53)}, {"path": "\udc80"}])
def test_what_jcs_cannot_hold_cannot_be_signed(change: dict[str, Any]) -> None:
    with pytest.raises(Invalid):
        signing_bytes(*PLACE, msgspec.structs.replace(CREATE, **change))
