"""What loading a lane costs is known before the library sees it: hostile states are refused, honest never."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localstore.core.lane import lane as lanes
from localstore.core.lane.crdt import TextDocument
from localstore.core.lane.lane import Lane
from localstore.core.lane.load_cost import NOWHERE, Weave, load_of, woven
from localstore.core.lane.update_format import STATE_CAPS, Deletion, Struct, Update, parse, validate_state
from localstore.core.model import limits
from localstore.core.model.live import UpdateInvalid
from tests.depth import DEEP
from tests.localstore.core.updates import encode, inserted

A, B = 7, 9


def across(count: int) -> list[Struct]:
    """Each item names its own right neighbour and no left one: it walks over all that came before it."""
    ladder = inserted(A, 0, "r" * count)
    return [ladder, *(inserted(A, count + n, "x", right_origin=(A, n)) for n in range(count))]


def typed(count: int, client: int = A) -> list[Struct]:
    """One letter after the other, each an item that the library joins with those before it."""
    return [inserted(client, n, "x", origin=(client, n - 1) if n else None) for n in range(count)]


def waiting(count: int) -> list[Struct]:
    """As many replicas, each of which waits for the one that is placed after it."""
    return [inserted(A + n, 0, "x", origin=(A + n - 1, 0) if n else None) for n in range(count)]


def cutting(count: int, size: int) -> list[Struct]:
    """One long text, and another replica's letters all over it."""
    letters = [inserted(B, n, "x", origin=(A, 2 * n), right_origin=(A, 2 * n + 1)) for n in range(count)]
    return [inserted(A, 0, "r" * size), *letters]


HOSTILE: dict[str, Callable[[], bytes]] = {
    "112 KB of items that lie across each other": lambda: encode(across(16_000)),
    "letters that were never joined": lambda: encode(typed(100_000)),
    "replicas that wait for each other": lambda: encode(waiting(40_000)),
    "a text of 5 MB cut into pieces": lambda: encode(cutting(1000, 5_000_000)),
    "a text cut into very many pieces": lambda: encode(cutting(100_000, 300_000)),
    "deletions all over a long text": lambda: encode(
        [inserted(A, 0, "r" * 5_000_000)], [Deletion(A, 2 * n, 1) for n in range(1000)]
    ),
}


