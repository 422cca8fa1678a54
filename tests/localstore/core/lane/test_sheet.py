"""Sheets: app and agent write into one text at once, and the app takes back its own."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from localstore.core.lane.crdt import Delta
from localstore.core.lane.lane import Lane
from localstore.core.lane.sheet import AGENT, APP, Sheet, of_agent
from localstore.core.model.live import UpdateInvalid

WORDS = ("one ", "zwei", "\n", "ä", "😀", "  x")


def _sheet(text: str) -> tuple[Sheet, Lane]:
    return Sheet(text.encode(), lambda: 0), of_agent(text.encode())


def _changed(text: bytes, deltas: Sequence[Delta]) -> bytes:
    for delta in deltas:
        at = 0
        for step in delta:
            if "retain" in step:
                at += step["retain"]
            elif "delete" in step:
                text = text[:at] + text[at + step["delete"] :]
            else:
                word = step["insert"].encode()
                text, at = text[:at] + word + text[at:], at + len(word)
    return text


def _place(rng: random.Random, text: bytes) -> int:
    return len(text.decode()[: rng.randint(0, len(text.decode()))].encode())


@pytest.mark.parametrize("seed", range(30))
def test_both_sides_end_with_one_text(seed: int) -> None:
    rng = random.Random(seed)
    app, agent = _sheet("begin\nend\n")
    shown, lane = app.text(), Lane.genesis("b", 1, 0, app.text(), 9)
    to_agent: list[bytes] = []
    to_app: list[bytes] = []
    for _ in range(120):
        match rng.randrange(6):
            case 0 | 1:
                start, end = sorted((_place(rng, shown), _place(rng, shown)))
                end, word = min(end, start + 6), rng.choice(WORDS).encode()
                end = start + len(shown[start:end].decode(errors="ignore").encode())
                to_agent.append(app.splice(start, end - start, word))
                shown = shown[:start] + word + shown[end:]
            case 2:
                updates, deltas = rng.choice((app.undo, app.redo))()
                to_agent += updates
                shown = _changed(shown, deltas)
            case 3:
                text = lane.text().decode()
                at = rng.randint(0, len(text))
                lane.edit(9, (text[:at] + rng.choice(WORDS) + text[at + rng.randint(0, 3) :]).encode())
                update = agent.edit(AGENT, lane.text())
                to_app += [update] if update else []
            case 4 if to_agent:
                lane.repeat(9, agent.follow(to_agent.pop(0), APP))
                assert lane.text() == agent.text()
            case _ if to_app:
                shown = _changed(shown, app.hear(to_app.pop(0)))
        assert app.text() == shown
    for update in to_app:
        shown = _changed(shown, app.hear(update))
    for update in to_agent:
        lane.repeat(9, agent.follow(update, APP))
    assert app.text() == shown == agent.text() == lane.text()


def test_undo_takes_back_ones_own_only() -> None:
    app, agent = _sheet("hello world\n")
    agent.follow(app.splice(5, 0, b" big"), APP)
    update = agent.edit(AGENT, b"HO! hello b-ig world\n")
    assert update is not None
    app.hear(update)
    updates, _ = app.undo()
    for one in updates:
        agent.follow(one, APP)
    assert app.text() == agent.text() == b"HO! hello- world\n"
    assert app.undo() == ([], [])
    for one in app.redo()[0]:
        agent.follow(one, APP)
    assert b" b" in app.text()
    assert app.text() == agent.text()


@pytest.mark.parametrize("update", [b"", b"\x00", b"\x01\x01\x05\x00" * 20, b"\xff" * 40])
def test_what_is_not_an_update_is_refused_and_changes_nothing(update: bytes) -> None:
    _, agent = _sheet("text\n")
    with pytest.raises(UpdateInvalid):
        agent.follow(update, APP)


def test_an_update_in_anothers_name_is_refused() -> None:
    app, agent = _sheet("text\n")
    with pytest.raises(UpdateInvalid):
        agent.follow(app.splice(0, 0, b"a"), AGENT)
