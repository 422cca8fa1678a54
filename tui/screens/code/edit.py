"""The screen on which the user edits a text of the linked folder live. Others can edit it at the same
time."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from textual.app import ComposeResult
from textual.events import Key

from localstore.agent.talk import PersonOnBranch
from localstore.core.lane.crdt import Delta
from localstore.core.model.protection import STAY
from localstore.core.numbers import whole_number
from localstore.core.words import count
from tui.actions import Action, find_key, spell_key
from tui.asked import DONE
from tui.listening.writing import AgentEvent, Writing
from tui.machine import Machine
from tui.screens.base import READING_SECONDS, TWO_PANES, Over
from tui.screens.code.clipboard import copy
from tui.screens.code.edit_keys import EDIT_ACTIONS
from tui.screens.code.live import name_of
from tui.screens.code.own_branch import ask_for_branch
from tui.text import Part, safe
from tui.theme import css_colour
from tui.widgets.frame import LIGHTS, Folded, Prompt
from tui.widgets.framed import Pane, draw_frame
from tui.widgets.written import Cursors, TextEditor, Use
from tui.wording import in_app

OWN = frozenset(action.id for action in EDIT_ACTIONS)
SAVED = "✓ saved"  # the state of a text of which the server has everything
SAID = 20  # characters of what was typed for the number of a line that a message repeats
SEALED = "Sealed "  # the first word of the sentence of a push that has sealed
HERE_EACH = 0.25  # seconds between two reports of where the cursor is
SLOW = 2.0  # seconds without the server's answer to what was typed, after which the text says so


class Edit(Over):
    """The screen on which a text is edited live. `line`: the line on which the cursor begins, counted from
    1. `sealed`: the text of the seal that the screen below shows, None if it is not known. `over_live`: the
    screen below shows the live text."""

    ACTIONS = EDIT_ACTIONS
    AUTO_FOCUS = "TextEditor"
    where = "edit"

    DEFAULT_CSS = "Edit #text_pane { height: 1fr; }"

    def __init__(
        self,
        machine: Machine,
        folder: Path,
        branch: str,
        path: str,
        line: int,
        repo: str = "",
        sealed: str | None = None,
        *,
        over_live: bool = False,
    ) -> None:
        super().__init__()
        self._machine, self._folder, self._branch = machine, folder, branch
        self._path, self._line, self._sought, self._repo = path, line, "", repo
        self._sealed, self._over_live = sealed, over_live
        self._writing: Writing | None = None
        self._people: list[PersonOnBranch] = []
        self._unsealed = False  # whether the text differs from `sealed`
        self._proposable = False  # whether the user has sealed on a branch that can be proposed
        self._ended = self._notice = ""
        self._apart = ""  # the file with the text, if the one in the folder lacks what was typed last
        self._here: tuple[int, int] | None = None
        self._sent_at = 0.0  # since when the server owes an answer, by the monotonic clock; 0: it owes none
        self._is_slow = False  # whether that was said
        self._drawn = (False, "")  # whether there is a frame, and its colour

    def content(self) -> ComposeResult:
        use = Use(
            self._splice,
            self._undo,
            self._redo,
            self.do_leave,
            self.do_edit_find,
            self.do_edit_line,
            lambda chosen: copy(self, chosen),
            lambda why: self.say(why, "warn"),
            self._typed_ahead,
            self._act,
        )
        with Pane(id="text_pane"):
            yield TextEditor(self._path, use)
        yield Folded(id="bar")

    def title_parts(self) -> Sequence[Part]:
        return (
            (f" {safe(self._repo or self._folder.name)}", "title"),
            (f"  {safe(self._branch)}", "accent"),
            ("  edited live", "dim"),
        )

    def on_mount(self) -> None:
        super().on_mount()
        self.hold_keys(READING_SECONDS)
        svc = self.svc  # the screen may be closed when the last event comes
        self._writing = self._machine.write(
            self._folder, self._path, lambda heard: svc.later(lambda: self._take(heard))
        )
        self.set_interval(HERE_EACH, self._look)
        self._paint()

    def on_resize(self) -> None:
        self._frame()

    def _frame(self) -> None:
        """Draw the frame around the text in a colour that shows the state of the text. If there is no room
        for a frame, draw a line above the text."""
        pane, colours = self.query_one("#text_pane", Pane), self.svc.colours
        wide, (_, role) = self.app.size.width >= TWO_PANES, self.state()
        look = (wide, role if role in ("warn", "bad") else "accent")
        if look != self._drawn:
            self._drawn = look
            if wide:
                draw_frame(pane, look[1])
            else:
                pane.styles.border = None
                pane.styles.border_top = ("round", css_colour(colours, "line"))
            pane.styles.padding = (0, 1) if wide else 0
        self._say_where()

    def _say_where(self) -> None:
        """Write the path, the state of the text and the place of the cursor into the frame."""
        pane, (row, column) = self.query_one("#text_pane", Pane), self._area.cursor_location
        lines = self._area.document.line_count
        state = self.state()[0]
        unsealed = ", in no seal yet" if state == SAVED and self._unsealed else ""
        title = f"{safe(self._path)} · {state}{unsealed}"
        position = f"{row + 1}:{column + 1} of {count(lines, 'line')}"
        if self.app.size.width >= TWO_PANES:
            pane.name_frame(title, position)
        else:
            pane.name_rule(title, position, self.app.size.width)

    def on_text_area_selection_changed(self) -> None:
        self._say_where()

    def on_unmount(self) -> None:
        if self._writing is not None:
            self._writing.close()

    def news(self) -> None:
        """Does nothing, because edits of others arrive through the agent and need no request."""

    def on_key(self, event: Key) -> None:
        """Leaves all keys to the widget with the text. It handles them itself."""
        if not isinstance(self.focused, Prompt):
            event.prevent_default()
            if self._ended and (event.is_printable or event.key in ("enter", "backspace", "delete", "tab")):
                self.say("nothing is written here any more: f7 f8 copy the text, esc leaves", "warn")

    def _act(self, event: Key) -> bool:
        """Run the action of a key. A letter is text here, so it never runs an action. Returns False if the
        key has no action here."""
        if self._said is not None:
            self._said = None
            self.show_frame()
        action = next((offered for offered in self.svc.actions() if event.key in offered.keys), None)
        if action is None or action.id not in OWN or event.is_printable:
            return False
        self.svc.carry_out(action)
        return True

    def footer(self) -> list[tuple[str, str]]:
        offered = [action for action in self.svc.actions() if action.id in OWN and action.footer]
        labelled = [(action, label) for action in offered if action.keys and (label := self.label_of(action))]
        return [(spell_key(action.keys[0]), label) for action, label in labelled]

    def label_of(self, action: Action) -> str:
        if action.id == "edit_branch":
            return action.label if self._can_move else ""
        return "" if action.id == "edit_seal" and self._refused else action.label

    @property
    def is_untouched(self) -> bool:
        """Whether nothing was typed yet."""
        return self._writing is None or not self._writing.made

    @property
    def _refused(self) -> str:
        """Why the server does not take what was typed, "" if it takes it."""
        return self._writing.refused if self._writing is not None and not self._ended else ""

    @property
    def _can_move(self) -> bool:
        """Whether a branch of its own would take what was typed. The branch is protected, and the folder is
        the linked one, in which the app runs commands."""
        return STAY in self._refused and self.svc.place.folder == self._folder

    @property
    def _file(self) -> str:
        return str(self._folder / self._path)

    @property
    def _area(self) -> TextEditor:
        return self.query_one(TextEditor)

    # --- what is heard

    def _take(self, heard: AgentEvent) -> None:
        writing = self._writing
        if writing is None or not self.is_attached:
            return
        begins, event = not writing.open, heard.event
        changes = writing.take(heard)
        if event.event == "text" and begins:
            self._area.begin(event.text)
            self._area.move_cursor((min(self._line, self._area.document.line_count) - 1, 0), center=True)
            self.release_keys()
        else:
            self._area.take(changes)
        if event.event == "people":
            self._people = event.people
            self._show_people()
        elif event.event == "notice":
            self._notice = event.detail
        elif event.event == "ended":
            self._ended = self._why_ended(event.detail)
            if writing.waits:
                self._keep_apart()
            self._area.read_only = True
            if not writing.open and self.in_front:
                self.do_leave()
                return
        elif event.event == "kept" and not event.queued:
            self._notice = ""
        if not self._unsealed or event.event == "kept":
            self._compare()
        self._paint()

    def _compare(self) -> None:
        """Find out whether the text differs from the sealed one."""
        self._unsealed = self._sealed is not None and self._area.text != self._sealed

    def _why_ended(self, detail: str) -> str:
        """Returns why the text is not written any more."""
        was_open = self._writing is not None and self._writing.open
        if was_open and not (self._folder / self._path).exists():
            return f"{self._path} was removed or renamed meanwhile, and is not in the folder any more"
        return detail or "it ended"

    def _keep_apart(self) -> None:
        """Write the text to a file of its own, because the file in the folder lacks what was typed last."""
        drafts = self.svc.drafts
        if drafts is None:
            return
        name = f"edit-{self._path.replace('/', '-')}-{int(self.svc.clock())}"
        drafts.keep(name, self._area.text)
        if drafts.exists(name):
            self._apart = str(drafts.file(name))

    def _show_people(self) -> None:
        cursors: Cursors = {}
        for person in self._people:
            if person.line > 0:
                column = person.col - 1 if person.col > 0 else None
                cursors.setdefault(person.line - 1, []).append((column, name_of(person), _role(person)))
        self._area.show_cursors(cursors)

    def _paint(self) -> None:
        self._frame()
        parts: list[Part] = []
        if self._refused:
            parts += [(f"✗ {safe(self._why_refused())}", "bad"), ("  ", "text")]
        elif self._ended or self._notice:
            saved = "" if self._ended else f"; the text is in {self._file}"
            saved = f"; the text is in {self._apart}" if self._apart else saved
            parts += [(safe(in_app(self._ended or self._notice) + saved), "warn"), ("  ", "text")]
        for person in self._people:
            parts += [
                (f"◂ {name_of(person)}", _role(person)),
                (f" {person.line}:{person.col}  " if person.line else "  ", "dim"),
            ]
        writing = self._writing
        state = writing.state if writing is not None else ""
        if state == "offline" and not (self._ended or self._notice or self._refused):
            parts.append((f"what you type is in {safe(self._file)}, and sent once the server answers", "dim"))
        if not (self._people or self._ended or self._notice or self._refused) and state in ("live", "online"):
            parts.append(("nobody else is in this text", "dim"))
        own = state in LIGHTS and state != self.svc.news.state  # else the title has it
        light = LIGHTS[state] if own else ()
        self.query_one("#bar", Folded).put(parts, (*light, (" ", "text")))
        self.show_keys()

    def _why_refused(self) -> str:
        """Returns why the server does not take the text, where the text is, and what can be done."""
        reason = in_app(self._refused)
        if not self._can_move:
            return f"{reason}; the text is in {self._file}"
        why, _, _ = reason.partition(f": {STAY}")
        key = self._key_of("edit_branch")
        way = f"; {key} takes it to a branch of its own" if key else ""
        return f"{why}. The text is in {self._file}{way}."

    def _key_of(self, id: str) -> str:
        return find_key(id, self.svc.actions())

    def state(self) -> Part:
        """Returns the state of the text (saved, sent, …) as a part of a line."""
        writing = self._writing
        if self._ended and self._apart:
            return "not written any more, the text is kept apart", "warn"
        if self._ended:
            return (
                ("not written any more: what is here that the folder lacks is lost", "bad")
                if (writing is not None and writing.waits)
                else ("not written any more", "warn")
            )
        if writing is None or not writing.open:
            return "opening", "dim"
        if writing.waits:
            return "⋯ on its way to the folder", "warn"
        if writing.refused:
            return "✗ saved here, refused by the server", "bad"
        if writing.queued and writing.state == "offline":
            return "⋯ queued offline", "warn"
        if writing.queued and self._notice:
            return "✗ saved here, not on the branch", "bad"
        if writing.queued and self._is_slow:
            return "◐ saved here, the server does not answer yet", "warn"
        if writing.queued:
            return "⋯ sending", "dim"
        return SAVED, "good"

    # --- what is typed

    def _splice(self, offset: int, deleted: int, inserted: bytes) -> None:
        if self._writing is not None:
            self._writing.splice(offset, deleted, inserted)
            self._paint()

    def _undo(self) -> list[Delta]:
        return self._paint_after(self._writing.undo()) if self._writing is not None else []

    def _redo(self) -> list[Delta]:
        return self._paint_after(self._writing.redo()) if self._writing is not None else []

    def _paint_after(self, changes: list[Delta]) -> list[Delta]:
        """Returns the changes, after the state of the text that they change was painted."""
        self._paint()
        return changes

    def _look(self) -> None:
        """Report where the cursor is, and say if the server takes long to answer."""
        writing, now = self._writing, time.monotonic()
        owes = writing is not None and writing.open and writing.queued and not writing.refused
        self._sent_at = (self._sent_at or now) if owes else 0.0
        is_slow = owes and now >= self._sent_at + SLOW
        if is_slow != self._is_slow:
            self._is_slow = is_slow
            self._paint()
        self._tell_here()

    def _tell_here(self) -> None:
        row, column = self._area.cursor_location
        if self._writing is not None and self._writing.connected and self._here != (row, column):
            self._here = (row, column)
            self._writing.here(row + 1, column + 1)

    # --- actions

    def do_edit_help(self) -> None:
        from tui.screens.command.palette import Help

        own = [action for action in self.svc.actions() if action.id in OWN]
        self.app.push_screen(Help(own, self.where, self.svc.find_refusal))

    def do_edit_find(self) -> None:
        self.ask("find", self._find, value=self._sought)

    def _find(self, typed: str) -> None:
        self._sought = typed or self._sought
        self._seek(1)

    def do_edit_line(self) -> None:
        self.ask("line", self._go_to_line)

    def _go_to_line(self, typed: str) -> None:
        number = whole_number(typed.strip())
        if number is not None:
            last = self._area.document.line_count
            self._area.move_cursor((min(max(number, 1), last) - 1, 0), center=True)
        elif typed.strip():
            words = typed if len(typed) <= SAID else f"{typed[:SAID]}…"
            self.say(f"{words} is not the number of a line", "warn")

    def do_edit_seal(self) -> None:
        """Seal the branch with what the folder of the text contains, without leaving the text."""
        text = self.state()[0]
        self._compare()
        if self.svc.place.folder != self._folder:
            self.say(f"a push in {self._folder} seals it" if not self._ended else self._ended, "warn")
        elif self._refused:
            self.say(self._why_refused(), "bad")
        elif text != SAVED:
            self.say(f"{text}: it can be sealed once it is saved", "warn")
        elif self._sealed is not None and not self._unsealed:
            self.say("all of this text is sealed", "dim")
        else:
            self.ask("message of the seal", self._seal)

    def _seal(self, message: str) -> None:
        if not message.strip():
            self.say("not sealed, because it has no message; it stays saved", "warn")
            return
        sealed = self._area.text
        self.say("◐ sealing", "dim")
        self.svc.run_beside(
            ["push", "-m", message], lambda output, state: self._told_of_seal(sealed, output, state[0])
        )

    def _told_of_seal(self, sealed: str, output: str, state: str) -> None:
        """Say how sealing has ended. `sealed`: the text as it was when it began. `output`: what the command
        has printed. Its last line says what was sealed, that there was nothing to seal, or why it failed."""
        last = next((line.strip() for line in reversed(output.splitlines()) if line.strip()), "")
        is_done = state == DONE
        if is_done:
            self._sealed = sealed
        if not self.is_attached:
            return
        if not is_done:
            self.say(last.removeprefix("svc: "), "bad")
        elif last.startswith(SEALED):
            self._proposable = self._is_apart
            proposes = "; after esc, svc pr create proposes it" if self._is_apart else ""
            self.say(f"✓ sealed {last.removeprefix(SEALED)}{proposes}", "good")
        else:  # nothing was sealed
            self.say(last, "dim")
        self._compare()
        self._paint()

    @property
    def _is_apart(self) -> bool:
        """Whether the text is edited on another branch than the one that others take seals from."""
        repo, _ = self.below.subject()
        return repo is not None and repo.default_branch != self._branch

    def do_edit_branch(self) -> None:
        """Take what was typed to a new branch, because the server refuses it on this one."""
        if not self._can_move:
            self.say(self._why_refused() if self._refused else "this branch takes your edits", "dim")
            return
        ask_for_branch(self, self._branch, self._path, "", self._go_on_at)

    def _go_on_at(self, name: str) -> None:
        """Go on in the same text on the branch `name`, to which the folder was switched. If the user looks at
        another screen meanwhile, this text says that the folder has left its branch."""
        if not self.in_front:
            return
        line = self._area.cursor_location[0] + 1
        moved = Edit(
            self._machine,
            self._folder,
            name,
            self._path,
            line,
            self._repo,
            self._sealed,
            over_live=self._over_live,
        )
        self.app.switch_screen(moved)
        moved.say(f"{name} has your edits, and the folder is on it now", "good")

    def do_edit_next(self) -> None:
        self._seek(1)

    def do_edit_previous(self) -> None:
        self._seek(-1)

    def _seek(self, step: int) -> None:
        if not self._sought:
            self.do_edit_find()
        elif not self._area.seek(self._sought, step):
            self.say(f"{self._sought} is not in the text", "warn")

    def do_edit_undo(self) -> None:
        self._area.undo()

    def do_edit_redo(self) -> None:
        self._area.redo()

    def do_edit_copy(self) -> None:
        self._area.action_copy()

    def do_edit_all(self) -> None:
        self._area.select_all()

    def do_leave(self) -> None:
        """Leave the screen. All edits are saved already, or are being sent in the background."""
        text, role = self.state()
        self._compare()
        is_unsealed = text == SAVED and self._unsealed
        opened = self._writing is not None and self._writing.open
        below = self.below
        self.drop_keys()
        self.app.pop_screen()
        is_moved = below.shows_other_branch(self._branch)
        if is_moved and opened and not self._ended:
            below.show_branch(self._branch)
        if self._ended:
            apart = f"; the text is in {self._apart}" if self._apart else ""
            below.say(f"{self._ended}; {text}" if role == "bad" else f"{self._ended}{apart}", role)
        elif opened:
            sealed = f"✓ sealed on {safe(self._branch)}; svc pr create proposes it"
            words = sealed if self._proposable and role == "good" else text
            words = self._where_saved(is_moved) if is_unsealed else words
            below.say(f"{self._branch}: {self._why_refused()}" if self._refused else words, role)

    def _where_saved(self, is_moved: bool) -> str:
        """Returns where the text is that was typed, because the screen below shows the sealed one. Says which
        key shows it, and what seals it. `is_moved`: the edits have a branch of their own, which the screen
        below goes to."""
        key = self._key_of("live")
        shows = f"{key} shows it live, " if key and not self._over_live else ""
        linked = self.svc.place.folder == self._folder
        seals = "svc push -m MESSAGE seals it" if linked else f"a push in {self._folder} seals it"
        if is_moved and linked:
            seals += ", svc pr create proposes it"
        branch = safe(self._branch) if is_moved else "the branch"
        which = "in no seal yet" if self._over_live else "not in this seal"
        return f"{SAVED} on {branch}, {which}: {shows}{seals}"


def _role(person: PersonOnBranch) -> str:
    return "agent" if person.kind == "agent" else "person"
