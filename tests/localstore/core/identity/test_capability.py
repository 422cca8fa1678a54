"""Capability tokens: what is minted, what narrowing does, and what the guard must never evaluate."""

import faulthandler
import os
from collections.abc import Iterator
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any

import pytest
from biscuit_auth import Biscuit as LibraryBiscuit
from biscuit_auth import BiscuitBuilder, BlockBuilder, KeyPair, PrivateKey, PublicKey
from hypothesis import given, settings
from hypothesis import strategies as st

from localstore.core.errors import Forbidden, Invalid, Unauthorized, Unavailable
from localstore.core.identity import capability
from localstore.core.identity.capability import (
    AUTHORIZE_TIME,
    AUTHORIZE_TRIES,
    Guard,
    Token,
    attenuate,
    mint,
    new_root_key,
    root_public,
)
from localstore.core.identity.keys import DeviceKey

NOW = datetime(2026, 11, 21, 12, 0, 0, tzinfo=UTC)
END = NOW + timedelta(hours=1)
USER, SESSION, REPO = b"u" * 16, b"s" * 16, b"r" * 16
ROOT = bytes(range(32))
ROOT_PUBLIC = root_public(ROOT)
DEVICE = DeviceKey.generate(b"\x07" * 32)
ROOTS = {1: ROOT_PUBLIC}
GUARD = Guard(ROOTS)

GUEST = frozenset({"read", "star", "documents"})
MEMBER = frozenset({"read", "write", "admin", "star", "documents"})


def minted(
    caps: frozenset[str] = MEMBER,
    bound_key: bytes | None = DEVICE.public,
    root: bytes = ROOT,
    number: int = 1,
) -> bytes:
    return mint(
        root, user=USER, session=SESSION, bound_key=bound_key, caps=caps, expires=END, root_key_id=number
    )


def appended(source: str, raw: bytes | None = None) -> bytes:
    """A token to which its holder has appended Datalog of their own."""
    public = PublicKey(f"ed25519/{ROOT_PUBLIC.hex()}")
    token = LibraryBiscuit.from_bytes(raw or minted(), public)
    return bytes(token.append(BlockBuilder(source)).to_bytes())


def refused(raw: bytes) -> str:
    with pytest.raises(Unauthorized) as caught:
        GUARD.inspect(raw)
    assert caught.value.extra == {"reason": "token"}
    return caught.value.detail


@pytest.fixture
def no_hang() -> Iterator[None]:
    """End the run, with a traceback, when a bomb is evaluated: nothing else interrupts the library."""
    faulthandler.dump_traceback_later(30, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()


@pytest.mark.parametrize(
    ("caps", "bound_key"),
    [
        *product([frozenset(), frozenset({"read"}), GUEST, MEMBER], [None, DEVICE.public]),
    ],
)
def test_a_minted_token_has_the_promised_size_and_reads_back(
    caps: frozenset[str], bound_key: bytes | None
) -> None:
    raw = minted(caps, bound_key)
    assert 258 <= len(raw) <= 600
    capability = GUARD.inspect(raw).capability
    assert (capability.user, capability.session) == (USER, SESSION)
    assert (capability.bound_key, capability.caps, capability.expires) == (bound_key, caps, END)
    assert [len(each) for each in capability.revocation_ids] == [64]


@pytest.mark.parametrize(
    "narrowing",
    [{"ops": ["read"]}, {"repo": REPO}, {"ref": "main"}, {"expires": NOW}, {"ops": ["read"], "repo": REPO}],
)
def test_one_attenuation_keeps_the_promised_size(narrowing: dict[str, object]) -> None:
    narrowed = attenuate(minted(), ROOTS, **narrowing)  # type: ignore[arg-type]
    assert 258 <= len(narrowed) <= 600
    GUARD.inspect(narrowed)


def test_new_root_keys_differ() -> None:
    one, two = new_root_key(), new_root_key()
    assert one != two
    assert GUARD.inspect(minted()).capability.user == USER
    other = Guard({1: root_public(one), 2: root_public(two)})
    assert other.inspect(minted(root=one)).capability.user == USER
    assert other.inspect(minted(root=two, number=2)).capability.user == USER
    with pytest.raises(Unauthorized):
        other.inspect(minted(root=two, number=1))
    with pytest.raises(Unauthorized):
        other.inspect(minted(root=one, number=3))


def test_a_token_without_root_key_id_is_refused() -> None:
    builder = BiscuitBuilder('user("x")')
    refused(bytes(builder.build(PrivateKey(f"ed25519-private/{ROOT.hex()}")).to_bytes()))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("user", b"short"),
        ("session", b""),
        ("bound_key", bytes(32)),
        ("bound_key", b"short"),
        ("caps", {'x"}); caps({"admin'}),
        ("caps", {""}),
        ("caps", {f"capability-number-{number}" for number in range(30)}),
        ("expires", datetime(2027, 1, 1)),
    ],
)
def test_mint_refuses_other_shapes(field: str, value: object) -> None:
    good: dict[str, object] = {"user": USER, "session": SESSION, "bound_key": None, "expires": END}
    with pytest.raises(Invalid):
        mint(ROOT, **{**good, "caps": {"read"}, "root_key_id": 1, field: value})  # type: ignore[arg-type]


