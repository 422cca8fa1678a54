"""The card in which the user signs in to a server: by a code that is typed in a browser on any device, by the
key of this machine, or by a code of a device that is signed in."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Hashable, Sequence
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, NamedTuple

from textual.app import ComposeResult

from localstore.core.errors import Invalid, NotFound, ServerUnreachable, SvcError, UsageError
from localstore.core.model.auth import HandleTaken
from localstore.core.names import handle as check_handle
from localstore.folder.link import read_repo
from svc.http.checked import argument
from svc.http.origin import is_loopback, parse_origin
from tui.actions import Action, spell_key
from tui.client import sentence
from tui.screens.base import PromptQuestion, Undo
from tui.screens.card import Card
from tui.screens.code.clipboard import copy
from tui.text import Part, fold, safe
from tui.widgets.frame import YES_OR_NO
from tui.widgets.lines import Item, Lines, sequence
from tui.wording import in_app

if TYPE_CHECKING:
    from svc.flows.sign_in.login import Approval
    from svc.http.session import Session, Sessions

NAME = 13  # columns of the name of a way
SLOW = 2.0  # seconds without an answer, after which the card says so
LOOK = 0.2  # seconds between two looks whether the user has answered or left
BROWSER, KEY, CODE, QR, SERVER = "browser", "key", "code", "qr", "server"
BLANK = Item(None, (("", "text"),))


class Way(NamedTuple):
    """A way to sign in. `name`: its name in lists. `brief`: what it needs, in 24 columns. `needs`: the same
    in a line. `about`: what happens, in whole sentences."""

    name: str
    brief: str
    needs: str
    about: str


WAYS = {
    BROWSER: Way(
        "browser",
        "on this or any device",
        "on any device: open an address and type a code",
        "The app shows an address and a code. Open the address in a browser on this or any other device, "
        "sign in or make an account there, and type the code. Here you need no browser, so it works over "
        "SSH too.",
    ),
    KEY: Way(
        "this machine",
        "by its key, no browser",
        "its key makes an account, or signs in; no password",
        "The key of this machine signs in. Type the name of the account. If nobody has that name yet, the "
        "account is made, where the server lets strangers join.",
    ),
    CODE: Way(
        "code",
        "from a signed-in device",
        "of svc auth device add, where you are signed in",
        "This machine joins an account that you have. Run `svc auth device add` on a device that is signed "
        "in: it prints a code, which you type here within ten minutes.",
    ),
    QR: Way(
        "QR text",
        "from a signed-in device",
        "of svc auth device pair, where you are signed in",
        "This machine joins an account that you have. Run `svc auth device pair` on a device that is signed "
        "in, and paste here the text below its QR code. Both devices then show six digits to compare.",
    ),
}


WAITING = "waiting until you approve it there"
ABOUT_SERVER = "Which server? The address of the node, as its operator names it."


class SignIn(Card):
    """A card with the server and the ways to sign in to it. `sessions`: the sessions and keys of this
    machine. `signed_in`: called with the new session, once the card is closed. `origin`: the server, "" if
    none is known yet. `account`: the handle to begin with. `way`: the way that begins at once, if any."""

    WIDTH, SHARE, LEAST = 84, 80, 12
    ALONE = True
    where = "sign in"
    ACTIONS = (
        Action("open", ("enter",), "go on", "svc login", footer=True),
        Action("copy", ("y",), "copy the address", footer=True),
    )

    def __init__(
        self,
        sessions: Sessions,
        signed_in: Callable[[Session], None],
        origin: str,
        account: str = "",
        way: str = "",
    ) -> None:
        super().__init__()
        self._sessions, self._signed_in, self._origin, self._account = sessions, signed_in, origin, account
        self._begins_with = way
        self._approval: Approval | None = None  # while the app waits for it
        self._doing = ""  # what the app waits for
        self._at: Hashable = way or BROWSER  # the row of the way that was begun last
        self._stopped = threading.Event()  # of the attempt that runs
        self._comparing = False  # whether the user is asked to compare digits
        self._asking: Hashable = ""  # the way for which a prompt asks for something, "" for none
        self._needs_code = False  # whether it asks for the code of the account
        self._taken = ""  # the account that does not know this machine, as the server has said
        self._told: Part | None = None  # what the card says

    def content(self) -> ComposeResult:
        yield Lines(id="ways")

    def title_parts(self) -> Sequence[Part]:
        way = WAYS.get(str(self._at)) if self._asking or self._doing else None
        return ((" Sign in" + (f" · {way.name}" if way is not None else ""), "title"),)

    def say(self, text: str, role: str = "text", undo: Undo | None = None) -> None:
        """Show a message in the card, until there is another one or the user begins something."""
        self._told = (safe(in_app(text)), role) if text else None
        self.paint()
        self.show_frame()

    def say_unused(self, key: str) -> None:
        help_key = next((spell_key(at.keys[0]) for at in self.svc.actions() if at.id == "help"), "")
        lists = f"; {help_key} lists what does" if help_key else ""
        super().say(f"{key} does nothing in this card{lists}", "dim")

    def on_mount(self) -> None:
        super().on_mount()
        self.paint()
        way = self._begins_with
        if way == BROWSER and self._origin:  # without a prompt that takes what is typed
            self.call_after_refresh(self._begin, way)
        elif way or not self._origin:
            self.open_prompt(lambda: self._begin(way))

    def on_resize(self) -> None:
        super().on_resize()
        key = self.query_one(Lines).key if self.has_widgets and not self._doing else None
        self._at = key if key is not None else self._at  # the cursor stays
        self.paint()

    def on_unmount(self) -> None:
        self._stopped.set()

    def news(self) -> None:
        """Does nothing, because the card shows nothing of a repository."""

    def label_of(self, action: Action) -> str:
        if action.id == "copy" and self._approval is None:
            return ""
        if action.id == "back":
            return "stop" if self._doing else "leave"
        if action.id == "filter":
            return ""
        if action.id == "open":
            return "" if self._doing else "change" if self.query_one(Lines).key == SERVER else "go on"
        return super().label_of(action)

    # --- rows

    @property
    def _width(self) -> int:
        return max(20, min(self.WIDTH, self.app.size.width - 4) - 5)

    def paint(self) -> None:
        if not self.has_widgets:
            return
        rows = self._doing_rows() if self._doing else self._asked_rows() if self._asking else self._way_rows()
        if self._told is not None:
            text, role = self._told
            rows += [BLANK, *self._fold(f"✗ {text}" if role == "bad" else text, role)]
        self.query_one(Lines).show(sequence(rows), self._at)
        self.fit(len(rows) + 1)

    def _way_rows(self) -> list[Item]:
        rows = [
            Item(way, ((f"{words.name:<{NAME}} ", "accent"), (words.needs, "text")), text=words.name)
            for way, words in WAYS.items()
        ]
        rows += [BLANK, self._server_row(SERVER), *self._warning_rows(), BLANK]
        about = WAYS[str(self._at)].about if self._at in WAYS else ABOUT_SERVER
        return [*rows, *self._fold(about, "dim")]

    def _asked_rows(self) -> list[Item]:
        """Returns rows about what the user is asked for: what is chosen already, and what happens next."""
        way = CODE if self._needs_code else str(self._asking)
        about = WAYS[way].about if way in WAYS else ABOUT_SERVER
        return [*self._chosen_rows(), *self._warning_rows(), BLANK, *self._fold(about, "dim")]

    def _chosen_rows(self) -> list[Item]:
        rows = [] if self._asking == SERVER else [self._server_row(None)]
        if self._account and (self._needs_code or self._doing) and self._at in (KEY, CODE):
            rows.append(Item(None, ((f"{'account':<{NAME}} ", "dim"), (safe(self._account), "text"))))
        return rows

    def _server_row(self, key: Hashable) -> Item:
        server: Part = (safe(self._origin), "text") if self._origin else ("which one? needed", "warn")
        return Item(key, ((f"{'server':<{NAME}} ", "dim"), server), text="server")

    def _fold(self, text: str, role: str) -> list[Item]:
        return [Item(None, row) for row in fold([(text, role)], self._width)]

    def _warning_rows(self) -> list[Item]:
        warning = self._warning()
        return self._fold(*warning[0]) if warning else []

    def _warning(self) -> list[Part]:
        """Returns what speaks against the server, as parts."""
        if self._origin.startswith("http:") and not is_loopback(self._origin):
            return [("not encrypted: others on the way can read what you send", "warn")]
        if self._is_named_by_folder:
            return [("named by this folder; sign in only if you trust it", "warn")]
        return []

    @property
    def _is_named_by_folder(self) -> bool:
        """Whether the server is known only from the link of this folder, which may come from a stranger."""
        folder = self.svc.place.folder
        try:
            return (
                folder is not None
                and read_repo(folder).server == self._origin
                and self._sessions.find(self._origin) is None
                and self._sessions.default_server() != self._origin
            )
        except SvcError:
            return False

    def _doing_rows(self) -> list[Item]:
        doing = self._fold(f"◐ {self._doing}; esc stops", "dim")
        if self._approval is None:
            return [*self._chosen_rows(), BLANK, *doing]
        approval = self._approval
        return [
            *_make_rows("open", approval.url, "link", self._width),
            BLANK,
            *_make_rows("type there", approval.user_code, "title", self._width),
            BLANK,
            *_make_rows("compare", approval.fingerprint, "text", self._width),
            Item(None, ((" " * (NAME + 1), "text"), ("the page must show this fingerprint", "dim"))),
            BLANK,
            *doing,
        ]

    # --- the ways

    def on_lines_moved(self, event: Lines.Moved) -> None:
        super().on_lines_moved(event)
        key = self.query_one(Lines).key
        if key is not None and key != self._at and not (self._doing or self._asking):
            self._at, self._told = key, None
            self.paint()
        self.show_keys()

    def on_lines_chosen(self, event: Lines.Chosen) -> None:
        self._told = None
        self._begin(event.key)

    def _begin(self, way: Hashable) -> None:
        """Begin a way to sign in: ask for what it needs, or run it."""
        if self._doing:
            return
        self._at, self._taken = way, ""
        self.query_one(Lines).go_to(way)
        if way == SERVER or not self._origin:
            self._ask_server("" if way == SERVER else way)
        elif way == BROWSER:
            self._by_browser()
        elif way in (KEY, CODE):
            self._ask_account()
        elif way == QR:
            self._ask_for(QR, "text below the code, svc-pair:1:…", self._by_qr, enter="join", label="QR text")

    def _ask_for(
        self,
        way: Hashable,
        sign: str,
        done: Callable[[str], None],
        *,
        enter: str,
        label: str,
        value: str = "",
        back: Callable[[], None] | None = None,
        needs_code: bool = False,
        leave: str = "other ways",
    ) -> None:
        """Ask for what `way` needs. What is typed replaces `value`. `back`: called at esc, in place of the
        list of ways. `needs_code`: a code of the account is asked for. `leave`: where esc leads."""

        def close() -> None:
            self._asking, self._needs_code = "", False
            self.paint()

        def answer(typed: str) -> None:
            self._told = None
            close()
            done(typed)

        def go_back() -> None:
            self._told = None
            close()
            if back is not None:
                back()

        self._asking, self._needs_code = way, needs_code
        self.paint()
        self.ask(
            sign,
            answer,
            value=value,
            on_leave=go_back,
            label=f"{label:<{NAME}}",
            enter=enter,
            leave_label=leave,
        )
        if self._prompt is not None:
            self._prompt.action_select_all()

    def _ask_server(self, then: Hashable = "") -> None:
        """Let the user type the server. `then`: the way that begins after that, "" for none."""

        def done(typed: str) -> None:
            try:
                self._origin = parse_origin(typed)
            except UsageError as error:
                self._ask_server(then)
                self.say(sentence(error), "warn")
                return
            self._at = then or BROWSER
            self.paint()
            self.query_one(Lines).go_to(self._at)
            self.show_keys()
            if then:
                self._begin(then)

        words = "node.example, or 127.0.0.1:8080"
        self._ask_for(SERVER, words, done, value=self._origin, label="server", enter="next")

    def _ask_account(self) -> None:
        needs_code = self._at == CODE

        def done(typed: str) -> None:
            self._account = typed.strip()
            try:
                argument(check_handle, self._account)
            except UsageError as error:
                self._ask_account()
                self.say(sentence(error) if self._account else "an account needs a name", "bad")
                return
            if needs_code or self._account == self._taken:
                self._ask_code()
            else:
                self._by_key()

        words = "name of the account" if needs_code else "name of the account; a free one becomes yours"
        enter = "next" if needs_code else "sign in"
        self._ask_for(self._at, words, done, value=self._account, label="account", enter=enter)

    def _ask_code(self, value: str = "") -> None:
        from localstore.core.identity.device_grant import normalise_pairing_code

        def done(typed: str) -> None:
            code = typed.strip()
            if not code:
                self._ask_code()
                self.say("no code was typed; where you are signed in, type: svc auth device add", "warn")
                return
            try:
                argument(normalise_pairing_code, code)
            except UsageError as error:
                self._ask_code(code)
                self.say(sentence(error), "bad")
                return
            self._by_key(code)

        words = "as svc auth device add prints it: BCDF-GHJK-LMNP"
        self._ask_for(
            self._at,
            words,
            done,
            value=value,
            label="code",
            enter="sign in",
            back=self._ask_account,
            needs_code=True,
            leave="the account",
        )

    def _by_browser(self) -> None:
        from svc.flows.sign_in.login import by_browser

        origin, stopped = self._origin, threading.Event()

        def show(approval: Approval) -> None:
            self.svc.later(lambda: self._show_approval(stopped, approval))

        def miss(error: SvcError | None) -> None:
            self.svc.later(lambda: self._show_waiting(stopped, is_away=error is not None))

        self._run(
            stopped,
            "asking the server for a code",
            lambda: by_browser(origin, self._sessions, show, sleep=_sleep_until(stopped), missed=miss),
        )

    def _show_approval(self, stopped: threading.Event, approval: Approval) -> None:
        if self._goes_on(stopped):
            self._approval = approval
            self._show_waiting(stopped, is_away=False)

    def _show_waiting(self, stopped: threading.Event, is_away: bool) -> None:
        """Say that the app waits for the approval. `is_away`: the server does not answer meanwhile."""
        doing = "the server does not answer; it is asked again" if is_away else WAITING
        if self._goes_on(stopped) and doing != self._doing:
            self._doing = doing
            self.paint()
            self.show_frame()

    def _by_key(self, code: str = "") -> None:
        from svc.flows.sign_in.login import by_device_key

        origin, account = self._origin, self._account
        self._run(
            threading.Event(),
            f"signing in as {account}",
            lambda: by_device_key(origin, self._sessions, account, code or None),
            lambda error: self._refuse_key(error, code),
        )

    def _refuse_key(self, error: SvcError | OSError, code: str) -> None:
        """Say why the key of this machine does not sign in. If the account does not know it, ask for a
        code."""
        if isinstance(error, NotFound):
            self.say("this server does not offer the sign-in by key; choose browser", "warn")
        elif not isinstance(error, HandleTaken):
            if isinstance(error, Invalid):  # nobody has the account that a code was typed for
                self._ask_account()
            elif isinstance(error, UsageError):  # a code or a name is to be corrected
                self._ask_code(code) if code else self._ask_account()
            self.say(_words_of(error), "bad")
        elif code:
            self._ask_code(code)
            words = "the code is mistyped, used, older than ten minutes, or not one of"
            self.say(f"{words} {self._account}", "bad")
        else:
            self._taken = self._account
            self._ask_account()
            words = f"{self._account} is taken, and does not know this machine. Type another name."
            self.say(f"{words} Or is it yours? enter again asks for a code of a device that it knows.", "bad")

    def _by_qr(self, typed: str) -> None:
        from svc.flows.sign_in import pairing

        try:
            text = pairing.read_code(typed.strip())
        except UsageError as error:
            self.say(sentence(error), "warn")
            return
        stopped = threading.Event()

        def compare(digits: str, account: str) -> bool:
            answers: SimpleQueue[bool] = SimpleQueue()
            self.svc.later(lambda: self._compare(stopped, digits, account, answers.put))
            sleep = _sleep_until(stopped)
            while True:
                try:
                    return answers.get_nowait()
                except Empty:
                    sleep(LOOK)

        self._origin = text.origin
        self._run(
            stopped,
            "waiting for the device that shows the code",
            lambda: pairing.join(text, self._sessions, "", compare, sleep=_sleep_until(stopped)),
        )

    def _compare(
        self, stopped: threading.Event, digits: str, account: str, answer: Callable[[bool], None]
    ) -> None:
        """Ask whether the other device shows the same digits. Does nothing if the attempt has ended."""
        if not self._goes_on(stopped):
            return

        def done(same: bool) -> None:
            self._comparing = False
            answer(same)

        self._comparing = True
        words = (
            f"Does the other device show {digits[:3]} {digits[3:]}? Then this machine joins the account "
            f"{safe(account)}."
        )
        self.ask(
            "",
            lambda typed: done(typed.strip().lower() == "y"),
            on_leave=lambda: done(False),
            answers=YES_OR_NO,
            question=PromptQuestion(words),
        )

    # --- running

    def _run(
        self,
        stopped: threading.Event,
        doing: str,
        sign_in: Callable[[], Session],
        refused: Callable[[SvcError | OSError], None] | None = None,
    ) -> None:
        """Sign in on a thread. `stopped`: ends the attempt once it is set. `doing`: what the card shows
        meanwhile. `refused`: called with the reason if the sign-in fails. Without it, the card says the
        reason."""
        self._stopped, self._doing, self._approval = stopped, doing, None
        self.say("")
        self.set_timer(SLOW, lambda: self._say_slow(stopped))

        def work() -> None:
            try:
                session = sign_in()
            except KeyboardInterrupt:  # what `_sleep_until` raises
                return
            except (SvcError, OSError) as error:  # the session is written to a file
                failure = error
                self.svc.later(lambda: self._fail(stopped, failure, refused))
            else:
                self.svc.later(lambda: self._succeed(stopped, session))

        self.app.run_worker(work, thread=True, group="sign in", exit_on_error=False)

    def _say_slow(self, stopped: threading.Event) -> None:
        """Say that the server takes long to answer. With a QR text, another device is waited for."""
        if self._goes_on(stopped) and self._approval is None and self._at != QR:
            self._doing += "; the server does not answer yet"
            self.paint()

    def _goes_on(self, stopped: threading.Event) -> bool:
        """Returns whether the card still waits for this attempt. `stopped`: what ends the attempt."""
        return stopped is self._stopped and not stopped.is_set() and self.is_attached

    def _fail(
        self,
        stopped: threading.Event,
        error: SvcError | OSError,
        refused: Callable[[SvcError | OSError], None] | None,
    ) -> None:
        if not self._goes_on(stopped):
            return
        self._end()
        if isinstance(error, ServerUnreachable) and self._origin == self.svc.client.origin:
            self.svc.note_failure(error)
        if refused is None:
            self.say(_words_of(error), "bad")
        else:
            refused(error)

    def _succeed(self, stopped: threading.Event, session: Session) -> None:
        if stopped is self._stopped and self.is_attached:
            self.app.pop_screen()
        self._signed_in(session)

    def _end(self) -> None:
        """Show the ways again, because the attempt has ended."""
        self._stopped.set()
        if self._comparing:
            self._comparing = False
            self._remove_prompt(self.query_one(Lines))
        self._doing, self._approval = "", None
        self.paint()
        self.show_frame()

    def do_back(self) -> None:
        """Stop the attempt that runs. If none does, close the card."""
        if self._doing:
            self._end()
            self.say("stopped; nobody was signed in", "dim")
        else:
            super().do_back()

    def do_copy(self) -> None:
        if self._approval is None:
            self.say("there is no address yet; choose browser", "warn")
        else:
            copy(self, self._approval.url_with_code)


def _make_rows(name: str, value: str, role: str, width: int) -> list[Item]:
    """Returns rows with a name and its value, which is wrapped to the columns that are left."""
    lines = fold(((safe(value), role),), max(12, width - NAME - 1))
    return [
        Item(None, ((f"{name if not place else '':<{NAME}} ", "dim"), *line))
        for place, line in enumerate(lines)
    ]


def _words_of(error: SvcError | OSError) -> str:
    """Returns the sentence about an error, with ways of the card in place of commands to sign in."""
    if isinstance(error, OSError):
        return f"this machine cannot keep the session: {error.strerror or type(error).__name__}"
    words = re.sub(r"run :login --device-key .*--pair CODE", "choose code here", sentence(error))
    return re.sub(r"run :login\b.*", "choose browser here", words)


def _sleep_until(stopped: threading.Event) -> Callable[[float], None]:
    """Returns a function that sleeps for some seconds. It raises KeyboardInterrupt once `stopped` is set, as
    ctrl+c does in the commands, so that a pairing is ended on the server too."""

    def sleep(seconds: float) -> None:
        if stopped.wait(seconds):
            raise KeyboardInterrupt

    return sleep
