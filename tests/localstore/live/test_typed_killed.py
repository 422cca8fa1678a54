"""An agent that is killed while it keeps what an editor plugin told; the plugin then saves the file.

What the plugin saves has the letters that it told. Whether they were in the lane, in the file or in neither
when the agent was killed: each is there once afterwards, and so is what others wrote meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from localstore.core.lane.editor_text import EditorText
from localstore.live.rounds import Rounds
from localstore.live.sheets import OpenSheet
from localstore.sync.working_copy import WorkingCopy
from tests.localstore.live.test_rounds import Side
from tests.localstore.model_relay import ModelRelay
from tests.localstore.place import Place

FILE = "a.txt"
FIRST = "alpha beta gamma\nsecond line\n"
TOUCHES = ("create", "exchange", "move", "remove", "open", "open_with_stat")  # of the folder


class Killed(BaseException):
    """The process is gone: nothing may catch this."""


class Shown:
    """A plugin that shows a text, as the agent knows it."""

    def __init__(self, text: bytes) -> None:
        self.text = EditorText(text, "bytes")

    def edits(self, path: str) -> bool:
        return path == FILE

    def shows(self, path: str, name: bytes) -> bool:
        return self.text.shows(name)

    def plugin_texts(self, path: str) -> list[bytes]:
        return [self.text.text]


@contextmanager
def killed(copy: WorkingCopy, number: int) -> Iterator[None]:
    """Die before or after the step number `number` of the record or the folder."""
    left = [number]

    def count() -> None:
        left[0] -= 1
        if left[0] < 0:
            raise Killed

    step = copy.db.step

    @contextmanager
    def fragile() -> Iterator[None]:
        count()
        with step():
            yield
            count()
        count()

    def touched(real: Callable[..., Any]) -> Callable[..., Any]:
        def touch(*given: Any, **named: Any) -> Any:
            count()
            found = real(*given, **named)
            count()
            return found

        return touch

    copy.db.step = fragile  # type: ignore[method-assign]
    for name in TOUCHES:
        setattr(copy.files, name, touched(getattr(copy.files, name)))
    yield


class Editing:
    """Ann writes lines on her device; a plugin edits the text on Bob's."""

    def __init__(self, base: Path) -> None:
        base.mkdir()
        relay = ModelRelay()
        ann, bob = Place(base, relay, "ann"), Place(base, relay, "bob")
        ann.write(FILE, FIRST)
        ann.push("One")
        bob.pull()
        self.ann, self.bob = Side(ann), Side(bob)
        self.bob.bring()

    def type(self, number: int) -> bool:
        """The plugin opens the text, a line of Ann's arrives that it does not see, and it types a letter.
        Returns whether the agent died in that."""
        rounds = self.bob.rounds
        with self.bob.place.device() as copy:
            rounds.begin(copy, None)
            sheet = OpenSheet(copy, FILE, "")
            rounds.buffers.editors = shown = Shown(sheet.text)
            rounds.finish(copy)
        self.ann.save(FILE, self.ann.text(FILE) + "by ann\n")
        self.bob.bring()
        with self.bob.place.device() as copy:
            rounds.begin(copy, None)
            sheet.follow(copy)
            update = shown.text.change(1, [(0, 0, "b")])
            try:
                with killed(copy, number):
                    rounds.capture_typed(copy, sheet, [update], 1)
                    rounds.finish(copy)
            except Killed:
                return True
        return False

    def restart(self) -> None:
        """Another agent, which no editor has told anything yet."""
        self.bob.rounds.close()
        self.bob.rounds = Rounds()

    def save(self, text: str, by_rename: bool) -> None:
        """The plugin saves what it shows."""
        file = self.bob.place.folder / FILE
        if by_rename:
            file.with_name("beside.tmp").write_text(text)
            file.with_name("beside.tmp").replace(file)
        else:
            file.write_text(text)

    def close(self) -> None:
        self.ann.rounds.close()
        self.bob.rounds.close()


@pytest.mark.parametrize("then", ["the next agent looks", "svc push comes first"])
@pytest.mark.parametrize("by_rename", [False, True], ids=["in place", "by rename"])
def test_each_letter_is_there_once_wherever_the_agent_was_killed(
    tmp_path: Path, by_rename: bool, then: str
) -> None:
    for number in range(200):
        here = Editing(tmp_path / str(number))
        died = here.type(number)
        here.restart()
        here.save(FIRST.replace("alpha beta", "before alpha during beta"), by_rename)
        if then == "svc push comes first":
            here.bob.place.push("Two")
        else:
            here.bob.run(lambda copy, here=here: here.bob.rounds.capture_saved(copy, [FILE]))  # type: ignore[misc]
        here.bob.bring()
        here.ann.bring()
        files = here.bob.place.files()
        here.close()
        assert sorted(files) == [FILE], number
        assert files[FILE].decode() == "before alpha during beta gamma\nsecond line\nby ann\n", number
        assert here.ann.text(FILE) == files[FILE].decode(), number
        if not died:
            assert number > 8
            return
    pytest.fail("it never came to its end")