def test_root_keys_of_another_length_are_refused() -> None:
    with pytest.raises(Invalid):
        root_public(b"short")
    with pytest.raises(Invalid):
        Guard({1: bytes(32)})


def test_check_grants_what_the_token_says() -> None:
    assert GUARD.check(minted(GUEST), NOW, "read", REPO, "main").caps == GUEST
    with pytest.raises(Forbidden, match="write"):
        GUARD.check(minted(GUEST), NOW, "write", REPO)


def test_an_expired_token_says_so() -> None:
    token = GUARD.inspect(minted())
    token.authorize("read", END - timedelta(seconds=1))
    with pytest.raises(Unauthorized) as caught:
        token.authorize("read", END)
    assert caught.value.extra == {"reason": "expired"}


def test_one_inspected_token_authorizes_many_requests() -> None:
    token = GUARD.inspect(attenuate(minted(), ROOTS, ops=["read", "write"], repo=REPO, ref="main"))
    for _ in range(3):
        token.authorize("read", NOW, repo=REPO, ref="main")
        token.authorize("write", NOW, repo=REPO, ref="main")
        for op, repo, ref in [
            ("admin", REPO, "main"),
            ("read", b"x" * 16, "main"),
            ("read", REPO, "other"),
            ("read", REPO, None),
            ("read", None, "main"),
        ]:
            with pytest.raises(Forbidden):
                token.authorize(op, NOW, repo=repo, ref=ref)


def test_a_token_may_be_narrowed_to_an_audience_and_a_request() -> None:
    token = GUARD.inspect(appended('check if aud("node.example"), req(hex:00ff)'))
    token.authorize("read", NOW, audience="node.example", request=b"\x00\xff")
    with pytest.raises(Forbidden):
        token.authorize("read", NOW, audience="evil.example", request=b"\x00\xff")
    with pytest.raises(Forbidden):
        token.authorize("read", NOW)


def test_a_machine_too_busy_to_decide_refuses_for_now(monkeypatch: pytest.MonkeyPatch) -> None:
    token = GUARD.inspect(minted())
    monkeypatch.setattr(capability, "AUTHORIZE_TIME", timedelta(0))
    with pytest.raises(Unavailable):
        token.authorize("read", NOW)


def test_a_panic_of_the_library_is_a_refused_token_and_an_interrupt_stays_one() -> None:
    panic = type("PanicException", (BaseException,), {})

    def raises(error: type[BaseException]) -> Any:
        raise error

    with pytest.raises(Unauthorized):
        capability._unauthorized_on_failure(lambda: raises(panic))
    with pytest.raises(KeyboardInterrupt):
        capability._unauthorized_on_failure(lambda: raises(KeyboardInterrupt))


def test_the_earliest_end_counts() -> None:
    sooner = NOW + timedelta(minutes=5)
    raw = attenuate(attenuate(minted(), ROOTS, expires=sooner), ROOTS, expires=END + timedelta(days=9))
    token = GUARD.inspect(raw)
    assert token.capability.expires == sooner
    with pytest.raises(Unauthorized):
        token.authorize("read", sooner)


