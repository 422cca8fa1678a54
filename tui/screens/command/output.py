"""Runs a command of svc and shows its output."""

from __future__ import annotations

import shlex
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.text import Text
from textual.app import ComposeResult

from localstore.core.errors import Cancelled, SvcError
from tui.actions import Action
from tui.asked import DONE
from tui.client import sentence
from tui.commands import Commands, parse_values
from tui.screens.base import LABEL, Base, Over, PromptQuestion
from tui.screens.command.named import names_in, open_named
from tui.screens.command.printed import is_head, rows_of
from tui.text import Part, ago, safe
from tui.widgets.frame import YES_OR_NO
from tui.widgets.framed import draw_frame
from tui.widgets.lines import Item, Lines
from tui.widgets.sheet import Sheet
from tui.wording import is_unreached, reason_unreached

if TYPE_CHECKING:
    from tui.asked import AskedApp

RUNNING: Part = ("running", "dim")
SUCCEEDED: Part = (DONE, "good")
FRAME = 4  # columns of the frame around the output, with its blanks
OVER_TIME = 1.0  # seconds between the first and the last line of a command that does not print all at once
LATE = 2.0  # seconds after which a command that still runs gets a screen
REASONS = 3  # lines of the reason of a failure that are said in place
ERROR = "svc: "
YES = "--yes"
USAGE = "exit 2"  # the state of a command whose line it does not understand
READ_ON = ("Usage: ", "Read on: ")  # beginnings of lines that a message has no room for
CHANGES = ("diff", "show", "pr diff")  # commands that print changes of files
BY_NAME = ("repo delete", "org delete")  # commands whose question is answered with a name
# Commands → the key of the tab that shows the same.
READ_BY_TABS = {
    "repo view": "1",
    **dict.fromkeys(("issue list", "issue status", "pr list", "pr status"), "3"),
    "repo run list": "4",
    "repo release list": "5",
    "advisories": "6",
    "repo protect list": "8",
}
MAY_FAIL = "what needs the server may wait or fail"
NOTHING_DONE = "nothing was done"


def inner_width(width: int) -> int:
    """The columns of an output on a screen of `width` columns, without the frame."""
    return max(20, width - FRAME)