@pytest.mark.parametrize("make", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_state_that_keeps_the_library_busy_never_reaches_it(
    make: Callable[[], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    if not DEEP:  # counting to the limit takes seconds for each
        monkeypatch.setattr(limits, "LANE_WORK", limits.LANE_WORK // 20)
    state, lane = make(), Lane()
    lane.edit(5, b"good\n")
    monkeypatch.setattr(TextDocument, "apply", lambda *_: pytest.fail("the library has seen it"))
    with pytest.raises(UpdateInvalid, match="too long"):
        Lane.load(state)
    with pytest.raises(UpdateInvalid, match="too long"):
        lane.merge(state)
    assert (lane.text(), lane.sound) == (b"good\n", True)


def test_the_same_in_small_is_a_state_like_any_other() -> None:
    for structs in (across(200), typed(500), waiting(200), cutting(50, 5000)):
        assert len(Lane.load(encode(structs)).text()) == sum(struct.length for struct in structs)


def test_parts_that_wait_for_each_other_are_refused_without_the_library(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "LANE_WORK", 10)
    circle = [inserted(A, 0, "a", origin=(B, 0)), inserted(B, 0, "b", origin=(A, 0))]
    itself = [inserted(A, 0, "ab", origin=(A, 1))]
    for structs in (circle, itself):
        with pytest.raises(UpdateInvalid, match="waiting"):
            woven(validate_state(encode(structs)))


def text_of(weave: Weave, *updates: Update) -> bytes:
    """The text that the woven items show."""
    letters = {
        (struct.client, struct.clock + at): letter
        for update in updates
        for struct in update.structs
        if struct.text is not None
        for at, letter in enumerate(struct.text.decode())
    }
    for update in updates:
        for client, clock, length in update.deletions:
            for unit in range(clock, clock + length):
                letters.pop((client, unit), None)
    shown, item = [], weave._first
    while item != NOWHERE:
        client = weave._client[item]
        shown += [letters.get((client, unit), "") for unit in range(weave._clock[item], weave._end[item])]
        item = weave._after[item]
    return "".join(shown).encode()


@st.composite
def histories(draw: st.DrawFn) -> list[Lane]:
    """Replicas of one lane that edited beside each other and took in some of each other's updates."""
    rng = random.Random(draw(st.integers(0, 2**32)))
    base = Lane.genesis("b", 1, 0, b"one two three\nfour\n" * draw(st.integers(0, 3)))
    devices = [base.copy(replica) for replica in rng.sample(range(1, 50), draw(st.integers(1, 4)))]
    for _ in range(draw(st.integers(1, 25))):
        lane = rng.choice(devices)
        text = lane.text().decode()
        at, cut = rng.randint(0, len(text)), rng.choice((0, 0, 1, 5))
        letters = "".join(rng.choice("abcäx三") for _ in range(rng.randint(0, 4)))
        lane.edit(lane._replica, (text[:at] + letters + text[at + cut :]).encode())
        if rng.random() < 0.3:
            lane.merge(rng.choice(devices).state())
    return devices


@settings(max_examples=150, deadline=None)
@given(histories())
def test_items_are_woven_as_the_library_arranges_them(devices: list[Lane]) -> None:
    states = [validate_state(lane.state()) for lane in devices]
    together = Lane()
    for lane in devices:
        together.merge(lane.state())
    weave = Weave()
    for state in states:
        weave.load(state)
    assert text_of(weave, *states) == together.text()
    whole = validate_state(together.state())
    weave = Weave()
    weave.load(whole)
    assert text_of(weave, whole) == together.text()
    assert weave.spent <= load_of(whole).steps


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_lies_are_woven_as_the_library_arranges_them(data: st.DataObject) -> None:
    ends: dict[int, int] = {}
    structs = []
    for letter in "abcdefghijklmn"[: data.draw(st.integers(1, 14))]:
        points = st.none()
        if ends:
            points |= st.sampled_from(sorted(ends)).flatmap(
                lambda client: st.tuples(st.just(client), st.integers(0, ends[client] - 1))
            )
        client = data.draw(st.sampled_from([3, A, B]))
        struct = inserted(client, ends.get(client, 0), letter * 2, data.draw(points), data.draw(points))
        structs.append(struct)
        ends[client] = struct.clock + 2
    state = validate_state(encode(structs))
    weave = Weave()
    weave.load(state)
    assert text_of(weave, state) == Lane.load(encode(structs)).text()


def test_what_honest_devices_write_is_far_from_the_limit() -> None:
    """A thousand edits of one lane, each of a device that had not seen the others' last ones."""
    rng = random.Random(5)
    relay = Lane.genesis("b", 1, 0, b"".join(b"line %d of the file\n" % n for n in range(300)))
    devices = [relay.copy(replica) for replica in (1, 2, 3, 4)]
    for step in range(1200):
        lane = devices[step % 4]
        text = lane.text()
        at = rng.randrange(len(text))
        edited = text[:at] + rng.choice((b"x", b"word ", b"two\nlines\n")) + text[at + rng.choice((0, 3)) :]
        update = lane.edit(lane._replica, edited)
        relay.accept([update or b""], lane._replica)
        if step % 40 == 39:
            devices = [Lane.load(relay.state(), replica) for replica in (1, 2, 3, 4)]
    whole = parse(relay.state(), STATE_CAPS)
    assert len(whole.structs) > 1500
    assert woven(whole).steps < limits.LANE_WORK // 100
    assert Lane.load(relay.state()).text() == relay.text()


def test_what_the_relay_takes_can_be_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """One limit for both: an update that would make the lane too costly is refused as it comes."""
    monkeypatch.setattr(limits, "LANE_WORK", 50_000)
    lane, taken, refused = Lane(), 0, 0
    lane.accept([encode([inserted(A, 0, "r" * 200)])], A)
    for number in range(400):
        clock = 200 + taken
        try:
            lane.accept([encode([inserted(A, clock, "x", right_origin=(A, number % 200))])], A)
            taken += 1
        except UpdateInvalid as error:
            assert "too long" in str(error)
            refused += 1
        if number % 20 == 0:
            Lane.load(lane.state())
    assert taken > 100
    assert refused > 100
    assert lane.edit(B, lane.text() + b"the end") is not None


def test_deletions_all_over_a_long_text_are_refused_as_they_come() -> None:
    """A text that was appended to is one item; each deletion of 3 bytes would copy all of it."""
    lane, clock = Lane(), 0
    while clock < 2_000_000:
        lane.accept([encode([inserted(A, clock, "r" * 60_000, (A, clock - 1) if clock else None)])], A)
        clock += 60_000
    before = lane.text()
    with pytest.raises(UpdateInvalid, match="too long"):
        lane.accept([encode([], [Deletion(A, 2 * n, 1) for n in range(2000)])], B)
    assert lane.looked > limits.LANE_WORK
    assert lane.text() == before
    lane.accept([encode([], [Deletion(A, 2 * n, 1) for n in range(20)])], B)
    assert len(lane.text()) == len(before) - 20


def test_a_lane_that_was_counted_is_not_counted_again_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    lane = Lane.genesis("b", 1, 0, b"")
    counted: list[Update] = []

    def count(*updates: Update) -> lanes.Load:
        counted.extend(updates)
        return woven(*updates)

    monkeypatch.setattr(lanes, "woven", count)
    for number in range(2000):
        update = lane.copy().edit(A, b"%d\n" % number + lane.text())
        lane.accept([update or b""], A)
    assert len(counted) < 6


def test_a_long_log_is_replayed_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """In one transaction the library would join every letter with all that follow it."""
    monkeypatch.setattr(lanes, "AT_ONCE", 10)
    log = [encode([letter]) for letter in typed(95)]
    joined: list[int] = []
    apply = Lane._absorb

    def absorb(lane: Lane, updates: list[bytes], expected: dict[int, int]) -> None:
        joined.append(len(updates))
        apply(lane, updates, expected)

    monkeypatch.setattr(Lane, "_absorb", absorb)
    lane = Lane()
    lane.replay(log)
    assert (lane.text(), lane.count_units(), joined) == (b"x" * 95, {A: 95}, [10] * 9 + [5])
