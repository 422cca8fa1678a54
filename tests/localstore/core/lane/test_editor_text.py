"""An editor plugin and the agent write into one text at once, each with what is on its way to the other."""

from __future__ import annotations

import random
from collections import deque
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from localstore.core.encoding import digest
from localstore.core.errors import Invalid
from localstore.core.lane.editor_text import SHOWN_SECONDS, SPLICES, EditorChange, EditorText
from localstore.core.lane.sheet import AGENT, APP, of_agent
from localstore.core.lane.splice import Splice, Unit

LETTERS = "ab\nä😀 "
UNITS: tuple[Unit, ...] = ("bytes", "utf16", "characters")


def _units(text: str, unit: Unit) -> int:
    match unit:
        case "bytes":
            return len(text.encode())
        case "utf16":
            return len(text.encode("utf-16-le")) // 2
    return len(text)


def _cut(text: str, unit: Unit, at: int) -> tuple[str, str]:
    codec = {"bytes": "utf-8", "utf16": "utf-16-le", "characters": "utf-32-le"}[unit]
    size = {"bytes": 1, "utf16": 2, "characters": 4}[unit]
    data = text.encode(codec)
    return data[: at * size].decode(codec), data[at * size :].decode(codec)


def _spliced(text: str, unit: Unit, splices: list[Splice]) -> str:
    """What an editor makes of splices."""
    for offset, deleted, inserted in splices:
        before, rest = _cut(text, unit, offset)
        text = before + inserted + _cut(rest, unit, deleted)[1]
    return text


class Sent(NamedTuple):
    number: int
    seen: int
    splices: list[Splice]


class Plugin:
    """What a plugin does, as the guide describes it."""

    def __init__(self, text: str, unit: Unit) -> None:
        self.text, self.unit = text, unit
        self.number = self.seen = 0

    def type(self, at: int, deleted: int, word: str) -> Sent:
        gone, before = self.text[at : at + deleted], self.text[:at]
        self.text = before + word + self.text[at + len(gone) :]
        self.number += 1
        splice = (_units(before, self.unit), _units(gone, self.unit), word)
        return Sent(self.number, self.seen, [splice])

    def make(self, change: EditorChange) -> Sent | None:
        """Returns what it says when it made the change; None: dropped."""
        if change.after != self.number:
            return None
        assert change.number == self.seen + 1
        self.text, self.seen = _spliced(self.text, self.unit, change.splices), change.number
        return Sent(0, self.seen, [])


class Race:
    """A plugin and the agent, and what is on its way between them. `words`: what both have written."""

    def __init__(self, unit: Unit, seed: int) -> None:
        self.rng = random.Random(seed)
        first = "".join(self.rng.choices(LETTERS, k=30))
        self.plugin, self.agent = Plugin(first, unit), EditorText(first.encode(), unit)
        self.lane = of_agent(first.encode())
        self.to_agent: deque[Sent] = deque()
        self.to_plugin: deque[EditorChange] = deque()
        self.words: list[str] = []

    def step(self) -> None:
        match self.rng.randrange(5):
            case 0 | 1:
                self.type()
            case 2:
                self.write()
            case 3:
                self.agent_hears()
            case _:
                self.plugin_hears()

    def type(self) -> None:
        """The plugin writes a word, and may delete a letter there."""
        text = self.plugin.text
        at = self._place(text)
        deleted = self.rng.randrange(2) if text[at : at + 1] in tuple(LETTERS) else 0
        self.to_agent.append(self.plugin.type(at, deleted, self._word()))

    def write(self) -> None:
        """Somebody else writes a word."""
        text = self.lane.text().decode()
        at = self._place(text)
        update = self.lane.edit(AGENT, (text[:at] + self._word() + text[at:]).encode())
        assert update is not None
        self.agent.hear(update)
        self._tell()

    def agent_hears(self) -> None:
        if self.to_agent:
            sent = self.to_agent.popleft()
            self.agent.see(sent.seen)
            if sent.number:
                self.lane.follow(self.agent.change(sent.number, sent.splices), APP)
            self._tell()

    def plugin_hears(self) -> None:
        said = self.plugin.make(self.to_plugin.popleft()) if self.to_plugin else None
        if said is not None:
            self.to_agent.append(said)

    def _tell(self) -> None:
        change = self.agent.next()
        if change is not None:
            self.to_plugin.append(change)

    def _word(self) -> str:
        self.words.append(f"<{len(self.words)}>")
        return self.words[-1]

    def _place(self, text: str) -> int:
        return self.rng.choice([at for at in range(len(text) + 1) if not _inside(text, at)])


