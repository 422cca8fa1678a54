"""Replays the history of a file step by step. The steps are its seals, and the live updates between them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.timer import Timer

from localstore.core.errors import SvcError
from localstore.core.model.history import SealSummary
from svc.flows.history.replay import HistoryStep, steps_of
from tui import contents
from tui.client import sentence
from tui.highlight import ColouredText, colour_text, plain
from tui.screens.code.file_view import FileView
from tui.screens.code.timeline import draw_timeline
from tui.text import Part, ago, brief, safe
from tui.widgets.frame import Line
from tui.widgets.framed import Pane
from tui.widgets.lines import Item, Lines
from tui.widgets.source import Source

if TYPE_CHECKING:
    from tui.screens.repo_page import RepoPage

EACH = 1.0  # seconds of a step while it plays
AHEAD = 3  # steps that are read before they are shown


class ReplayState:
    """The state of a replay. `seals`: the seals whose steps are not read yet, with the next one last.
    `steps`: the steps that are read. `at`: index of the shown step, -1 before the first one."""

    def __init__(self, path: str, seals: list[SealSummary]) -> None:
        self.path, self.seals, self.steps, self.at = path, seals, list[HistoryStep](), -1
        self.coloured = list[ColouredText]()  # of the first steps, as many as have their colours
        self.reading = False

    @property
    def step(self) -> HistoryStep | None:
        return self.steps[self.at] if self.at >= 0 else None

    @property
    def whole(self) -> bool:
        return not self.seals and not self.reading


class Replay(FileView):
    """Replays the history of the open file. The key `p` starts and stops it, and the keys `[` and `]`
    step."""

    def __init__(self, of: RepoPage) -> None:
        super().__init__(of)
        self._playing: ReplayState | None = None
        self._timer: Timer | None = None

    @property
    def replaying(self) -> bool:
        return self._playing is not None

    def do_replay(self) -> None:
        """Start to replay the history of the open file. If a replay is on the screen, pause it, or resume it
        from the shown step."""
        if self._playing is not None:
            self._pause() if self._timer is not None else self._go_on()
            return
        self.take_previewed()
        if self.path is None or self.of.seal is None:
            self.of.say("open a file first: enter", "warn")
            return
        path = self.path
        begun: list[bool] = []

        def paint(seals: list[SealSummary], at: float) -> None:
            if begun or self.path != path:
                return
            begun.append(True)
            if not seals:
                self.of.say("nothing of this file is sealed yet", "warn")
                return
            self._playing = ReplayState(path, list(seals))  # newest first: the oldest is the last
            self._mode = "file"
            self._arrange()
            self._go_on()

        line = contents.history(self.of.repo.id, self.of.ref_name, path, first_parent=True)
        self.svc.load(line, paint)

    def _go_on(self) -> None:
        playing = self._playing
        if playing is None:
            return
        if playing.whole and playing.at == len(playing.steps) - 1:
            playing.at = -1  # again from its beginning
        self._timer = self.set_interval(EACH, self._tick)
        self._tick()

    def _pause(self) -> None:
        if self._timer is not None:
            self._timer.stop()
            self._timer = None
        self._paint_step()

    def leave_replay(self) -> bool:
        """End the replay and show the file again. Returns False if there was no replay."""
        if self._playing is None:
            return False
        self._pause()
        self._playing = None
        self._arrange()
        if self.path is not None:
            self.open_file(self.path)
        return True

    def _tick(self) -> None:
        playing = self._playing
        if playing is not None and playing.whole and playing.at >= len(playing.steps) - 1:
            self._pause()
        else:
            self.step(1)

    def step(self, by: int) -> bool:
        """Show the next step, or with `by` −1 the previous one. Returns False if there is no replay."""
        playing = self._playing
        if playing is None:
            return False
        target = max(0, playing.at + by)
        if target < len(playing.steps):
            playing.at = target
        elif playing.whole:
            self.of.say("this is the newest", "dim")
        if playing.at + AHEAD >= len(playing.steps):
            self._read_more(playing)
        self._paint_step()
        return True

    def by_hand(self, by: int) -> bool:
        """Pause the replay, and show the next step, or with `by` −1 the previous one. Returns False if there
        is no replay."""
        if self._playing is not None and self._timer is not None:
            self._pause()
        return self.step(by)

    def _read_more(self, playing: ReplayState) -> None:
        """Read the steps of the next seal on a thread."""
        if playing.reading or not playing.seals:
            return
        playing.reading = True
        seal = playing.seals.pop()
        before = playing.steps[-1].text if playing.steps else None
        api, repo_id = self.svc.client.api, self.of.repo.id

        def work() -> None:
            try:
                steps = steps_of(api, repo_id, playing.path, seal, before)
            except SvcError as error:
                self.app.call_from_thread(self._broke_off, playing, sentence(error))
                return
            self.app.call_from_thread(self._came, playing, steps)

        self.app.run_worker(work, thread=True, group="replay", exit_on_error=False)

    def _came(self, playing: ReplayState, steps: list[HistoryStep]) -> None:
        playing.reading = False
        if playing is not self._playing or not self.is_attached:
            return
        playing.steps += [step for step in steps if step.text is not None or playing.steps]
        if playing.at < 0 and playing.steps:
            playing.at = 0
        if playing.at + AHEAD >= len(playing.steps):
            self._read_more(playing)
        self._paint_step()
        self._colour(playing)

    def _colour(self, playing: ReplayState) -> None:
        """Colour the texts of the steps in order, on a thread. Stop at the first one that cannot be
        coloured."""
        first = len(playing.coloured)
        texts = [(step.text or b"").decode() for step in playing.steps[first:]]

        def work() -> None:
            for place, text in enumerate(texts, first):
                lines = colour_text(text, playing.path)
                if lines is None or playing is not self._playing:
                    return
                self.app.call_from_thread(self._step_coloured, playing, place, lines)

        self.app.run_worker(work, thread=True, group="highlight", exclusive=True, exit_on_error=False)

    def _step_coloured(self, playing: ReplayState, place: int, lines: ColouredText) -> None:
        if place == len(playing.coloured):
            playing.coloured.append(lines)
            if playing is self._playing and place == playing.at:
                self._paint_step()

    def _broke_off(self, playing: ReplayState, why: str) -> None:
        playing.reading, playing.seals = False, []
        if playing is self._playing and self.is_attached:
            self.of.say(why, "warn")
            self._pause()

    # --- what is painted

    def _paint_step(self) -> None:
        playing = self._playing
        if playing is None or not self.is_attached:
            return
        step, lines = playing.step, self.query_one("#file", Lines)
        self._paint_bars(playing)
        self.of.show_keys()
        if step is None:
            lines.show([Item(1, (("reading …", "dim"),))])
            return
        self.query_one("#picture").display = False
        if step.text is None:
            lines.show([Item(1, (("there is no text of it in this seal", "dim"),))])
        else:
            highlighted = playing.at < len(playing.coloured)
            text = playing.coloured[playing.at] if highlighted else plain(step.text.decode())
            lines.show(Source(text, now=self.svc.clock(), changed=step.lines, tints=self.svc.tints))
            if step.lines:
                lines.go_within(step.lines[0] - 1)
        self._title("replay")

    @property
    def replay_label(self) -> str:
        """What the key `p` does during a replay."""
        playing = self._playing
        if playing is None or self._timer is not None:
            return "pause"
        return "play again" if playing.whole and playing.at == len(playing.steps) - 1 else "go on"

    def _paint_bars(self, playing: ReplayState) -> None:
        """Paint the time line and, below it, the line about the shown step."""
        now, steps = self.svc.clock(), playing.steps
        self.query_one("#bar", Line).put(self._parts_of(playing))
        first, last = (f"{brief(steps[end].at, now)} " if steps else "" for end in (0, -1))
        room = self.app.size.width - (6 if self.wide else 4) - len(first) - len(last)
        line = draw_timeline([step.live for step in steps], playing.at, room, playing.whole)
        self.query_one("#timeline", Line).put(((f" {first}", "dim"), *line, (f" {last}", "dim")))
        if self.wide:
            more = "" if playing.whole else " or more"
            pane = self.query_one("#bar_pane", Pane)
            pane.name_frame("replay", f"step {playing.at + 1} of {len(steps)}{more}" if steps else "")

    def _parts_of(self, playing: ReplayState) -> list[Part]:
        """Returns parts of a line that say who made the shown step, and when."""
        sign = "▶ " if self._timer is not None else "❚❚ "
        parts: list[Part] = [(f" {sign}", "accent")]
        step = playing.step
        if step is None:
            return [*parts, ("reading …", "dim")]
        more = "" if playing.whole else "+"
        parts.append((f"{playing.at + 1}/{len(playing.steps)}{more}  ", "accent"))
        parts.append((f"@{safe(step.who or '?')} ", "name"))
        parts.append((f"{ago(step.at, self.svc.clock())}  ", "text"))
        if step.lines or step.removed:
            parts += [(f"+{len(step.lines)} ", "good"), (f"−{step.removed}  ", "bad")]
        what = "edited live" if step.live else f"sealed {step.seal[:8]} «{safe(step.message)}»"
        return [*parts, (what, "text")]
