"""The base class of all screens. A screen has a title line, a content, a line of keys, and sometimes a
prompt. Its keys run actions."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, cast

from textual.app import ComposeResult
from textual.events import Key
from textual.geometry import Region
from textual.message import Message
from textual.screen import Screen
from textual.widget import Widget

from localstore.core.model.repo import Repo
from tui.actions import Action, is_about_row, spell_key
from tui.memory import forget_painted
from tui.text import Part, ago_seconds, safe
from tui.texts import DETAILS, Texts
from tui.widgets.frame import LIGHTS, OPENING_SECONDS, YES_OR_NO, Hints, Line, Prompt
from tui.widgets.lines import Lines
from tui.widgets.question import Question
from tui.wording import in_app

if TYPE_CHECKING:
    from tui.asked import AskedApp
    from tui.screens.talk.mentions import Name

READING_SECONDS = 10.0  # that keys wait for a screen that opens when something is read
TWO_PANES, THREE_PANES = 100, 140  # columns from which there are as many
FILTERED = (("escape", "clears"), ("slash", "changes"))  # keys while a filter hides rows, and what they do
SEARCHED = (("escape", "ends the search"),)  # the same, while what a search finds is marked
QUESTION_LINES = 8  # of the screen that a question at its bottom covers, at most
UNDO = "u"  # takes back what the message is about
LABEL = 44  # columns of what stands before a typed text
FACTS_BESIDE = 180  # columns from which a list and its preview have a column of facts beside them


class PromptQuestion(NamedTuple):
    """A question in a frame over the screen. `destroys`, `low`: see `Base.confirm`."""

    question: str
    title: str = ""
    destroys: bool = False
    low: bool = False


class Undo(NamedTuple):
    """What the key in UNDO does while a message stands that says so. `words`: that, such as `reopens #6`."""

    words: str
    act: Callable[[], None]


class Base(Screen[None], inherit_bindings=False):
    """A screen of the app. Subclasses define `content()` (the widgets), `title_parts()` (the parts of the
    title line) and `ACTIONS` (what the keys of the screen do)."""

    ACTIONS: tuple[Action, ...] = ()
    KEEPS_ESC = False  # whether the line of keys always shows esc, also where other keys have no room
    AUTO_FOCUS = "Lines"
    texts: Texts | None = None  # those of the screen, if it shows some
    stale = False  # whether what it shows is to be read again once no other screen is on top of it
    ALONE = False  # whether only its own keys and those that move, leave and help work while it is in front
    FOLLOWS_LATER = False  # whether the server makes what is shown some time after the event

    class Focused(Message):
        """Posted when the prompt gets the focus. Messages and keys are delivered in one order, so this
        message comes after all keys that were typed before."""

        def __init__(self, prompt: Prompt) -> None:
            super().__init__()
            self.prompt = prompt

    def __init__(self) -> None:
        super().__init__()
        self._said: Part | None = None
        self._offered_undo: Undo | None = None  # what the message offers to take back
        self._said_unreached = False  # whether the message says that the server does not answer
        self._said_waits = False  # whether it says what waits for the server
        self._read_at = 0.0  # when the oldest part of what is shown was read, while the server is away
        self._prompt: Prompt | None = None  # while it is open
        self._aligned = self.styles.align  # before a question was placed in the middle
        self._opening = 0.0  # until when keys wait for a prompt that opens, by the monotonic clock
        self._ahead: list[Key] = []  # the keys that wait
        self._is_open = False  # whether all its widgets exist

    @property
    def svc(self) -> AskedApp:
        return cast("AskedApp", self.app)

    def actions(self) -> tuple[Action, ...]:
        return self.ACTIONS

    def compose(self) -> ComposeResult:
        yield Line(id="title")
        yield from self.content()
        yield Hints(id="keys")

    def content(self) -> ComposeResult:
        raise TypeError(f"{type(self).__name__} shows nothing")

    def title_parts(self) -> Sequence[Part]:
        return ((" svc", "title"),)

    def on_mount(self) -> None:
        self._is_open = True
        self.wear()
        self.show_frame()

    def wear(self) -> None:
        """Paint the screen with the background of the app's theme."""
        from tui.theme import BACKGROUNDS

        self.styles.background = BACKGROUNDS[self.svc.colours]

    def on_screen_resume(self) -> None:
        self.listen()  # not if another screen was opened at once
        self.show_frame()
        if self.stale and self.in_front:
            self.stale = False
            self.news()

    def on_screen_suspend(self) -> None:
        if not isinstance(self.app.screen, Over):  # else this screen stays visible around it
            forget_painted(self)

    @property
    def in_front(self) -> bool:
        """Whether no other screen covers this one. Textual's `is_current` is no substitute, because it is
        also true for the screen right below the one in front."""
        return self.app.screen_stack[-1:] == [self]

    @property
    def is_idle(self) -> bool:
        """Whether another screen may open over this one. It may not while a prompt is open or opening."""
        return self._prompt is None and time.monotonic() >= self._opening

    @property
    def remains(self) -> bool:
        """Whether the screen is still one of the app's screens. It becomes False as soon as the user leaves
        the screen, before its widgets are removed one by one."""
        return self.is_attached and self in self.app.screen_stack

    @property
    def lines(self) -> Lines | None:
        """The list that keys control: the list with the focus. Without one, it is the first list of the
        screen. None if the screen has no list."""
        if isinstance(self.focused, Lines):
            return self.focused
        return next(iter(self.query(Lines)), None)

    @property
    def has_widgets(self) -> bool:
        """Whether the widgets of the screen exist."""
        return any(isinstance(widget, Hints) for widget in self.children)

    def show_frame(self) -> None:
        """Paint the current title and line of keys. Only differences are sent to the terminal. Does nothing
        while the screen has no widgets yet, or after it has been closed. The first painting follows when the
        widgets exist."""
        if not self.has_widgets or self not in self.app.screen_stack:
            return
        entries = self.svc.outbox.entries
        refused = sum(entry.state == "refused" for entry in entries)
        waiting = len(entries) - refused
        not_done = (f"✗ {refused} refused  ", "bad") if refused else ("", "text")
        queued = (f"⋯ {waiting} queued  ", "warn") if waiting else ("", "text")
        light = (not_done, queued, *LIGHTS[self.svc.news.state], (" ", "text"))
        self.show_title(light)
        self.show_keys()

    def show_keys(self) -> None:
        """Paint the line of keys: the keys of an open prompt, or those for the row under the cursor, and a
        message if there is one."""
        if not self._is_open:
            return  # `label_of` asks lists, which exist from then on
        hints = self._prompt.hints if self._prompt is not None else self.footer()
        self.query_one("#keys", Hints).offer(hints, self._said, keeps_esc=self.KEEPS_ESC)

    def footer(self) -> list[tuple[str, str]]:
        """Returns (key, what it does) for the line of keys. While a filter hides rows, the keys that change
        or clear the filter come first. While what a search finds is marked, that is the key that ends it."""
        hints = [(spell_key(action.keys[0]), label) for action, label in self.list_hints()]
        lines = self.lines
        searches = lines is not None and lines.searches and lines.searched
        if not self.hides_rows and not searches:
            return hints
        named = FILTERED if self.hides_rows else SEARCHED
        actions = [action for action in self.svc.actions() if action.keys]
        taken = {key for action in actions for key in action.keys}
        first = [(spell_key(key), words) for key, words in named if key in taken]
        replaced = {
            spell_key(action.keys[0]) for action in actions if any(key in action.keys for key, _ in named)
        }
        return [*first, *(hint for hint in hints if hint[0] not in replaced)]

    def list_hints(self) -> list[tuple[Action, str]]:
        """Returns the actions for the line of keys, each with its label. The action that opens the row comes
        first."""
        actions = [action for action in self.svc.actions() if action.footer and action.keys]
        actions.sort(key=lambda action: action.id != "open")
        return [(action, label) for action in actions if (label := self._label_in_pane(action))]

    def _label_in_pane(self, action: Action) -> str:
        """Returns the label of an action in the line of keys. It depends on the list with the focus. Enter
        can follow a link there, and the key of the filter can start a search."""
        lines, label = self.lines, self.label_of(action)
        if action.id == "open" and lines is not None and lines.target:
            return self.link_label(lines.target)
        return "search" if action.id == "filter" and label and lines is not None and lines.searches else label

    def label_of(self, action: Action) -> str:
        """Returns the label of an action in the line of keys. Returns "" to leave the action out, because it
        does nothing for the row under the cursor, or in the pane with the focus."""
        useless = (action.id == "open" and not self.opens) or (is_about_row(action) and not self.has_row)
        return "" if useless or (action.right and self.svc.find_refusal(action)) else action.label

    def command_of(self, action: Action) -> str:
        """Returns the command that does what an action does now, for the help. Returns "" if there is none.
        Words in braces are replaced by the screen's facts."""
        return action.command

    def link_label(self, target: str) -> str:
        """Returns what enter does on a link, for the line of keys."""
        return "follow the link"

    def on_lines_moved(self, event: Lines.Moved) -> None:
        self.show_keys()

    def on_descendant_focus(self) -> None:
        self.show_keys()

    @property
    def has_row(self) -> bool:
        """Whether keys about a row have a row to work on. A list that still waits for its first rows counts
        as having one."""
        lines = self.lines
        waits = lines is not None and bool(lines.waiting) and not lines.is_unread
        return lines is None or lines.key is not None or waits or lines.searches

    @property
    def hides_rows(self) -> bool:
        """Whether a filter hides rows."""
        lines = self.lines
        return lines is not None and lines.filtered

    def show_title(self, light: Sequence[Part]) -> None:
        """Paint the title line. `light`: parts for its right end, which show the state of the connection."""
        self.query_one("#title", Line).put(self.title_parts(), light)

    def place_prompt(self, prompt: Prompt) -> None:
        """Add the prompt (the line in which the user types) to the screen."""
        self.mount(prompt, after="#keys")

    def _place_question(self, question: PromptQuestion, prompt: Prompt, placed: Callable[[], None]) -> None:
        """Show a question with its prompt in a frame over the screen. `placed`: called once the prompt is on
        the screen."""
        self._aligned = self.styles.align
        self.styles.align = ("center", "bottom" if question.low else "middle")
        frame = Question(question.title, question.question, prompt, placed, question.destroys)
        self.mount(frame)
        if question.low and self.lines is not None:
            frame.styles.margin = (0, 0, 1, 0)  # the line of keys stays
            self.lines.cover(QUESTION_LINES)

    def on_resize(self) -> None:
        for question in self.query(Question):
            question.place()

    def on_hints_clicked(self, event: Hints.Clicked) -> None:
        """Run the action of a hint (a key with its label) that was clicked in the line of keys. Does nothing
        while a prompt is open, because the line then shows the keys of the prompt."""
        event.stop()
        if self._prompt is not None:
            return
        self._said = self._offered_undo = None
        for action in self.svc.actions():
            for key in action.keys:
                if spell_key(key) == event.key:
                    self.svc.press(key)
                    return

    @property
    def below(self) -> Base:
        """The screen from which this one was opened."""
        stack = self.app.screen_stack
        return cast("Base", stack[stack.index(self) - 1])

    @property
    def opens(self) -> bool:
        """Whether enter on a row does something."""
        return hasattr(self, "on_lines_chosen") or type(self).do_open is not Base.do_open

    @property
    def where(self) -> str:
        """The name of this screen, as the help shows it."""
        return type(self).__name__.removesuffix("Screen").lower()

    def about(self) -> list[str]:
        """Returns the ids of the repositories whose events concern this screen."""
        repo = self.subject()[0]
        return [repo.id] if repo is not None else []

    def listen(self) -> None:
        """Listen to the events of the repositories that this screen shows. Does nothing if another screen is
        in front."""
        if self.in_front:
            self.svc.news.follow(self.about())

    def subject(self) -> tuple[Repo | None, bool]:
        """Returns the repository that the screen's actions are about, and whether the account is the author
        of the issue or proposal that is shown."""
        return None, False

    def facts(self) -> dict[str, str]:
        """Returns what the screen shows, as values for the parameters of commands, by parameter name.
        Examples are `issue` and `pr` with a number, `run`, and `version`."""
        return {}

    def queue_changed(self) -> None:
        """Called when the actions in the outbox have changed."""

    def tick(self) -> None:
        """Called from time to time. Paints the screen again, because texts such as `2 min ago` have
        changed."""
        paint = getattr(self, "paint", None)
        if paint is not None:
            paint()

    def shows_other_branch(self, name: str) -> bool:
        """Whether the screen shows another branch than this one, and can go to it."""
        return False

    def show_branch(self, name: str) -> None:
        """Show the newest seal of a branch that may have been made just now."""

    def news(self) -> None:
        """Called when something that this screen shows may have changed on the server."""
        self.do_refresh()

    def read_after_command(self) -> None:
        """Called when a command of svc has ended while the screen was in front. Reads again what it may have
        changed."""
        self.news()

    def expect_new(self, noun: str, name: str) -> None:
        """Called when the user has made an issue, a proposal or a release. `noun`: which of these. `name`:
        its title or version. A list then puts its cursor on the new row, once it has read its rows again."""

    def do_refresh(self) -> None:
        """Ask the server again for what the screen shows."""

    def say(self, text: str, role: str = "text", undo: Undo | None = None) -> None:
        """Show a message beside or above the line of keys until the next key is pressed. An empty text
        removes the message. Commands of svc in the text are named as the user types them in the app, such as
        `:login`. `undo`: what the key in UNDO takes back if it is that next key. The message says so."""
        offer = f"; {UNDO} {undo.words}" if undo is not None else ""
        self._said, self._offered_undo = ((safe(in_app(text)) + offer, role) if text else None), undo
        self._said_unreached = self._said_waits = False
        self.show_frame()

    def say_effect(self, text: str) -> None:
        """Show what is so now that the user's change was sent. What the message before it offers to take back
        can be taken back still."""
        self.say(text, "good", self._offered_undo)

    def say_away(self, why: str, read_at: float | None) -> None:
        """Show that a request has failed because the server does not answer. `why`: the reason, which is
        shown if nothing of the screen was read before. `read_at`: when what is shown in place of the answer
        was read, in seconds since 1970, None if nothing is. If several parts were read, the oldest counts."""
        if read_at is not None:
            self._read_at = min(read_at, self._read_at or read_at)
        if self._read_at and not any(lines.is_unread for lines in self.query(Lines)):
            why = f"shown as read {ago_seconds(self._read_at, self.svc.clock())}; the server does not answer"
        if not self._said_waits:
            self.say_unreached(why)

    def say_unreached(self, text: str, *, waits: bool = False) -> None:
        """Show that the server is not reached. The message goes as soon as the server answers again.
        `waits`: the message says what waits for the server, so a failed request does not replace it."""
        self.say(text, "warn", self._offered_undo if waits else None)
        self._said_unreached, self._said_waits = True, waits

    def drop_unreached(self) -> None:
        """Take back the message that the server is not reached, because what waited for it is sent."""
        if self._said_unreached:
            self.say("")

    def server_answers(self) -> None:
        """Called when the server answers again. Takes back the message that it does not."""
        self._read_at = 0.0
        if self._said_unreached:
            self.say("the server answers again", "good")

    def known_names(self) -> Sequence[Name]:
        """Returns the people, issues and proposals that a text on this screen can name."""
        repo, _ = self.subject()
        if repo is None:
            return ()
        from tui.screens.talk.mentions import known_names

        return known_names(self.svc, repo, ())

    def say_unread(self, text: str) -> None:
        """Show a message in every list that still waits for its first answer."""
        for lines in self.query(Lines):
            if lines.waiting:
                lines.waiting, lines.is_unread = safe(in_app(text)), True
                lines.refresh()
        self.show_keys()

    def ask(
        self,
        sign: str,
        done: Callable[[str], None],
        changed: Callable[[str], None] | None = None,
        value: str = "",
        complete: Callable[[str], str] | None = None,
        on_leave: Callable[[], None] | None = None,
        filtered: Lines | None = None,
        answers: Sequence[tuple[str, str]] = (),
        space: Callable[[], None] | None = None,
        enter: str = "done",
        label: str = "",
        question: PromptQuestion | None = None,
        send: Callable[[str], None] | None = None,
        move: Callable[[int], None] | None = None,
        leave_label: str = "leave",
        space_label: str = "on or off",
    ) -> None:
        """Open the prompt. It begins with `label`, and shows `sign` as long as nothing is typed. If `label`
        is empty, the beginning of `sign` is used as the label. Enter calls `done` with the typed text. Each
        change of the text calls `changed` with it. Esc closes the prompt and calls `on_leave`. Up and down
        move the cursor in the list `filtered`. `complete`: returns the completed text when tab is pressed.
        `answers`: for a prompt that one key answers, the keys and what they mean. `space`: called when the
        space key is pressed. `enter`, `leave_label`, `space_label`: words for what enter, esc and space do.
        `question`: the question that the prompt answers, shown in a frame over the screen. `send`: called
        with the typed text when ctrl+s is pressed. `move`: called with -1 and 1 at up and down, in place of
        moving the cursor in the list."""
        back = self.focused

        def left_for(then: Callable[[str], None]) -> Callable[[str], None]:
            def leave_and_call(text: str) -> None:
                self._remove_prompt(back)
                then(text)

            return leave_and_call

        def leave() -> None:
            self._remove_prompt(back)
            if on_leave is not None:
                on_leave()
                if self.is_attached:
                    self.show_frame()  # a filter may be another one now
            self.prompt_left()

        move = move or (filtered.move if filtered else None)
        if not label and not answers:
            label, sign = _split_label(sign)
        prompt = Prompt(
            sign,
            left_for(done),
            leave,
            self._type_again,
            self.svc.end_passing,
            changed,
            value,
            complete,
            move,
            answers,
            space,
            enter,
            label,
            left_for(send) if send is not None else None,
            leave_label,
            space_label,
        )
        self._open_prompt(prompt, question, back or self)

    def _open_prompt(self, prompt: Prompt, question: PromptQuestion | None, before: Widget) -> None:
        """Place the prompt and give it the focus. `before`: the widget that has the focus until then."""
        self.hold_keys()
        self._prompt = prompt

        def focus() -> None:
            if prompt.is_attached:
                self.set_focus(prompt)
                before.post_message(self.Focused(prompt))

        if question is None:
            self.place_prompt(prompt)
            self.app.call_later(focus)
        else:
            self._place_question(question, prompt, focus)
        self.show_frame()

    def _remove_prompt(self, back: Widget | None) -> None:
        """Close the prompt. `back`: the widget that gets the focus back."""
        self.drop_keys()
        self._prompt = None
        for open_prompt in self.query(Prompt):
            self.svc.keep_order(open_prompt)
            open_prompt.remove()
        for question in self.query(Question):
            self.styles.align = self._aligned
            question.remove()
            for lines in self.query(Lines):
                lines.cover(0)
        self.show_frame()
        if back is not None:
            self.set_focus(back)

    def drop_question(self) -> None:
        """Close the open prompt, because what it asks is over."""
        self._remove_prompt(next(iter(self.query(Lines)), None))

    def write(
        self,
        sign: str,
        done: Callable[[str], None],
        draft: str,
        text: str = "",
        *,
        blank: bool = False,
        replaced: Sequence[str] = (),
    ) -> None:
        """Let the user write a text of several lines, and call `done` with it. `sign`: the title of the card
        on which it is written. `text`: the text at the beginning. While the user types, the text is stored as
        the draft `draft`. `blank`: `done` is also called with an empty text. `replaced`: the lines that
        the text is to replace, which the card shows."""
        drafts = self.svc.drafts
        drafted = drafts.read(draft) if drafts is not None else ""

        def keep_draft(typed: str) -> None:
            if drafts is not None:
                drafts.keep(draft, typed if typed != text else "")

        def finish(typed: str) -> None:
            self.svc.finish(draft, done, typed, blank)

        begun, before = (drafted or text).rstrip("\n"), text.rstrip("\n")
        self.svc.write_text(sign, begun, finish, keep_draft, blank=blank, replaced=replaced, before=before)

    def pane_to_write_over(self) -> Region | None:
        """Returns the area of the pane that has the row which a text is about. The card on which the text is
        written then covers this pane alone. Returns None if it may cover the whole width."""
        return None

    def confirm(
        self,
        question: str,
        then: Callable[[], None],
        title: str = "",
        *,
        destroys: bool = False,
        low: bool = False,
    ) -> None:
        """Ask a question, and call `then` if the user presses y. Otherwise show that nothing was done.
        `destroys`: whether the change takes away something that cannot be brought back. `low`: whether the
        question stands at the bottom, because it is about the row under the cursor."""

        def done(typed: str) -> None:
            if typed.strip().lower() == "y":
                then()
            else:
                self.say("nothing was done", "dim")

        self.ask("", done, answers=YES_OR_NO, question=PromptQuestion(question, title, destroys, low))

    def confirm_by_name(self, question: str, name: str, then: Callable[[], None], otherwise: str) -> None:
        """Ask the user to type `name`, for changes that cannot be undone at once. Call `then` if they type
        it. If they type anything else, show `otherwise`."""

        def done(typed: str) -> None:
            if typed.strip() == name:
                then()
            else:
                self.say(otherwise, "warn")

        label = "its name" if len(name) < LABEL else "type it"
        self.ask(name, done, label=f"{label}:", question=PromptQuestion(question, "", True))

    def prompt_left(self) -> None:
        """Called when esc has closed the prompt."""

    def open_prompt(self, ask: Callable[[], None]) -> None:
        """Call `ask`, which opens a prompt, as soon as the screen is painted. Keys that are typed before that
        go to the prompt, because painting can take long on a busy machine."""
        self.hold_keys(READING_SECONDS)
        self.call_after_refresh(ask)

    def hold_keys(self, seconds: float = OPENING_SECONDS) -> None:
        """Keep keys back for a prompt or screen that is about to open, for at most `seconds`."""
        self._opening = time.monotonic() + seconds

    def drop_keys(self) -> None:
        """Drop the keys that were kept back for a screen or prompt, because it does not open."""
        self._opening, self._ahead = 0.0, []

    def release_keys(self) -> None:
        """Deliver the keys that were kept back."""
        self._opening = 0.0
        ahead, self._ahead = self._ahead, []
        for key in ahead:
            self._type_again(key)

    def on_key(self, event: Key) -> None:
        if self._typed_ahead(event):
            event.stop()
            event.prevent_default()
            return
        if isinstance(self.focused, Prompt):
            return
        undo, self._offered_undo = self._offered_undo, None
        if self._said is not None:
            self._said, self._said_unreached, self._said_waits = None, False, False
            self.show_frame()
        if undo is not None and event.key == UNDO:
            undo.act()
            event.stop()
            event.prevent_default()
            return
        if self.svc.press(event.key) or (event.character and self.svc.press(event.character)):
            event.stop()
            event.prevent_default()
        elif event.is_printable:
            self.say_unused(event.character or "")

    def say_unused(self, key: str) -> None:
        """Show that a key does nothing here. If it does something elsewhere, say where."""
        help_key = next(
            (spell_key(at.keys[0]) for at in self.svc.actions() if at.id == "help" and at.keys), ""
        )
        lists = f"; {help_key} lists what does" if help_key else ""
        self.say(self.elsewhere(key) or f"{key} does nothing here{lists}", "dim")

    def elsewhere(self, key: str) -> str:
        """Returns a sentence that says where a key without an action here does something. Returns "" if it
        does nothing anywhere."""
        return ""

    def _typed_ahead(self, event: Key) -> bool:
        """Keep a key back, if it was typed for a prompt or screen that an earlier key is about to open. The
        key is delivered to that prompt or screen once it is open. Returns whether the key needs no further
        handling here."""
        if self.app.screen is not self:
            self.release_keys()
            self._type_again(event)
            return True
        if time.monotonic() < self._opening:
            self._ahead.append(event)
            return True
        self.drop_keys()
        return False

    def on_passed(self) -> None:
        self.release_keys()
        self.svc.end_passing()

    def on_base_focused(self, event: Focused) -> None:
        ahead, self._ahead, self._opening = self._ahead, [], 0.0
        event.prompt.begin(ahead)  # may close it, and open another one
        for key in ahead:
            self._type_again(key)

    def _type_again(self, event: Key) -> None:
        """Deliver a key that was kept back, as if it were typed now. If another screen is opening, the key
        waits with the other keys for that screen."""
        if self.svc.came_below(event):
            return
        key = Key(event.key, event.character)
        key.set_sender(self.app)  # what a screen sends does not bubble up to it, where enter is bound
        self.app.post_message(key)

    def do_down(self) -> None:
        self._move(lambda lines: lines.move(1))

    def do_up(self) -> None:
        self._move(lambda lines: lines.move(-1))

    def do_first(self) -> None:
        self._move(lambda lines: lines.go(0, 1))

    def do_last(self) -> None:
        self._move(lambda lines: lines.go(len(lines.rows) - 1, -1))

    def do_half_down(self) -> None:
        self._move(lambda lines: lines.page(0.5))

    def do_half_up(self) -> None:
        self._move(lambda lines: lines.page(-0.5))

    def do_left(self) -> None:
        self._move(lambda lines: lines.slide(-8))

    def do_right(self) -> None:
        self._move(lambda lines: lines.slide(8))

    def do_open(self) -> None:
        self._move(lambda lines: lines.choose())

    def do_pane(self) -> None:
        """Move the focus to the next link of the list. After the last link, move it to the next pane."""
        if self.lines is not None and self.lines.step_link():
            self.show_keys()  # another link of the same row may lead elsewhere
            return
        visible = [
            lines for lines in self.query(Lines) if lines.display and lines.region.width and lines.can_focus
        ]
        if visible:
            at = visible.index(self.focused) if self.focused in visible else -1
            self.set_focus(visible[(at + 1) % len(visible)])
            if len(visible) == 1 and visible[0].linked and visible[0].cursor:
                visible[0].go(0)
                visible[0].step_link()

    def leave_filter(self) -> bool:
        """If the pressed key is esc and a filter or a search is set, clear it and return True. Otherwise
        return False, and the caller leaves the screen."""
        lines = self.lines
        if self.svc.pressed == "escape" and lines is not None and lines.clear_search():
            self.show_frame()
            return True
        if self.svc.pressed != "escape" or lines is None or not lines.filtered:
            return False
        lines.filter("")
        self.show_frame()
        return True

    def on_lines_followed(self, event: Lines.Followed) -> None:
        event.stop()
        self.follow_link(event.target)

    @property
    def texts_shown(self) -> Texts | None:
        """The Markdown texts on the screen in which a `<details>` can be folded. None if there are none."""
        return self.texts

    def follow_link(self, target: str) -> None:
        """Follow a link in a text. The link of a `<details>` folds or unfolds it. Any other link is opened in
        the app or, if the app cannot open it, its address is copied."""
        if target.startswith(DETAILS) and self.texts_shown is not None:
            self.texts_shown.toggle(target)
        else:
            self.svc.follow_link(self, target)

    def do_back(self) -> None:
        if self.leave_filter():
            return
        if len(self.app.screen_stack) > 2:
            self.app.pop_screen()
        else:
            self.svc.exit()

    def do_filter(self) -> None:
        lines = self.lines
        if lines is None:
            return
        if lines.searches:
            self.ask("text to look for", lambda text: self._search_for(lines, text), label="/")
        else:
            words = "text of the rows to list"
            self.ask(words, lambda text: None, lines.filter, lines.sought, filtered=lines, label="/")

    def _search_for(self, lines: Lines, text: str) -> None:
        lines.filter(text)
        self.do_next_match()

    def do_next_match(self) -> None:
        self._search(1)

    def do_previous_match(self) -> None:
        self._search(-1)

    def _search(self, step: int) -> None:
        if self.lines is None:
            return
        if not self.lines.search(step):
            matched = "nothing matches" if self.lines.searched else "nothing is looked for yet"
            self.say(f"{matched}; / takes what to look for", "warn")
        elif self.lines.found_words:
            self.say(f"{self.lines.found_words}   n next   N previous", "dim")

    def _move(self, act: Callable[[Lines], None]) -> None:
        if self.lines is not None:
            act(self.lines)


class Over(Base):
    """A screen on top of another one. It is about the same repository as the screen below."""

    def subject(self) -> tuple[Repo | None, bool]:
        return self.below.subject()

    def facts(self) -> dict[str, str]:
        return self.below.facts()


def _split_label(sign: str) -> tuple[str, str]:
    """Splits the words of a prompt. Returns the label before the typed text, and the text that is shown as
    long as nothing is typed."""
    label, _, rest = next(
        (parts for parts in (sign.partition(mark) for mark in (": ", "; ", ", ")) if parts[1]), (sign, "", "")
    )
    return (f"{label}:", rest) if len(label) < LABEL else ("›", sign)


def panes(*widgets: Widget) -> Widget:
    """Returns a widget that shows these widgets side by side."""
    from textual.containers import Horizontal

    return Horizontal(*widgets, classes="row")