@pytest.mark.parametrize(("late", "refused"), [(AUTHORIZE_TRIES - 1, None), (AUTHORIZE_TRIES, Unavailable)])
def test_a_machine_that_is_busy_for_a_moment_refuses_nobody(
    late: int, refused: type[Exception] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = iter([timedelta(0)] * late + [AUTHORIZE_TIME])
    run = Token._run

    def slow(token: Token, *asked: Any) -> None:
        monkeypatch.setattr(capability, "AUTHORIZE_TIME", next(answers))
        run(token, *asked)

    monkeypatch.setattr(Token, "_run", slow)
    with pytest.raises(refused) if refused else nullcontext():
        GUARD.inspect(minted()).authorize("read", NOW)


names = st.sampled_from(["read", "write", "admin"])
places = st.sampled_from([None, REPO, b"x" * 16])
refs = st.sampled_from([None, "main", "topic/a-b.c"])


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(st.none() | st.sets(names, min_size=1), places, refs), min_size=1, max_size=4),
    names,
    places,
    refs,
)
def test_narrowing_is_the_intersection_of_every_block(
    blocks: list[tuple[set[str] | None, bytes | None, str | None]],
    op: str,
    repo: bytes | None,
    ref: str | None,
) -> None:
    raw = minted()
    wanted = [block for block in blocks if block != (None, None, None)]
    for ops, place, branch in wanted:
        raw = attenuate(raw, ROOTS, ops=ops, repo=place, ref=branch)
    allowed = all(
        (ops is None or op in ops) and place in (None, repo) and branch in (None, ref)
        for ops, place, branch in wanted
    )
    token = GUARD.inspect(raw)
    if allowed:
        token.authorize(op, NOW, repo=repo, ref=ref)
    else:
        with pytest.raises(Forbidden):
            token.authorize(op, NOW, repo=repo, ref=ref)


@pytest.mark.parametrize(
    "narrowing",
    [
        {},
        {"ops": []},
        {"ops": ['x") or op("admin']},
        {"ops": ["read\n"]},
        {"ref": 'a", "b'},
        {"ref": "é"},
        {"ref": "r" * 201},
        {"repo": b"r" * 33},
        {"expires": datetime(2026, 1, 1)},
    ],
)
def test_attenuate_refuses_what_the_guard_would_not_read(narrowing: dict[str, object]) -> None:
    with pytest.raises(Invalid):
        attenuate(minted(), ROOTS, **narrowing)  # type: ignore[arg-type]


def test_attenuate_stops_at_the_limits() -> None:
    raw = minted()
    for _ in range(5):
        raw = attenuate(raw, ROOTS, ops=["read"])
    GUARD.inspect(raw)
    with pytest.raises(Invalid, match="too often"):
        attenuate(raw, ROOTS, ops=["read"])
    with pytest.raises(Unauthorized):
        attenuate(b"junk", ROOTS, ops=["read"])
    assert "more than 6 blocks" in refused(appended('check if op("read")', raw))


# Each holds the interpreter for seconds or minutes when it is evaluated, whatever time limit is set.
BOMBS = {
    "join": ";".join(f"a({i})" for i in range(6))
    + ";check if "
    + ",".join(f"a($v{i})" for i in range(12))
    + ",$v0>99",
    "closure": "check if "
    + "".join(f"[0,1,2,3,4,5,6,7].any($v{i} -> " for i in range(10))
    + "$v0>99"
    + ")" * 10,
    "regex": "check if " + " || ".join([r'"a".matches("(\\w{60}){60}")'] * 40),
}


@pytest.mark.usefixtures("no_hang")
@pytest.mark.parametrize("name", BOMBS)
def test_bombs_are_refused_unevaluated(name: str) -> None:
    raw = appended(BOMBS[name])
    assert len(raw) <= 2048, "the guard must refuse it for what it says, not for its size"
    assert "statement that is not allowed" in refused(raw)


@pytest.mark.parametrize(
    "source",
    [
        'caps({"admin"})',
        "user(hex:00)",
        'op("read")',
        "check if true",
        'check if op("read"); caps({"admin"})',
        'caps({"admin"}) <- op($o)',
        "check if op($o)",
        "check if op($o), op($p), op($q)",
        'check if op($o), ["read", "write"].contains($o)',
        'check all op($o), $o == "read"',
        'reject if op("x")',
        'check if op("read") trusting previous',
        "check if time($t), $t < 2030-01-01T00:00:00Z or true",
        "check if time($t), $t > 2020-01-01T00:00:00Z",
        'check if op("é")',
        'check if op("a\\"); check if true")',
        'check if op("a;\\ncheck if op(b")',
        'check if op("")',
        "check if op(1)",
        'check if "x".matches("x")',
        "check if repo(hex:" + "00" * 33 + ")",
        "check if " + ", ".join(['op("a")'] * 6),
    ],
)
def test_other_statements_are_refused(source: str) -> None:
    assert "not allowed" in refused(appended(source))


def test_a_name_that_prints_as_a_statement_is_refused() -> None:
    raw = appended('check if op("a;\ncheck if op")')
    assert b"check if" in raw
    assert "name in it" in refused(raw)


