"""The text of a pairing code and its six digits: golden values, one reading, no choice for a relay."""

from __future__ import annotations

import dataclasses
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localstore.core.encoding import b64u
from localstore.core.errors import Invalid
from localstore.core.identity import pairing
from localstore.core.identity.keys import DeviceKey, TransportKey, check_x25519, transport_of
from localstore.core.identity.pairing import PairingText, Transcript

ORIGIN, ACCOUNT = "https://node.example", "01234567-89ab-4def-8123-456789abcdef"
OPENING = bytes(range(32))
TEXT = PairingText(ORIGIN, ACCOUNT, bytes(range(16)), pairing.commit(OPENING))
GOLDEN = Transcript(TEXT, OPENING, b"\1" * 32, b"\2" * 32, b"\3" * 32)
CODE = (
    "svc-pair:1:ASNFZ4mrTe-BI0VniavN7wABAgMEBQYHCAkKCwwNDg8Yl-BVp"
    "HIZv1b5v_0Hu2EKwtPhF4mBdQ2024uw3h_2HQ:https://node.example"
)

bytes_of = {size: st.binary(min_size=size, max_size=size) for size in (16, 32)}
texts = st.builds(
    PairingText,
    origin=st.sampled_from([ORIGIN, "http://127.0.0.1:8400", "https://[::1]:1", "https://a.example:443"]),
    account=st.uuids().map(str),
    secret=bytes_of[16],
    commitment=bytes_of[32],
)


def test_golden_values() -> None:
    assert str(TEXT) == CODE
    assert TEXT.pairing_id == "jPX3blKAEywOQFLWdQx6BQ"
    assert GOLDEN.digits() == "810648"


@given(texts)
def test_a_text_reads_back_as_itself(text: PairingText) -> None:
    assert pairing.parse(str(text)) == text
    assert pairing.parse(f"  {text}\n") == text
    assert b64u(text.secret) not in text.pairing_id


@given(texts, st.integers(min_value=0), st.characters(min_codepoint=1, max_codepoint=0x2000))
def test_a_mistyped_text_is_refused_or_another(text: PairingText, place: int, letter: str) -> None:
    whole = str(text)
    at = place % len(whole)
    changed = whole[:at] + letter + whole[at + 1 :]
    try:
        parsed = pairing.parse(changed)
    except Invalid:
        return
    assert parsed != text or changed.strip() == whole


@pytest.mark.parametrize(
    "text",
    [
        "",
        "svc-pair:1:",
        "svc-pair:2:" + str(TEXT)[11:],
        str(TEXT)[: -1 - len(ORIGIN)],
        str(TEXT) + "/path",
        str(TEXT) + "?query",
        str(TEXT) + "#fragment",
        str(TEXT) + ":port",
        str(TEXT) + ":99999",
        str(TEXT).replace("://", "://user@"),
        str(TEXT).replace("node", "NODE"),
        str(TEXT).replace("node.example", "["),
        str(TEXT).replace("https", "ftp"),
        str(TEXT) + "x" * 400,
        str(TEXT) + "\u202e",
        str(TEXT).replace(":https", "=:https"),
    ],
)
def test_other_texts_are_no_codes(text: str) -> None:
    with pytest.raises(Invalid, match="pairing code"):
        pairing.parse(text)


@given(bytes_of[32], bytes_of[32], bytes_of[32], bytes_of[32], texts)
def test_digits_are_six_whatever_they_are_made_of(
    opening: bytes, ed25519: bytes, x25519: bytes, nonce: bytes, text: PairingText
) -> None:
    whole = dataclasses.replace(text, commitment=pairing.commit(opening))
    digits = Transcript(whole, opening, ed25519, x25519, nonce).digits()
    assert len(digits) == 6
    assert digits.isdigit()


def test_each_part_changes_the_digits() -> None:
    other = b"\7" * 32
    committed = dataclasses.replace(TEXT, commitment=pairing.commit(other))
    changed = [
        dataclasses.replace(GOLDEN, ed25519=other),
        dataclasses.replace(GOLDEN, x25519=other),
        dataclasses.replace(GOLDEN, nonce=other),
        dataclasses.replace(GOLDEN, text=dataclasses.replace(TEXT, origin="https://node.example:1")),
        dataclasses.replace(GOLDEN, text=dataclasses.replace(TEXT, account=str(uuid.UUID(int=1)))),
        dataclasses.replace(GOLDEN, text=dataclasses.replace(TEXT, secret=b"\7" * 16)),
        dataclasses.replace(GOLDEN, opening=other, text=committed),
    ]
    digits = [transcript.digits() for transcript in changed]
    assert GOLDEN.digits() not in digits
    assert len(set(digits)) == len(digits)


@given(bytes_of[32])
def test_a_commitment_opens_to_one_number_only(opening: bytes) -> None:
    transcript = dataclasses.replace(GOLDEN, opening=opening)
    if opening == OPENING:
        assert transcript.digits() == GOLDEN.digits()
    else:
        with pytest.raises(Invalid, match="does not match the commitment"):
            transcript.digits()


def test_digits_are_spread_over_the_whole_range() -> None:
    """Leading zeros are kept, and no first digit is preferred: what a relay would gain from otherwise."""
    digits = [
        dataclasses.replace(GOLDEN, nonce=number.to_bytes(32, "big")).digits() for number in range(2000)
    ]
    first = [text[0] for text in digits]
    assert all(150 < first.count(digit) < 250 for digit in "0123456789")


def test_a_signing_key_has_a_transport_key() -> None:
    public = transport_of(DeviceKey.generate().public)
    check_x25519(public)
    assert public != TransportKey.generate().public
    with pytest.raises(Invalid):
        transport_of(bytes(32))
