"""Seals: exact bytes, one spelling, signatures over them."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import msgspec
import pytest
import rfc8785
from hypothesis import given, settings
from hypothesis import strategies as st
from nacl.signing import SigningKey

from localstore.core import seal
from localstore.core.encoding import b64u
from localstore.core.errors import Invalid, SignatureInvalid, SvcError, TooLarge
from localstore.core.model import limits
from localstore.core.seal import GitOrigin, MergeOrigin, Provenance, SealPayload

FULL = SealPayload(
    repo_id="0193d1a0-0000-7000-8000-000000000001",
    branch="main",
    parents=["ab" * 32],
    content_digest="cd" * 32,
    tree_key_id="tk1",
    message="Größer \U0001f600\n\tand \\ more\u2028",
    provenance=Provenance(
        account_id="acc1",
        device_key_id="k" * 43,
        capability="push",
        author="A. U. Thor <a@example.org>",
        git=GitOrigin("0" * 40, "12" * 32),
        merge=MergeOrigin("squash", ["34" * 32], 7),
    ),
    created_at="2026-01-31T23:59:59.000Z",
    nonce=b64u(bytes(range(16))),
)
PLAIN = msgspec.structs.replace(FULL, parents=[], message="", provenance=Provenance("acc1", "k" * 43, "push"))


def members(payload: SealPayload) -> dict[str, Any]:
    return json.loads(seal.encode(payload)[len(seal.PREFIX) :])


def raw(document: Any) -> bytes:
    return seal.PREFIX + rfc8785.dumps(document)


@pytest.mark.parametrize("payload", [FULL, PLAIN])
def test_bytes_are_the_prefix_and_jcs_and_decode_back(payload: SealPayload) -> None:
    encoded = seal.encode(payload)
    assert encoded == raw(members(payload))
    assert seal.decode(encoded) == payload


def test_absent_members_are_left_out() -> None:
    assert members(PLAIN)["provenance"].keys() == {"account_id", "device_key_id", "capability"}
    assert members(FULL)["provenance"]["merge"].keys() == {"strategy", "from", "proposal"}


def test_golden_ids() -> None:
    assert (
        seal.seal_id(seal.encode(FULL)) == "1dd7ef6426f9d431da17140d8fd50ab93734c53027d16c8697d8776998eed4eb"
    )
    assert (
        seal.seal_id(seal.encode(PLAIN)) == "515765988318d5fb362d54235a094e1da6fbb2b4b050c502c31408523b31e141"
    )


def test_signature_of_another_key_or_over_other_bytes_is_refused() -> None:
    key, other = SigningKey(bytes(32)), SigningKey(b"\1" * 32)
    encoded = seal.encode(FULL)
    signature = key.sign(encoded).signature
    public = bytes(key.verify_key)
    seal.verify(encoded, signature, public)
    bad = [
        (encoded + b" ", signature, public),
        (encoded, other.sign(encoded).signature, public),
        (encoded, signature, bytes(other.verify_key)),
        (encoded, signature[:63], public),
        (encoded, b"", public),
        (encoded, signature, public[:31]),
        (encoded, bytes(64), bytes(32)),
    ]
    for arguments in bad:
        with pytest.raises(SignatureInvalid):
            seal.verify(*arguments)


@pytest.mark.parametrize("where", [(), ("provenance",), ("provenance", "git"), ("provenance", "merge")])
def test_unknown_and_missing_members_are_refused(where: tuple[str, ...]) -> None:
    document = members(FULL)
    target = document
    for step in where:
        target = target[step]
    target["handle"] = "@somebody"
    with pytest.raises(Invalid):
        seal.decode(raw(document))
    del target["handle"]
    for name in [n for n in target if n not in ("author", "git", "merge", "proposal")]:
        kept = target.pop(name)
        with pytest.raises(Invalid):
            seal.decode(raw(document))
        target[name] = kept
    assert seal.decode(raw(document)) == FULL


CHANGES: list[tuple[str, Any]] = [
    ("v", 2),
    ("v", "1"),
    ("repo_id", ""),
    ("repo_id", "a b"),
    ("repo_id", "a\n"),
    ("branch", ""),
    ("branch", "x" * (limits.REF_NAME_BYTES + 1)),
    ("branch", "a\0"),
    ("parents", ["AB" * 32]),
    ("parents", ["ab" * 32, "ab" * 32]),
    ("parents", [f"{n:064x}" for n in range(65)]),
    ("parents", None),
    ("content_digest", "cd" * 31),
    ("message", "x" * (limits.MESSAGE_BYTES + 1)),
    ("message", "é" * (limits.MESSAGE_BYTES // 2 + 1)),
    ("created_at", "2026-01-31T23:59:59Z"),
    ("created_at", "2026-02-30T23:59:59.000Z"),
    ("created_at", "2026-01-31T23:59:59.000+00:00"),
    ("created_at", "2026-01-31t23:59:59.000z"),
    ("created_at", "2026-01-31T23:59:60.000Z"),
    ("created_at", "2026-01-31T24:00:00.000Z"),
    ("nonce", b64u(bytes(15))),
    ("nonce", b64u(bytes(16)) + "=="),
    ("provenance/account_id", ""),
    ("provenance/capability", ""),
    ("provenance/git", {"id": "0" * 39, "raw_blake3": "12" * 32}),
    ("provenance/git", {"id": "0" * 40, "raw_blake3": "12"}),
    ("provenance/git", None),
    ("provenance/merge", {"strategy": "squash", "from": []}),
    ("provenance/merge", {"strategy": "", "from": ["34" * 32]}),
    ("provenance/merge", {"strategy": "squash", "from": ["34"]}),
    ("provenance/merge", {"strategy": "squash", "from": ["34" * 32], "proposal": 0}),
]


@pytest.mark.parametrize(("member", "value"), CHANGES)
def test_members_that_break_their_rule_are_refused(member: str, value: Any) -> None:
    document = members(FULL)
    *above, last = member.split("/")
    (document[above[0]] if above else document)[last] = value
    with pytest.raises((Invalid, TooLarge)):
        seal.decode(raw(document))


@pytest.mark.parametrize(
    "change",
    [
        lambda r: r.replace(b',"', b', "', 1),
        lambda r: r + b"\n",
        lambda r: r.replace(b"svc-seal-v1", b"svc-seal-v2"),
        lambda r: r[len(seal.PREFIX) :],
        lambda r: r.replace(b'"v":1', b'"v":1.0'),
        lambda r: r.replace(b'"v":1', b'"v":1,"v":1'),
        lambda r: r.replace(b'"branch":"main"', b'"branch":"m\\u0061in"'),
        lambda r: r.replace(b"push", b"\xff"),
        lambda r: r.replace(b"push", b"\\ud800"),
        lambda r: seal.PREFIX + b"[" * 100_000,
        lambda r: r + b" " * seal.PAYLOAD_BYTES,
    ],
)
def test_other_spellings_of_the_same_payload_are_refused(change: Any) -> None:
    encoded = seal.encode(FULL)
    assert change(encoded) != encoded
    with pytest.raises((Invalid, TooLarge)):
        seal.decode(change(encoded))


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=30), st.text(max_size=30))
def test_any_text_round_trips_or_is_refused(message: str, author: str) -> None:
    provenance = Provenance("acc1", "k" * 43, "push", author=author)
    payload = msgspec.structs.replace(PLAIN, message=message, provenance=provenance)
    try:
        encoded = seal.encode(payload)
    except SvcError:
        assert "\0" in message + author or not author
        return
    assert seal.decode(encoded) == payload


def test_timestamp_is_utc_with_milliseconds() -> None:
    moment = datetime(2026, 2, 1, 1, 59, 59, 999_999, tzinfo=timezone(timedelta(hours=2)))
    assert seal.timestamp(moment) == "2026-01-31T23:59:59.999Z"
    assert seal.timestamp(datetime(2026, 1, 1, tzinfo=UTC)) == "2026-01-01T00:00:00.000Z"