def test_a_block_of_many_statements_is_refused() -> None:
    GUARD.inspect(appended("; ".join(['check if op("read")'] * 8)))
    assert "more than 8 statements" in refused(appended("; ".join(['check if op("read")'] * 9)))


def test_an_empty_block_changes_nothing() -> None:
    GUARD.check(appended(""), NOW, "admin")


def test_third_party_blocks_are_refused() -> None:
    token = LibraryBiscuit.from_bytes(minted(), PublicKey(f"ed25519/{ROOT_PUBLIC.hex()}"))
    stranger = KeyPair()
    block = token.third_party_request().create_block(
        stranger.private_key, BlockBuilder('check if op("read")')
    )
    raw = bytes(token.append_third_party(stranger.public_key, block).to_bytes())
    assert "third-party" in refused(raw)


@pytest.mark.usefixtures("no_hang")
@pytest.mark.parametrize("size", [2049, 5 * 1024 * 1024])
def test_long_tokens_are_refused_unread(size: int) -> None:
    assert "longer than 2048 bytes" in refused(minted() + bytes(size - len(minted())))


@pytest.mark.parametrize(
    "source",
    [
        'user(hex:00); sid(hex:00); caps({"read"}); check if time($t), $t < 2030-01-01T00:00:00Z',
        f'user(hex:{USER.hex()}); sid(hex:{SESSION.hex()}); caps({{"read"}})',
        f'user(hex:{USER.hex()}); caps({{"read"}}); check if time($t), $t < 2030-01-01T00:00:00Z',
        "allowed($x) <- caps($x)",
    ],
)
def test_an_authority_block_of_another_form_is_refused(source: str) -> None:
    builder = BiscuitBuilder(source)
    builder.set_root_key_id(1)
    assert "first block" in refused(
        bytes(builder.build(PrivateKey(f"ed25519-private/{ROOT.hex()}")).to_bytes())
    )


def test_another_encoding_of_a_revoked_token_keeps_its_revocation_id() -> None:
    raw = minted()
    malleated = raw + bytes([0x98, 0x06, 0x01])  # an unknown protobuf field, which readers skip
    narrowed = attenuate(malleated, ROOTS, ops=["read"])
    revoked = GUARD.inspect(raw).capability.revocation_ids[0]
    assert malleated != raw
    assert revoked in GUARD.inspect(malleated).capability.revocation_ids
    assert revoked in GUARD.inspect(narrowed).capability.revocation_ids
    assert revoked not in GUARD.inspect(minted(GUEST)).capability.revocation_ids


def test_a_revoked_signature_has_no_second_spelling() -> None:
    raw = minted()
    (signature,) = GUARD.inspect(raw).capability.revocation_ids
    order = 2**252 + 27742317777372353535851937790883648493
    scalar = int.from_bytes(signature[32:], "little") + order
    refused(raw.replace(signature, signature[:32] + scalar.to_bytes(32, "little")))


def test_caps_cannot_be_widened_by_editing_bytes() -> None:
    raw = minted(frozenset({"read"}))
    at = raw.index(b"caps")
    refused(raw[:at] + b"cbps" + raw[at + 4 :])
    wide = minted(frozenset({"reae"}))
    refused(wide.replace(b"reae", b"read"))


_GOOD = attenuate(minted(), ROOTS, ops=["read"], repo=REPO, expires=END)
_SAYS = GUARD.inspect(_GOOD).capability


@settings(max_examples=500, deadline=None)
@given(st.integers(0, len(_GOOD) - 1), st.binary(max_size=4), st.integers(0, 4))
def test_changed_bytes_are_refused_or_say_the_same(at: int, inserted: bytes, removed: int) -> None:
    try:
        capability = GUARD.inspect(_GOOD[:at] + inserted + _GOOD[at + removed :]).capability
    except Unauthorized:
        return
    assert (capability.user, capability.caps, capability.expires) == (_SAYS.user, _SAYS.caps, _SAYS.expires)
    assert capability.revocation_ids == _SAYS.revocation_ids


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=700))
def test_arbitrary_bytes_are_refused(raw: bytes) -> None:
    refused(raw)


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from(["op", "ref", "aud"]),
    st.text(st.characters(codec="utf-8", exclude_characters='"\\{}\0'), max_size=20),
)
def test_a_stranger_s_names_are_refused_or_harmless(predicate: str, name: str) -> None:
    raw = appended(f'check if {predicate}("{name}")')
    try:
        token = GUARD.inspect(raw)
    except Unauthorized:
        return
    with pytest.raises(Forbidden):
        token.authorize("read", NOW, ref="main", audience=os.devnull)
