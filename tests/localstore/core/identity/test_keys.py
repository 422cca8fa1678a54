"""Keys: published vectors, keys that must be refused, sealed boxes, registration statements."""

import base64

import pytest

from localstore.core.errors import Invalid, SignatureInvalid
from localstore.core.identity.keys import (
    DeviceKey,
    TransportKey,
    check_ed25519,
    check_x25519,
    key_id,
    registration_bytes,
    seal_to,
    sign_registration,
    verify,
    verify_registration,
)

ORIGIN, ACCOUNT = "https://node.example", "acc-1"
FIELD_PRIME = 2**255 - 19


def le(number: int) -> bytes:
    return number.to_bytes(32, "little")


# The orders of the small subgroup of edwards25519, and encodings with y ≥ p.
SMALL_ORDER_ED25519 = [
    le(0),
    le(1),
    le(FIELD_PRIME - 1),
    bytes.fromhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"),
    bytes.fromhex("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a"),
    le(FIELD_PRIME),
    le(FIELD_PRIME + 1),
]
LOW_ORDER_X25519 = [
    le(0),
    le(1),
    le(FIELD_PRIME - 1),
    bytes.fromhex("e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800"),
    bytes.fromhex("5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157"),
]


def test_rfc_8032_vector() -> None:
    key = DeviceKey.generate(
        bytes.fromhex("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb")
    )
    assert key.public.hex() == "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c"
    signature = key.sign(b"\x72")
    assert signature.hex() == (
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
        "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"
    )
    assert verify(key.public, b"\x72", signature)
    assert not verify(key.public, b"\x73", signature)


def test_rfc_8037_thumbprint() -> None:
    public = base64.urlsafe_b64decode("11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo=")
    assert key_id(public) == "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"


def test_two_generated_keys_differ_and_keep_their_secret_out_of_their_text() -> None:
    one, two = DeviceKey.generate(), DeviceKey.generate()
    assert one.id != two.id
    assert one.seed.hex() not in repr(one)
    assert repr(one) == f"DeviceKey({one.id})"
    assert DeviceKey.generate(one.seed).public == one.public
    box = TransportKey.generate()
    assert TransportKey.generate(box.secret).public == box.public
    assert repr(box.secret) not in repr(box)


@pytest.mark.parametrize("seed", [b"", b"\0" * 31, b"\0" * 33])
def test_seeds_of_another_length_are_refused(seed: bytes) -> None:
    with pytest.raises(Invalid):
        DeviceKey.generate(seed)
    with pytest.raises(Invalid):
        TransportKey.generate(seed)


@pytest.mark.parametrize("public", SMALL_ORDER_ED25519, ids=lambda key: key.hex()[:8])
def test_small_order_and_non_canonical_ed25519_keys_are_refused(public: bytes) -> None:
    with pytest.raises(Invalid):
        check_ed25519(public)
    with pytest.raises(Invalid):
        check_ed25519(public[:31] + bytes([public[31] | 0x80]))


@pytest.mark.parametrize("public", LOW_ORDER_X25519, ids=lambda key: key.hex()[:8])
def test_low_order_x25519_keys_are_refused(public: bytes) -> None:
    with pytest.raises(Invalid, match="low order"):
        check_x25519(public)
    with pytest.raises(Invalid):
        seal_to(public, b"secret")


@pytest.mark.parametrize("public", [le(FIELD_PRIME), le(FIELD_PRIME + 9), le(2**255 + 9), b"", b"\x09" * 33])
def test_non_canonical_x25519_keys_are_refused(public: bytes) -> None:
    with pytest.raises(Invalid, match="canonical"):
        check_x25519(public)


def test_good_keys_pass() -> None:
    check_ed25519(DeviceKey.generate().public)
    check_x25519(TransportKey.generate().public)


def test_nothing_verifies_under_a_small_order_key() -> None:
    assert not verify(le(1), b"any message", le(1) + bytes(32))


@pytest.mark.parametrize(
    ("public", "signature"), [(b"", bytes(64)), (bytes(32), b""), (bytes(31), bytes(64))]
)
def test_verify_of_wrong_lengths_is_false(public: bytes, signature: bytes) -> None:
    assert verify(public, b"", signature) is False


def test_a_signature_has_one_encoding() -> None:
    key = DeviceKey.generate(bytes(32))
    signature = key.sign(b"m")
    order = 2**252 + 27742317777372353535851937790883648493
    doubled = signature[:32] + le(int.from_bytes(signature[32:], "little") + order)
    assert not verify(key.public, b"m", doubled)


def test_only_the_transport_key_opens_the_box() -> None:
    key = TransportKey.generate()
    sealed = seal_to(key.public, b"secret")
    assert len(sealed) == len(b"secret") + 48
    assert key.unseal(sealed) == b"secret"
    for bad in (sealed[:-1], sealed[:-1] + bytes([sealed[-1] ^ 1]), b"", bytes(48)):
        with pytest.raises(Invalid):
            key.unseal(bad)
    with pytest.raises(Invalid):
        TransportKey.generate().unseal(sealed)


def test_a_registration_speaks_for_one_key_one_account_one_origin() -> None:
    key = DeviceKey.generate()
    signature = sign_registration(key, ORIGIN, ACCOUNT)
    verify_registration(ORIGIN, ACCOUNT, key.public, signature)
    other = DeviceKey.generate().public
    for origin, account, public in [
        ("https://evil.example", ACCOUNT, key.public),
        (ORIGIN, "acc-2", key.public),
        (ORIGIN, ACCOUNT, other),
    ]:
        with pytest.raises(SignatureInvalid):
            verify_registration(origin, account, public, signature)
    with pytest.raises(Invalid):
        verify_registration(ORIGIN, ACCOUNT, le(1), signature)


def test_registration_bytes_do_not_run_together() -> None:
    assert registration_bytes("ab", "c", bytes(32)) != registration_bytes("a", "bc", bytes(32))
    assert registration_bytes(ORIGIN, ACCOUNT, bytes(32)).startswith(b"svc-device-registration-v1\0")
