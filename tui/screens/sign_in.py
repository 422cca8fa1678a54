"""The card in which the user signs in to a server: by a code that is typed in a browser on any device, by the
key of this machine, or by a code of a device that is signed in."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Hashable, Sequence
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, NamedTuple

from textual.app import ComposeResult

from localstore.core.errors import NotFound, SvcError, UsageError
from localstore.core.model.auth import HandleTaken
from localstore.folder.link import read_repo
from svc.http.origin import is_loopback, parse_origin
from tui.actions import Action
from tui.client import sentence
from tui.screens.base import PromptQuestion
from tui.screens.card import Card
from tui.screens.code.clipboard import copy
from tui.text import Part, fold, safe
from tui.widgets.frame import YES_OR_NO
from tui.widgets.lines import Item, Lines, sequence

if TYPE_CHECKING:
    from svc.flows.sign_in.login import Approval
    from svc.http.session import Session, Sessions

NAME = 13  # columns of the name of a way
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
        "by its own key: no browser and no password",
        "The key of this machine signs in. Type the name of the account. If nobody has that name yet, the "
        "account is made, where the server lets strangers join.",
    ),
    CODE: Way(
        "code",
        "from a signed-in device",
        "printed by svc auth device add where you are signed in",
        "This machine joins an account that you have. Run `svc auth device add` on a device that is signed "
        "in: it prints a code, which you type here within ten minutes.",
    ),
    QR: Way(
        "QR text",
        "from a signed-in device",
        "of svc auth device pair there; six digits are compared",
        "This machine joins an account that you have. Run `svc auth device pair` on a device that is signed "
        "in, and paste here the text below its QR code. Both devices then show six digits to compare.",
    ),
}


class SignIn(Card):
    """A card with the server and the ways to sign in to it. `sessions`: the sessions and keys of this
    machine. `signed_in`: called with the new session, once the card is closed. `origin`: the server, "" if
    none is known yet. `account`: the handle to begin with. `way`: the way that begins at once, if any."""

    WIDTH, SHARE, LEAST = 84, 75, 12
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

    def content(self) -> ComposeResult:
        yield Lines(id="ways")

    def title_parts(self) -> Sequence[Part]:
        return ((" Sign in", "title"),)

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
        if action.id == "back" and self._doing:
            return "stop"
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
        rows = self._approval_rows() if self._doing else self._way_rows()
        self.query_one(Lines).show(sequence(rows), self._at)
        self.fit(len(rows) + 1)

    def _way_rows(self) -> list[Item]:
        rows = [
            Item(way, ((f"{words.name:<{NAME}} ", "accent"), (words.needs, "text")), text=words.name)
            for way, words in WAYS.items()
        ]
        server: Part = (safe(self._origin), "text") if self._origin else ("which one? needed", "warn")
        rows += [BLANK, Item(SERVER, ((f"{'server':<{NAME}} ", "dim"), server), text="server")]
        return [
            *rows,
            *(Item(None, (("  ", "text"), *row)) for row in fold(self._warning(), self._width - 2)),
        ]

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

    def _approval_rows(self) -> list[Item]:
        if self._approval is None:
            return [BLANK, Item(None, ((f"◐ {self._doing}", "dim"),))]
        approval = self._approval
        return [
            *_make_rows("open", approval.url, "link", self._width),
            BLANK,
            *_make_rows("type there", approval.user_code, "title", self._width),
            BLANK,
            *_make_rows("compare", approval.fingerprint, "text", self._width),
            Item(None, ((" " * (NAME + 1), "text"), ("the page must show this fingerprint", "dim"))),
            BLANK,
            Item(None, ((f"◐ {self._doing}", "dim"),)),
        ]

    # --- the ways

    def on_lines_chosen(self, event: Lines.Chosen) -> None:
        self._begin(event.key)

    def _begin(self, way: Hashable) -> None:
        """Begin a way to sign in: ask for what it needs, or run it."""
        if self._doing:
            return
        self._at = way
        self.query_one(Lines).go_to(way)
        if way == SERVER or not self._origin:
            self._ask_server("" if way == SERVER else way)
        elif way == BROWSER:
            self._by_browser()
        elif way in (KEY, CODE):
            self._ask_account(needs_code=way == CODE)
        elif way == QR:
            self.ask(
                "text below the code, svc-pair:1:…", self._by_qr, enter="join", label=f"{'QR text':<{NAME}}"
            )

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
        self.ask(words, done, value=self._origin, label=f"{'server':<{NAME}}", enter="next")

    def _ask_account(self, needs_code: bool) -> None:
        def done(typed: str) -> None:
            self._account = typed.strip()
            if not self._account:
                self.say("an account needs a name", "warn")
            elif needs_code:
                self._ask_code()
            else:
                self._by_key()

        words = "name of the account" if needs_code else "name of the account; a free one becomes yours"
        self.ask(
            words,
            done,
            value=self._account,
            label=f"{'account':<{NAME}}",
            enter="next" if needs_code else "sign in",
        )

    def _ask_code(self, value: str = "") -> None:
        def done(typed: str) -> None:
            if typed.strip():
                self._by_key(typed.strip())
            else:
                self.say("no code was typed; where you are signed in, type: svc auth device add", "warn")

        words = "as svc auth device add prints it: BCDF-GHJK-LMNP"
        self.ask(words, done, value=value, label=f"{'code':<{NAME}}", enter="sign in")

    def _by_browser(self) -> None:
        from svc.flows.sign_in.login import by_browser

        origin, stopped = self._origin, threading.Event()

        def show(approval: Approval) -> None:
            self.svc.later(lambda: self._show_approval(stopped, approval))

        self._run(
            stopped,
            "asking the server for a code",
            lambda: by_browser(origin, self._sessions, show, sleep=_sleep_until(stopped)),
        )

    def _show_approval(self, stopped: threading.Event, approval: Approval) -> None:
        if self._goes_on(stopped):
            self._approval, self._doing = approval, "waiting until you approve it there; esc stops"
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
            if isinstance(error, UsageError):  # a code or a name is to be corrected
                self._ask_code(code) if code else self._ask_account(self._at == CODE)
            self.say(_words_of(error), "bad")
        elif code:
            self._ask_code(code)
            words = "the code is mistyped, used, older than ten minutes, or another account's than"
            self.say(f"{words} {self._account}'s", "bad")
        else:
            self._ask_code()
            words = f"{self._account} is taken and does not know this machine; where you are signed in, type:"
            self.say(f"{words} svc auth device add, and here its code; or esc for another name", "warn")

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
            "waiting for the device that shows the code; esc stops",
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
        self.paint()

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