@pytest.mark.parametrize("unit", UNITS)
@given(seed=some.integers(0, 1 << 32))
@settings(max_examples=60, deadline=None)
def test_both_end_with_one_text_and_no_word_is_lost_or_doubled(unit: Unit, seed: int) -> None:
    race = Race(unit, seed)
    for _ in range(60):
        race.step()
    while race.to_agent or race.to_plugin:
        race.agent_hears()
        race.plugin_hears()
    assert race.plugin.text.encode() == race.agent.text == race.lane.text()
    assert [race.plugin.text.count(word) for word in race.words] == [1] * len(race.words)


def _inside(text: str, at: int) -> bool:
    """Whether the place is inside a word."""
    return text[:at].count("<") > text[:at].count(">")


def test_a_change_on_its_way_is_dropped_by_who_typed_and_comes_again_in_the_text_as_it_is_then() -> None:
    agent, lane = EditorText(b"one two", "bytes"), of_agent(b"one two")
    update = lane.edit(AGENT, b"one more two")
    assert update is not None
    agent.hear(update)
    assert agent.next() == (1, 0, [(4, 0, "more ")])
    agent.hear(lane.edit(AGENT, b"one more two!") or b"")
    assert agent.next() is None  # one at a time
    agent.see(0)
    lane.follow(agent.change(1, [(0, 3, "ONE and")]), APP)
    assert lane.text() == b"ONE and more two!"
    assert agent.next() == (1, 1, [(8, 0, "more "), (16, 0, "!")])
    agent.see(1)
    assert agent.text == b"ONE and more two!"
    assert agent.next() is None


def test_words_of_others_stay_in_their_place_where_one_splice_spans_them() -> None:
    first = "alpha beta gamma\nsecond ä😀 line\n"
    for unit in UNITS:
        agent, lane = EditorText(first.encode(), unit), of_agent(first.encode())
        agent.hear(lane.edit(AGENT, first.replace("beta", "OTHER beta").encode()) or b"")
        new = f"before ü\n{first.replace('line', 'line!')}"
        lane.follow(agent.change(1, [(0, _units(first, unit), new)]), APP)
        assert lane.text().decode() == new.replace("beta", "OTHER beta")
        assert agent.text.decode() == new


def test_a_splice_that_leads_to_the_same_text_is_a_change_that_edits_nothing() -> None:
    agent, lane = EditorText(b"one two", "bytes"), of_agent(b"one two")
    agent.hear(lane.edit(AGENT, b"one more two") or b"")
    assert agent.next() == (1, 0, [(4, 0, "more ")])
    assert agent.change(1, [(0, 7, "one two")]) == b""
    assert agent.next() == (1, 1, [(4, 0, "more ")])  # the plugin dropped the first one
    agent.see(1)
    assert (agent.made, agent.text) == (1, b"one more two")


def test_what_is_not_a_change_is_refused_and_changes_nothing() -> None:
    for unit in UNITS:
        agent = EditorText("ä😀".encode(), unit)
        end = _units("ä😀", unit)
        bad: list[list[Splice]] = [
            [],
            [(0, 0, "")],
            [(-1, 0, "x")],
            [(0, -1, "x")],
            [(end + 1, 0, "x")],
            [(0, end + 1, "")],
            [(1 << 80, 0, "x")],
            [(0, 0, "a\0b")],
            [(0, 0, "x")] * (SPLICES + 1),
            [(0, 0, "good"), (99, 0, "x")],
        ]
        if unit != "characters":
            bad += [[(end - 1, 0, "x")], [(0, end - 1, "")]]
        for splices in bad:
            with pytest.raises(Invalid):
                agent.change(1, splices)
        for number in (0, 2, -1):
            with pytest.raises(Invalid):
                agent.change(number, [(0, 0, "x")])
        for number in (1, -1):
            with pytest.raises(Invalid):
                agent.see(number)
        assert agent.text == "ä😀".encode()
        assert agent.made == 0
        agent.change(1, [(end, 0, "!")])
        assert agent.text == "ä😀!".encode()


def test_a_text_that_was_shown_a_moment_ago_is_one_that_may_be_saved() -> None:
    clock = [100.0]
    agent = EditorText(b"a", "bytes", lambda: clock[0])
    agent.change(1, [(1, 0, "b")])
    assert agent.shows(digest(b"a"))
    assert agent.shows(digest(b"ab"))
    clock[0] += SHOWN_SECONDS + 1
    assert not agent.shows(digest(b"a"))
    assert agent.shows(digest(b"ab"))