class Command:
    """A command of svc that runs in a separate process. `text`: its output so far. `state`: whether it runs
    or how it has ended, as a part. `question`: what the user has to confirm before the command does anything,
    "" if nothing. `show`: called with `text` and `state` while the command runs, and at its end."""

    def __init__(
        self,
        words: list[str],
        folder: Path | None,
        commands: Commands,
        show: Callable[[str, Part], None] = lambda text, state: None,
    ) -> None:
        self.words, self._folder, self._commands = words, folder, commands
        self.show = show
        self.text, self.state, self.question = "", RUNNING, ""
        self.began_at = self.ended_at = time.monotonic()
        self.printed_at: float | None = None  # when the first text came
        self.begun = False
        self._stopped = threading.Event()

    @property
    def path(self) -> str:
        """The command without its arguments, such as `issue list`."""
        return self._commands.path_in(self.words)

    @property
    def values(self) -> dict[str, str]:
        """The values that its words give to its parameters, by name."""
        fields = self._commands.fields(self.path)
        return parse_values(fields, self.words[len(self.path.split()) :]) or {}

    @property
    def runs(self) -> bool:
        return self.state == RUNNING

    @property
    def prints_over_time(self) -> bool:
        """Whether the command prints its lines one after the other, such as while it waits for something, and
        not all at once."""
        return self.printed_at is not None and self.ended_at - self.printed_at >= OVER_TIME

    def stop(self) -> None:
        self._stopped.set()

    def begin(self, app: AskedApp, width: int) -> None:
        """Run the command on a thread. Its output is formatted for `width` columns. `app`: the app, needed
        here because the screen may be closed before the command ends."""
        self.begun, self.began_at = True, time.monotonic()
        app.run_worker(lambda: self._run(app, width), thread=True, exit_on_error=False)

    def _run(self, app: AskedApp, width: int) -> None:
        try:
            response = self._commands.run(
                self.words,
                self._folder,
                width,
                lambda: self._stopped.is_set() or not app.is_running,
                lambda text: app.later(lambda: self._tell(text, RUNNING)),
            )
        except Cancelled:
            app.later(lambda: self._tell("it was stopped", ("stopped", "warn")))
            return
        except (SvcError, OSError) as error:
            message = sentence(error)
            app.later(lambda: self._tell(message, ("failed", "bad")))
            return
        data = response.data if isinstance(response.data, dict) else {}
        text = str(data.get("text", "")) or (response.error.message if response.error else "")
        state: Part = SUCCEEDED if response.success else (f"exit {data.get('code', 1)}", "bad")
        question = "" if response.success else str(data.get("question", ""))
        app.later(lambda: self._tell(text, state, question))
        app.later(app.command_ended)

    def _tell(self, text: str, state: Part, question: str = "") -> None:
        self.question = question
        self.text, self.state, self.ended_at = text, state, time.monotonic()
        if text and self.printed_at is None:
            self.printed_at = self.ended_at
        self.show(text, state)

    def with_yes(self) -> Command:
        """Returns the same command, with the option that confirms its question."""
        count = len(self.path.split())
        return Command([*self.words[:count], YES, *self.words[count:]], self._folder, self._commands)

    def asks_on(self, screen: Base) -> bool:
        """Returns whether the command has a question that the screen can ask now."""
        return bool(self.question) and screen.in_front and screen.is_idle

    def ask_on(self, screen: Base, confirmed: Callable[[], None], refused: Callable[[], None]) -> None:
        """Ask the question of the command in a frame over a screen. What cannot be undone at once is
        confirmed by a name. `confirmed`, `refused`: called with the answer."""
        name = self.question.split()[-1]
        by_name = self.path in BY_NAME
        expected = name if by_name else "y"

        def answer(typed: str) -> None:
            if (typed.strip() if by_name else typed.strip().lower()) == expected:
                confirmed()
            else:
                refused()

        words = f"To do it, type {name}." if by_name else "Go on?"
        screen.ask(
            name if by_name else "",
            answer,
            on_leave=refused,
            label=f"{'its name' if len(name) < LABEL else 'type it'}:" if by_name else "",
            answers=() if by_name else YES_OR_NO,
            question=PromptQuestion(f"{self.question}. {words}", f"svc {self.path}", True),
        )

    @property
    def brief(self) -> str | None:
        """The output of an ended command on one line: a sentence, or why the command failed. None if the
        output is too long for that."""
        lines = [line for line in self._printed if not line.startswith(READ_ON)]
        if len(lines) == 1 and is_head(lines[0]):
            return "nothing to list"
        if len(lines) > (1 if self.state == SUCCEEDED else REASONS):
            return None
        return " ".join(" ".join(line.removeprefix(ERROR).split()) for line in lines)

    @property
    def fault(self) -> str:
        """What is wrong with the command line. "" if the command understands it."""
        return (self.brief or self.summary) if self.state[0] == USAGE and not self.question else ""

    @property
    def summary(self) -> str:
        """The command, how it ended, and the first line that it printed."""
        first = "".join(line.removeprefix(ERROR) for line in self._printed[:1])
        return f"{shlex.join(self.words[:2])}: {self.state[0]}{f'; {first} …' if first else ''}"

    @property
    def _printed(self) -> list[str]:
        """The lines that the command printed. Blank lines are left out."""
        return [line.strip() for line in Text.from_ansi(self.text).plain.splitlines() if line.strip()]


def run_here(
    app: AskedApp,
    screen: Base,
    command: Command,
    doing: str,
    ended: Callable[[bool], None] = lambda succeeded: None,
    mend: Callable[[str], None] | None = None,
) -> None:
    """Run a command of svc without leaving the screen. The screen says `doing` until the command has ended,
    and then what it printed. If the output is more than a line, or the command takes long, a screen for the
    output opens. `ended`: called with whether the command succeeded. `mend`: called with what is wrong if
    the command does not understand its line, so that the user can correct it."""
    opened: list[Output] = []

    def show(text: str, state: Part) -> None:
        if command.runs:
            return
        if not opened and command.asks_on(screen):
            _ask_first(app, screen, command, doing, ended)
            return
        words, succeeded = command.brief, state == SUCCEEDED
        if words is not None:
            _leave(screen, opened)  # it has nothing more to show than the message
        ended(succeeded)
        if opened:
            screen.stale = True
            return
        if mend is not None and _may_mend(command, screen):
            mend(command.fault)
            return
        if words is None:
            _open_output(app, screen, command, opened)
        if not opened:
            _say_in_front(app, screen, command, words or command.summary, succeeded)
        _renew(screen)

    def late() -> None:
        if command.runs:
            _open_output(app, screen, command, opened)

    command.show = show
    offline = app.news.state == "offline"
    screen.say(f"◐ {doing}{f' · {MAY_FAIL}' if offline else ''}", "warn" if offline else "dim")
    screen.set_timer(LATE, late)
    command.begin(app, inner_width(screen.app.size.width))


def _open_output(app: AskedApp, screen: Base, command: Command, opened: list[Output]) -> None:
    """Open the screen for the output of a command over `screen`, if nothing else is open there."""
    if screen.in_front and screen.is_idle and not opened:
        screen.say("")
        opened.append(Output(command))
        app.push_screen(opened[0])


