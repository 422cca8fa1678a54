"""Proof of a device key, codes for people, and the sealed session."""

from collections.abc import Callable
from dataclasses import replace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from localstore.core.errors import Invalid, ServerMisbehaved, SignatureInvalid
from localstore.core.identity.device_grant import (
    CODE_ALPHABET,
    Grant,
    OpenedChallenge,
    Purpose,
    device_code_hash,
    fingerprint,
    new_pairing_code,
    new_user_code,
    normalise_pairing_code,
    normalise_user_code,
    open_grant,
    seal_grant,
)
from localstore.core.identity.keys import DeviceKey, TransportKey, seal_to

DEVICE, TRANSPORT = DeviceKey.generate(b"\x01" * 32), TransportKey.generate(b"\x02" * 32)
ORIGIN, DEVICE_CODE = "https://node.example", b"d" * 32
CHALLENGE = OpenedChallenge(
    Purpose.REGISTER, ORIGIN, "acc-1", b"i" * 16, DEVICE.public, TRANSPORT.public, b"c" * 32
)
GRANT = Grant(
    origin=ORIGIN,
    device_code_sha256=device_code_hash(DEVICE_CODE),
    token="B" * 440,
    account="acc-1",
    expires_at=1_800_000_000,
    parent_session="01J00000000000000000000000",
)


def test_the_transcript_is_label_then_length_prefixed_fields() -> None:
    def field(value: bytes) -> bytes:
        return len(value).to_bytes(4, "big") + value

    assert CHALLENGE.transcript() == b"svc-device-key-v1\0" + b"".join(
        map(field, [ORIGIN.encode(), b"acc-1", b"i" * 16, DEVICE.public, TRANSPORT.public, b"c" * 32])
    )


def test_the_device_opens_the_challenge_and_proves_itself() -> None:
    assert TRANSPORT.unseal(CHALLENGE.seal()) == CHALLENGE.secret
    CHALLENGE.check(CHALLENGE.prove(DEVICE))


@pytest.mark.parametrize(
    "change",
    [
        {"purpose": Purpose.LOGIN},
        {"origin": "https://evil.example"},
        {"account": "mallory"},
        {"challenge_id": b"j" * 16},
        {"x25519": TransportKey.generate(b"\x03" * 32).public},
        {"secret": b"x" * 32},
        {"ed25519": DeviceKey.generate(b"\x04" * 32).public},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_proof_is_worth_nothing_elsewhere(change: dict[str, object]) -> None:
    proof = CHALLENGE.prove(DEVICE)
    with pytest.raises(SignatureInvalid):
        replace(CHALLENGE, **change).check(proof)  # type: ignore[arg-type]


def test_another_signer_is_refused() -> None:
    with pytest.raises(SignatureInvalid):
        CHALLENGE.check(CHALLENGE.prove(DeviceKey.generate()))


def test_a_challenge_is_not_sealed_to_a_low_order_key() -> None:
    with pytest.raises(Invalid):
        replace(CHALLENGE, x25519=bytes(32)).seal()


def test_fingerprint_has_six_groups_and_depends_on_both_keys() -> None:
    shown = fingerprint(TRANSPORT.public, DEVICE.public)
    assert [len(group) for group in shown.split("-")] == [4] * 6
    assert shown != fingerprint(DEVICE.public, TRANSPORT.public)
    assert shown == fingerprint(TRANSPORT.public, DEVICE.public)


def test_codes_come_from_the_given_randomness() -> None:
    assert new_user_code(lambda n: 0) == "BBBB-BBBB"
    assert new_pairing_code(lambda n: n - 1) == "ZZZZ-ZZZZ-ZZZZ"
    assert new_user_code() != new_user_code()


@given(st.text(CODE_ALPHABET, min_size=8, max_size=8))
def test_people_may_type_codes_their_way(letters: str) -> None:
    code = f"{letters[:4]}-{letters[4:]}"
    for typed in (code, code.lower(), letters, f"  {code}\n", code.replace("-", " ")):
        assert normalise_user_code(typed) == code


@pytest.mark.parametrize("normalise", [normalise_user_code, normalise_pairing_code])
@pytest.mark.parametrize(
    "typed", ["", "BCDF", "BCDF-GHJA", "BCDF-GHJK-LMNP-Q", "ВCDF-GHJK", "0000-0000-0000", "B" * 10_000]
)
def test_other_codes_are_refused(normalise: Callable[[str], str], typed: str) -> None:
    with pytest.raises(Invalid):
        normalise(typed)


def test_the_terminal_opens_its_own_grant() -> None:
    assert (
        open_grant(seal_grant(GRANT, TRANSPORT.public), TRANSPORT, origin=ORIGIN, device_code=DEVICE_CODE)
        == GRANT
    )


@pytest.mark.parametrize(
    ("sealed", "message"),
    [
        (
            seal_grant(msgspec.structs.replace(GRANT, origin="https://evil.example"), TRANSPORT.public),
            "not for",
        ),
        (
            seal_grant(
                msgspec.structs.replace(GRANT, device_code_sha256=device_code_hash(b"e")), TRANSPORT.public
            ),
            "another sign-in",
        ),
        (
            seal_grant(msgspec.structs.replace(GRANT, device_code_sha256="é"), TRANSPORT.public),
            "another sign-in",
        ),
        (seal_grant(GRANT, TransportKey.generate().public), "cannot be opened"),
        (seal_to(TRANSPORT.public, b"not json"), "cannot be opened"),
        (
            seal_to(TRANSPORT.public, msgspec.json.encode(GRANT).replace(b'"v":1', b'"v":2')),
            "cannot be opened",
        ),
        (seal_to(TRANSPORT.public, msgspec.json.encode(GRANT)[:-1] + b',"more":1}'), "cannot be opened"),
        (b"", "cannot be opened"),
    ],
    ids=["origin", "device code", "code text", "key", "json", "version", "member", "empty"],
)
def test_a_grant_from_elsewhere_is_refused(sealed: bytes, message: str) -> None:
    with pytest.raises(ServerMisbehaved, match=message):
        open_grant(sealed, TRANSPORT, origin=ORIGIN, device_code=DEVICE_CODE)