def _leave(screen: Base, opened: list[Output]) -> None:
    """Leave the screen for an output, if it was opened over `screen` and is in front."""
    if opened and opened[0].in_front:
        screen.app.pop_screen()
        opened.clear()


def _may_mend(command: Command, screen: Base) -> bool:
    return bool(command.fault) and screen.in_front and screen.is_idle


def _say_in_front(app: AskedApp, screen: Base, command: Command, words: str, succeeded: bool) -> None:
    """Say the answer of a command on the screen from which it was run or, if another one is in front, on
    that."""
    front = screen if screen.in_front else app.screen
    if not isinstance(front, Base):
        return
    if not succeeded and is_unreached(words):
        front.say_unreached(_describe_unreached(command, front, words), waits=True)
    else:
        front.say(words, "text" if succeeded else "bad")


def _describe_unreached(command: Command, front: Base, words: str) -> str:
    """Returns a sentence about a command that could not ask the server. If it lists what a tab of the shown
    repository also lists, the sentence names the key of that tab, because it shows what was read before."""
    failure = f"{command.path} could not ask the server: {reason_unreached(words)}"
    key, repo = READ_BY_TABS.get(command.path, ""), front.subject()[0]
    named = command.values.get("repo") or command.values.get("repository")
    if repo is None or (named and named != repo.full_name):
        return failure
    works = any(key in action.keys for action in front.svc.actions())
    return f"{failure}; {key} shows what was read here" if works else failure


def _renew(screen: Base) -> None:
    """Let a screen read again what a command may have changed, as soon as it is in front."""
    if screen.in_front:
        screen.read_after_command()
    else:
        screen.stale = True


def _ask_first(
    app: AskedApp, screen: Base, command: Command, doing: str, ended: Callable[[bool], None]
) -> None:
    """Ask the question of a command, and run the command without leaving the screen once it is confirmed."""

    def refuse() -> None:
        screen.say(NOTHING_DONE, "dim")
        ended(False)

    screen.say("")
    command.ask_on(screen, lambda: run_here(app, screen, command.with_yes(), doing, ended), refuse)


class Output(Over):
    """A screen that runs one command of svc and shows its output. If its rows name something that the app can
    open, such as issues, they have a cursor, and enter opens them. If the command needs a confirmation, the
    screen below asks for it instead. If the user leaves the screen, the command goes on, and ends with the
    app at the latest."""

    ACTIONS = (Action("stop", ("x",), "stop it", footer=True),)
    ENDED = (Action("stop", ("x",), "stop it"),)  # without a place in the line of keys

    def __init__(self, command: Command) -> None:
        super().__init__()
        self._command = command
        self._ended_text = ""  # the output up to its last line break
        self._ended_lines: list[str] = []  # the lines of it
        self._last_lines: list[str] = []  # what is printed of the line after these
        self._rows: list[Item] = []  # the rows of the ended lines
        self._wrapped = 0  # how many of these lines have rows
        self._made_for = (0, False)  # the width of these rows, and whether the command had failed
        self._warned = False  # whether the message says that the command may wait for the server

    def content(self) -> ComposeResult:
        yield Sheet(marked=False, searches=True, empty="running …", id="output")
        table = Lines(searches=True, id="table")
        table.display = False  # until the output turns out to be one
        yield table

    def actions(self) -> tuple[Action, ...]:
        return self.ACTIONS if self._command.runs else self.ENDED

    @property
    def opens(self) -> bool:
        return self._shown is not self._sheet

    def label_of(self, action: Action) -> str:
        return "search" if action.id == "filter" else super().label_of(action)

    def title_parts(self) -> Sequence[Part]:
        repo = self.subject()[0]
        where = f"  {safe(repo.full_name)}" if repo is not None else ""
        word, role = self._command.state
        return ((" Command ", "title"), (f" {self._sign} {word}", role), (where, "dim"))

    @property
    def _sign(self) -> str:
        return {"running": "◐", DONE: "✓", "stopped": "⊘"}.get(self._command.state[0], "✗")

    @property
    def _sheet(self) -> Sheet:
        return self.query_one("#output", Sheet)

    @property
    def _shown(self) -> Lines:
        """The list that shows the output: the text that scrolls or, if rows of it can be opened, the list
        with a cursor."""
        table = self.query_one("#table", Lines)
        return table if table.display else self._sheet

    @property
    def lines(self) -> Lines | None:
        return self._shown if self.has_widgets else None

    def on_mount(self) -> None:
        super().on_mount()
        self._sheet.styles.padding = (0, 1)
        self.query_one("#table", Lines).styles.padding = (0, 1, 0, 0)  # its mark is in the blank column
        self._name_frame()
        if self.svc.news.state == "offline":
            since = ago(self.svc.news.since, self.svc.clock())
            self.say(f"offline, noticed {since}: {MAY_FAIL}", "warn")
            self._warned = True
        command = self._command
        if not command.begun:
            command.show = self._show
            command.begin(self.svc, inner_width(self.app.size.width))
        else:
            then = command.show

            def show(text: str, state: Part) -> None:
                self._show(text, state)
                then(text, state)

            command.show = show
            self._show(command.text, command.state)

    def do_stop(self) -> None:
        if self._command.runs:
            self._command.stop()
        else:
            self.say("it is not running any more", "dim")

    def _ask(self) -> None:
        """Give the screen below back, and ask the question of the command there."""
        below, app, command = self.below, self.svc, self._command
        self.app.pop_screen()
        below.open_prompt(
            lambda: command.ask_on(
                below,
                lambda: app.push_screen(Output(command.with_yes())),
                lambda: below.say(NOTHING_DONE, "dim"),
            )
        )

    def _show(self, text: str, state: Part) -> None:
        if not self.is_attached:
            return
        if self._command.asks_on(self):
            self._ask()
            return
        self._take(text)
        self._sheet.empty = "running …" if self._command.runs else "it printed nothing"
        if self._warned and not self._command.runs:
            self._warned = False
            self.say("")
        self.paint()
        self.show_frame()

    def _take(self, text: str) -> None:
        """Take over the output. Only what was printed since the last time is read."""
        if not text.startswith(self._ended_text):  # it begins anew
            self._ended_text, self._ended_lines, self._made_for = "", [], (0, False)
        begin, end = len(self._ended_text), text.rfind("\n") + 1
        if end > begin:
            self._ended_lines += _plain_lines(text[begin:end])
            self._ended_text = text[:end]
        self._last_lines = _plain_lines(text[len(self._ended_text) :])

    def on_resize(self) -> None:
        if self._ended_lines or self._last_lines:
            self.paint()

    def paint(self) -> None:
        sheet = self._sheet
        failed = self._command.state not in (RUNNING, SUCCEEDED)
        made_for = inner_width(self.app.size.width), failed
        if made_for != self._made_for:
            self._made_for, self._rows, self._wrapped = made_for, [], 0
        changes = self._command.path in CHANGES
        self._rows += _items(self._ended_lines[self._wrapped :], *made_for, changes)
        self._wrapped = len(self._ended_lines)
        rows = [*self._rows, *_items(self._last_lines, *made_for, changes)]
        sheet.show(rows)
        if self._command.runs and self._command.prints_over_time:
            sheet.go(len(sheet.rows) - 1)  # like a terminal
        if self._command.state == SUCCEEDED:
            self._show_table(rows)
        self._name_frame()

    def _show_table(self, rows: Sequence[Item]) -> None:
        """If rows of the output name something that the app can open, show the rows in a list with a cursor.
        The key of such a row is what it names, with its place, because two rows can name the same."""
        names = names_in(self._command.path, ["".join(text for text, _ in row.left) for row in rows])
        table = self.query_one("#table", Lines)
        if not any(names):
            return
        keys = [None if name is None else (at, name) for at, name in enumerate(names)]
        table.show([row._replace(key=key) for row, key in zip(rows, keys, strict=True)])
        if not table.display:
            table.display, self._sheet.display = True, False
            self.set_focus(table)

    def on_lines_chosen(self, event: Lines.Chosen) -> None:
        if isinstance(event.key, tuple):
            open_named(self, event.key[1], self._command.values)

    def on_lines_moved(self, event: Lines.Moved) -> None:
        self._name_frame()

    def _name_frame(self) -> None:
        """Write into the frame the command, how it has ended, and which of its lines are visible."""
        command = self._command
        word, role = command.state
        after = "" if command.runs else f" in {command.ended_at - command.began_at:.1f} s"
        failed = role == "bad"
        lines = self._shown
        draw_frame(lines, "bad" if failed else "accent")
        lines.name_frame(f"svc {safe(shlex.join(command.words))} · {word}{after}", lines.position)


def _plain_lines(text: str) -> list[str]:
    """Returns the lines of an output, without the codes for colours."""
    return [Text.from_ansi(line).plain for line in text.splitlines()]


def _items(lines: Sequence[str], width: int, failed: bool, changes: bool) -> list[Item]:
    """Returns the rows of these lines of an output. `failed`: whether the command has failed. `changes`:
    whether it prints changes of files."""
    rows = rows_of(lines, width, failed, changes)
    return [Item(None, row, rest=row[0][1] if row[0][1] in ("add", "delete") else "text") for row in rows]
