"""The terminal app: `svc tui`, and bare `svc` on a terminal.

    SvcApp(client, Place(repo, folder), keys).run()

Each screen first paints cached data, requests the current data from the server, and paints again. Keys run
the actions in the table of `tui.actions`. Requests to servers never run on the app's main thread."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from rich.console import Console
from textual.constants import COLOR_SYSTEM
from textual.worker import Worker, get_current_worker

from localstore.core.errors import SvcError
from localstore.core.model.repo import Repo
from svc.flows.editor import editor, run
from svc.http.bounds import Cancel, within
from tui import reads
from tui.actions import EVERYWHERE, WITHIN, Action, remap
from tui.client import NO_SERVER, Client, sentence, state_after
from tui.colouring import COLOURING
from tui.commands import SEAL, Commands, Parameter, known_values, missing, parse_values, words_of
from tui.display.hyperlinks import terminal_opens
from tui.display.screen import Overlay
from tui.drafts import Drafts
from tui.images.protocol import Way
from tui.listening.news import SLOW, News
from tui.machine import NOWHERE, Machine, Place
from tui.offers import OFFERS
from tui.outbox import AppOutbox
from tui.reads import Read
from tui.screens.order import KeysInOrder
from tui.sending import Sending
from tui.theme import CHOSEN, COLOURLESS, choose_selected, choose_theme, is_terminals, light_ground
from tui.tints import Tints, tints
from tui.widgets.picture import over
from tui.wording import UNANSWERED, UNSEEN

if TYPE_CHECKING:
    from svc.http.session import Session, Sessions

T = TypeVar("T")

LOGIN = "login"  # the command that the card to sign in stands for
DIFF = "diff"  # the command of which a screen does a part
MACHINE = "machine"  # the action that is absent over SSH
ENDING = 1.0  # seconds that calls to a server have to end after the app was left
THREADS = 32  # that may wait for a server, the disk or the agent at one time
TICK = 10.0  # seconds between two looks at what times say by now
WIDEST = 500  # columns that a command prints for without a screen of its own: a sentence stays one line


class SvcApp(KeysInOrder, inherit_bindings=False):
    """The app. `colours`: name of the theme. `images`: how the terminal shows pictures. `commands`: svc's
    commands, None if the app was opened without them. `account_now`: returns the account that is signed in on
    this machine now, because a command may have changed it. `sessions`: the sessions and keys of this
    machine, None if nobody signs in here, as over SSH. `reopens`: the app has ended in order to be opened
    again, at the server `reopens_at`, where it then says `reopens_with`."""

    ENABLE_COMMAND_PALETTE = False
    CSS = """
    Screen { background: ansi_default; color: ansi_default; layers: base over; }
    .row { height: 1fr; width: 1fr; }
    """

    def __init__(
        self,
        client: Client,
        place: Place = NOWHERE,
        keys: Mapping[str, tuple[str, ...]] | None = None,
        colours: str = "terminal",
        clock: Callable[[], float] = time.time,
        sending: Sending | None = None,
        drafts: Path | None = None,
        machine: Machine | None = None,
        images: Way = "blocks",
        commands: Commands | None = None,
        notice: str = "",
        account_now: Callable[[], str] = lambda: "",
        sessions: Sessions | None = None,
    ) -> None:
        if not os.environ.get("NO_COLOR"):
            os.environ.pop("NO_COLOR", None)  # an empty one counts for Textual, and means colours
        console = Console(force_terminal=True, color_system=cast("Any", COLOR_SYSTEM), legacy_windows=False)
        colours = choose_theme(colours, console.color_system, bool(os.environ.get("NO_COLOR")))
        super().__init__(ansi_color=is_terminals(colours))
        self.client, self.place, self.keys, self.clock = client, place, dict(keys or {}), clock
        self.colours = colours
        self.outbox, self.machine, self.commands = AppOutbox(self, sending), machine, commands
        self.drafts = Drafts(drafts) if drafts is not None else None
        self.draft = ""  # the one that is being sent
        self.images, self.notice = images, notice
        self.declined: set[tuple[str, str]] = set()  # rows of the inbox, by id and time
        self.pressed = ""  # the key whose action runs
        self.used_actions: list[str] = []
        self._typed_lines: list[str] = []  # command lines that were run, the newest first
        self.news = News(self)
        if not client.origin:
            self.news.state = NO_SERVER
        self._painted = False
        self._selected = ("", "")  # a theme and the role of the cursor's line in it
        self.shares: dict[str, int] = {}  # hundredths of the width that a list takes, by its name
        self._opens_links = terminal_opens(os.environ)
        self.broken: Exception | None = None
        self._account_now, self.sessions = account_now, sessions
        self.reopens, self.reopens_at, self.reopens_with = False, "", ""
        self._ending = Cancel()  # of calls that a server does not answer, when the app ends
        self.animation_level = "none"

    @property
    def selected(self) -> str:
        """The role (name of a colour in the theme) that paints the line under a cursor."""
        if self._selected[0] != self.colours:
            ground = os.environ.get("COLORFGBG", "")
            role = choose_selected(self.colours, self.console.color_system, self.no_color, ground)
            self._selected = self.colours, role
        return self._selected[1]

    @property
    def tints(self) -> Tints | None:
        """The backgrounds of changed lines, None if the theme has none."""
        light = light_ground(os.environ.get("COLORFGBG", ""))
        return tints(self.colours, self.console.color_system, light, self.no_color)

    @property
    def opens_links(self) -> bool:
        """Whether the terminal itself opens links when they are clicked. False if the app runs in a page of a
        browser, whatever the environment variables say about the terminal."""
        return self._opens_links and not self.is_web

    def over(self) -> Overlay | None:
        return over(self.screen, self.images)

    def actions(self) -> tuple[Action, ...]:
        """The actions that keys run now: those of the screen, and those of the app that the screen does not
        replace by its own."""
        own = tuple(getattr(self.screen, "actions", tuple)())
        named = {action.id for action in own}
        if self.machine is None:
            named.add(MACHINE)
        others = WITHIN if getattr(self.screen, "ALONE", False) else (*EVERYWHERE, *OFFERS)
        return remap((*own, *(action for action in others if action.id not in named)), self.keys)

    def press(self, key: str) -> bool:
        """Run the action that belongs to a key on this screen. Returns False if none does."""
        taken = next((action for action in self.actions() if key in action.keys), None)
        if taken is None:
            return False
        self.pressed = key
        self.carry_out(taken)
        self.pressed = ""
        return True

    def carry_out(self, action: Action) -> None:
        current: Any = self.screen
        if action.needs == "signed_in" and not self.outbox.signed_in:
            current.say("sign in for this with :login", "warn")
            return
        why = self.find_refusal(action)
        if why:
            current.say(why, "warn")
            return
        name = f"do_{action.id}"
        own = getattr(self.screen, "handler", None)
        run = own(name) if own else getattr(self.screen, name, None)
        run = run or getattr(self, name, None)
        if run is not None:
            run()
        elif action.command and self.commands is not None:
            self.open_form(self.commands.path_in(action.command.removeprefix("svc ").split()))

    def load(
        self,
        read: Read[T],
        paint: Callable[[T, float], None],
        failed: Callable[[BaseException], None] | None = None,
        unanswered: Callable[[], None] | None = None,
    ) -> None:
        """Paint cached data, then request the data from the server and paint it again. `paint(value, at)`:
        paints the data, which was read at the time `at` (in seconds since 1970). If the request fails, the
        painted data stays, the error is shown, and `failed` is called. `unanswered`: called after SLOW
        seconds without an answer, if nothing is cached."""
        screen = self.screen
        cached = self.client.read_cached(read)
        if cached is not None:
            paint(*cached)
            if read.final:
                return
        ended = threading.Event()

        def work() -> None:
            began = time.monotonic()
            self.later(lambda: self.news.note_request(began))
            try:
                value, at = self.client.fetch(read)
                self.news.took = time.monotonic() - began
            except Exception as error:
                ended.set()
                self._tell(worker(), screen, error, failed, cached[1] if cached is not None else None)
                return
            finally:
                ended.set()
                self.later(lambda: self.news.note_answer(began))
            if not worker().is_cancelled:
                self.call_from_thread(self._paint_arrived, screen, lambda: paint(value, at))

        def worker() -> Worker[None]:
            return get_current_worker()

        def ask() -> None:
            # A newer reading replaces an older one that paints the same, never one that paints something
            # else, which would wait for ever: a card and the page behind it read the same proposal.
            group = (
                f"{id(getattr(paint, '__self__', screen))} {getattr(paint, '__qualname__', '')} {read.key}"
            )
            self.run_worker(work, thread=True, group=group, exclusive=True, exit_on_error=False)
            if cached is None:
                self.set_timer(SLOW, partial(_say_unanswered, screen, ended, unanswered))

        if self._painted:
            ask()
        else:  # the client's modules take as long as the first paint
            self.call_after_refresh(ask)

    def compose_text(self, name: str, done: Callable[[str], None]) -> None:
        """Let the user write a text in their own editor, and call `done` with it. `name`: name of the draft.
        The draft stores the text until `done` has put an action into the outbox."""
        saying: Any = self.screen
        if self.drafts is None:
            return
        if self.is_web:
            saying.say("a page has no terminal for your editor; type it here with c", "warn")
            return
        file = self.drafts.file(name)
        try:
            command = editor(os.environ, "type it here with c")
            file.touch(mode=0o600)
            with self.suspend():
                run(command, file, "nothing was sent")
        except SvcError as error:
            saying.say(f"the draft is kept, {file.name}: {sentence(error)}", "bad")
            return
        finally:
            self.forget_display()
            self.refresh(layout=True)
        self.finish(name, done, self.drafts.read(name))

    def run_in_terminal(self, words: list[str]) -> None:
        """Run a command of svc in the terminal in place of the app. The app comes back when the command ends.
        `words`: the command line."""
        from tui.terminal import lend

        saying: Any = self.screen
        driver = self._driver
        if driver is None or not driver.can_suspend or self.machine is None:
            saying.say(f"there is no terminal for it here; in one, type: svc {shlex.join(words)}", "warn")
            return
        try:
            with self.suspend():
                lend(words, self.place.folder, self.machine.environment)
        except OSError as error:
            saying.say(f"svc cannot be started: {error.strerror}", "bad")
        finally:
            self.forget_display()
            self.refresh(layout=True)

    def finish(self, name: str, done: Callable[[str], None], text: str, blank: bool = False) -> None:
        """Call `done` with a text that the user has written. The draft `name` is deleted once `done` has put
        an action into the outbox. If the text is empty, only the draft is deleted. `blank`: call `done` with
        an empty text too."""
        if text.strip() or blank:
            self.draft = name
            done(text)
            self.draft = ""
        elif self.drafts is not None:
            self.drafts.keep(name, "")

    def write_text(
        self,
        what: str,
        text: str,
        done: Callable[[str], None],
        changed: Callable[[str], None],
        *,
        blank: bool = False,
        sends: str = "",
        replaced: Sequence[str] = (),
        before: str | None = None,
    ) -> None:
        """Let the user write a text of several lines in the app, on the card `Write`. `what`: the title of
        the card. `text`: the text at the beginning. The other parameters are those of `Write`."""
        from tui.screens.write import Write

        self.push_screen(
            Write(what, text, done, changed, blank=blank, sends=sends, replaced=replaced, before=before)
        )

    def show_tab_of(self, repo: Repo, number: int) -> None:
        """Show a tab of a repository. If its screen is below the one in front, return to it,
        otherwise open it in the place of the one in front. `number`: that of the tab, from 1."""
        from tui.screens.repo import RepoScreen

        for above, screen in enumerate(reversed(self.screen_stack)):
            if isinstance(screen, RepoScreen) and screen.repo.id == repo.id:
                for _ in range(above):
                    self.pop_screen()
                screen.show_tab(number)
                return
        self.switch_screen(RepoScreen(repo, number))

    def follow_link(self, screen: Any, target: str) -> None:
        """Open the target of a link on `screen`. If it cannot be opened, copy its address."""
        from tui.screens.following import follow

        follow(screen, target)

    def _tell(
        self,
        worker: Worker[None],
        screen: Any,
        error: BaseException,
        failed: Callable[[BaseException], None] | None,
        read_at: float | None,
    ) -> None:
        """Tell `screen` that a request has failed with `error`. `read_at`: when what the screen shows in
        place of the answer was read, None if it shows nothing."""
        if worker.is_cancelled:
            return

        def tell() -> None:
            self.note_failure(error)
            if screen.remains:
                state = self.news.state
                silent = state == "offline"
                screen.say_unread(UNSEEN if silent else sentence(error))
                if silent:
                    screen.say_away(sentence(error), read_at)
                else:
                    screen.say(sentence(error), "bad" if state == "online" else "warn")
                if failed is not None:
                    failed(error)

        self.call_from_thread(tell)

    def note_failure(self, error: BaseException) -> None:
        """Show the state of the connection after a request that failed with `error`."""
        self.news.reason = sentence(error)
        self.news.state = state_after(error) if self.client.origin else NO_SERVER

    def _paint_arrived(self, screen: Any, paint: Callable[[], None]) -> None:
        self.news.state = "online"
        if screen.remains:
            paint()
            screen.show_frame()

    def do_go_repo(self) -> None:
        """Let the user choose a repository and open it: one of their own, or another that they may see."""
        from tui.screens.choose import ChooseRepo
        from tui.screens.repo import RepoScreen

        def go(repo: Repo) -> None:
            self.push_screen(RepoScreen(repo))

        self.push_screen(ChooseRepo(go))

    @property
    def repos(self) -> Read[list[Repo]]:
        """Returns the request for the user's repositories, with the one that belongs to the linked folder."""
        return reads.repos(self.client.account, self.place.repo_id)

    def _handle_exception(self, error: Exception) -> None:
        """End the app after an unexpected error. The error is stored in `broken`, and the caller of the app
        prints it as one sentence."""
        self.broken = error
        self.exit(return_code=1)

    def do_sync(self) -> None:
        from tui.screens.sync import Sync

        if not isinstance(self.screen, Sync):
            self.push_screen(Sync())

    def do_machine(self) -> None:
        from tui.screens.machine.machine import MachineScreen

        if self.machine is not None and not isinstance(self.screen, MachineScreen):
            self.push_screen(MachineScreen(self.machine))

    def do_inbox(self) -> None:
        from tui.screens.lists.inbox import Inbox

        if not isinstance(self.screen, Inbox):
            self.push_screen(Inbox())

    def do_suspend(self) -> None:
        """Suspend the app, as ctrl+z does with other programs. The shell's command `fg` resumes it."""
        driver = self._driver
        if driver is None or not driver.can_suspend:
            cast("Any", self.screen).say("there is no shell to come back from here", "warn")
        else:
            os.killpg(0, signal.SIGTSTP)  # also what started the app, if that is no shell

    def do_quit(self) -> None:
        self.exit()

    def do_theme(self) -> None:
        if self.colours == COLOURLESS:
            cast("Any", self.screen).say(
                "this terminal shows no colours, so there are no other themes", "warn"
            )
            return
        system = self.console.color_system
        following = CHOSEN[CHOSEN.index(self.colours) + 1 :]
        self.wear(
            next(
                (name for name in following if choose_theme(name, system, no_color=False) == name), CHOSEN[0]
            )
        )

    def wear(self, colours: str) -> None:
        """Use the theme `colours` from now on."""
        from tui.screens.base import Base

        self.colours = colours
        self.ansi_color = is_terminals(colours)
        for screen in self.screen_stack:
            if isinstance(screen, Base):
                screen.wear()
        self.forget_display()
        self.refresh(layout=True)

    def on_mount(self) -> None:
        from tui.screens.home import Home

        # asyncio has as many threads as processors and four: a server that hangs would keep all of them, and
        # nothing could be put into the outbox.
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(THREADS, "app"))
        self.push_screen(Home())
        self.call_after_refresh(self._begin_after_paint)

    def _begin_after_paint(self) -> None:
        """Called once the first screen is painted. Say what the app was opened with, and begin to send and to
        follow the outbox."""
        self._painted = True
        if self.notice:
            cast("Any", self.screen).say(self.notice)
        self.outbox.begin()
        self.set_interval(TICK, self._tick)

    def _tick(self) -> None:
        cast("Any", self.screen).tick()

    def run_worker(self, work: Any, *arguments: Any, **options: Any) -> Worker[Any]:
        """Run `work`, as Textual does. Calls of a thread to a server end a little after the app does."""
        if not options.get("thread"):
            return super().run_worker(work, *arguments, **options)

        def work_in_bounds() -> Any:
            with within(self._ending):
                return work()

        return super().run_worker(work_in_bounds, *arguments, **options)

    def exit(self, *arguments: Any, **options: Any) -> None:
        """End the app. Calls to a server that do not end within ENDING seconds are given up."""
        ends = threading.Timer(ENDING, self._ending.cancel)
        ends.daemon = True
        ends.start()
        super().exit(*arguments, **options)

    def on_unmount(self) -> None:
        COLOURING.close()
        self.news.following.close()
        self.client.close()
        self.outbox.close()

    @property
    def _current(self) -> Any:
        return self.screen

    def later(self, work: Callable[[], None]) -> None:
        """Run `work` on the app's main thread. Returns before `work` has run: waiting could last forever,
        because the app may be ending."""
        if self._loop is not None and self.is_running:
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self.call_later, work)

    # --- what the screen shows

    def here(self) -> str:
        """The full name of the repository that the screen shows, "" if it shows none."""
        repo: Repo | None = self._current.subject()[0]
        return repo.full_name if repo is not None else ""

    def summary(self, path: str) -> str:
        """Returns the one-line summary of a command. Returns "" if there is no such command."""
        return self.commands.summaries.get(path, "") if self.commands is not None else ""

    def path_of_command(self, line: str) -> str:
        """Returns the command of a command line, such as `issue close`. Returns "" if there is none."""
        return self.commands.path_in(line.removeprefix("svc ").split()) if self.commands is not None else ""

    def known_for(self, path: str, fields: Sequence[Parameter]) -> dict[str, str]:
        """Returns values for a command's parameters, by parameter name, as far as they are known from what
        the screen shows: repository, number, run, version or seal. `path`: the command, such as `issue
        close`."""
        repo: Repo | None = self._current.subject()[0]
        full_name = repo.full_name if repo is not None else ""
        linked = repo is not None and repo.id == self.place.repo_id
        return known_values(path, fields, self._current.facts(), full_name, linked=linked)

    def find_refusal(self, action: Action) -> str:
        """Returns the reason why the account's role does not allow the action here. Returns "" if it allows
        the action."""
        from svc.flows.place.rights import refusal

        repo, mine = self._current.subject() if action.right else (None, False)
        return refusal(action.right, repo, mine) if repo is not None else ""

    def sign_in(self, server: str = "", way: str = "") -> None:
        """Let the user sign in on a card. `server`: the server as the user typed it, "" for the one of the
        app. `way`: the way that begins at once, a key of `WAYS`, "" to choose one."""
        from svc.http.origin import parse_origin
        from tui.screens.sign_in import SignIn

        if self.sessions is None:
            self._current.say("you are signed in by the key of this SSH connection", "warn")
            return
        try:
            origin = parse_origin(server) if server else self.client.origin
        except SvcError as error:
            self._current.say(sentence(error), "warn")
            return
        self.push_screen(SignIn(self.sessions, self._take_session, origin, self.client.account, way))

    def _take_session(self, session: Session) -> None:
        """Go on with a new session. If it is of another account or server than the app, end the app in order
        to open it again."""
        who = session.handle or session.user_id
        words = f"Signed in to {session.origin.partition('://')[2]} as {who}"
        if (session.origin, who) == (self.client.origin, self.client.account):
            self.news.state = "online"
            self._current.say(words, "good")
            self._current.news()
        else:
            self.reopens, self.reopens_at, self.reopens_with = True, session.origin, words
            self.exit()

    def do_sign_in(self) -> None:
        self.sign_in()

    def do_account(self) -> None:
        from tui.screens.settings.account import Account

        if not isinstance(self.screen, Account):
            self.push_screen(Account())

    # --- palette, command line, form

    def do_help(self) -> None:
        from msgspec.structs import replace

        from tui.screens.base import TWO_PANES
        from tui.screens.command.palette import Help
        from tui.screens.split import OF_PREVIEW

        offered = self.actions()
        if self.size.width < TWO_PANES:  # there is no room for a preview
            offered = tuple(action for action in offered if action.id not in OF_PREVIEW)
        enters = self._current.label_of  # what enter does depends on the row
        offered = tuple(
            replace(action, label=enters(action) or action.label) if action.id == "open" else action
            for action in offered
        )
        self.push_screen(Help(offered, self._current.where, self.find_refusal))

    def do_palette(self) -> None:
        from tui.screens.command.palette import Palette
        from tui.screens.tables import commands_with_rights

        offered = self.actions()
        named = {action.command.removeprefix("svc ") for action in OFFERS}
        summaries = self.commands.summaries if self.commands is not None else {}
        rights = commands_with_rights()
        others = tuple(
            Action(f"command {path}", (), summary, f"svc {path}", right=rights.get(path, ""))
            for path, summary in summaries.items()
            if path not in named
        )
        self.push_screen(Palette((*offered, *others), "type to filter", self.find_refusal))

    def do_command(self) -> None:
        """Let the user type a command line of svc, and run it."""
        self._type_line()

    def _type_line(self, line: str = "", fault: str = "") -> None:
        """Let the user type a command line. `line`: what it begins with, such as a line to be corrected.
        `fault`: what is wrong with that line."""
        from tui.screens.command.line import CommandLine

        if self.commands is not None:
            self.push_screen(CommandLine(self.commands, self.known_for, self._typed_lines, line, fault))

    def open_form(self, path: str, **values: str) -> None:
        """Open a form for the parameters of a command. The form is filled with `values` and with values from
        the screen. When the user sends the form, the command runs. `path`: the command, such as `issue
        close`."""
        from tui.screens.command.form import Form

        if path == LOGIN and not values and self.sessions is not None:
            self.sign_in()
        elif self.commands is not None and path in self.commands.summaries:
            fields = self.commands.fields(path)
            self.push_screen(Form(path, fields, {**self.known_for(path, fields), **values}))

    def run_line(self, line: str) -> None:
        """Run a command line of svc. Missing values come from what the screen shows. If some are still
        missing, a form asks for them. A line that the command does not understand is given back, to be
        corrected."""
        try:
            words = shlex.split(line.strip().removeprefix("svc "))
        except ValueError as error:
            self._current.say(f"the command line cannot be read: {error}", "warn")
            return
        if self.commands is not None and (elsewhere := self.commands.elsewhere_of(words)):
            self._current.say(elsewhere, "warn")
            return
        path = self.commands.path_in(words) if self.commands is not None else ""
        if path == LOGIN and (server := _server_of(words)) is not None and self.sessions is not None:
            self.sign_in(server)
            return
        if self.commands is None or not path:
            self._run_typed(line, words)
        elif path != DIFF or not self._opens_comparison(line, words, path):
            self._run_command(line, words, path)

    def _opens_comparison(self, line: str, words: list[str], path: str) -> bool:
        """Open the screen that compares two branches, tags or seals, if the line names two. Returns whether
        it may; a line that turns out to mean something else is then run."""
        from tui.screens.code.comparing import opens_comparison

        after = words[len(path.split()) :]
        return opens_comparison(
            self, self._current, after, self._type_line, lambda: self._run_command(line, words, path)
        )

    def _run_command(self, line: str, words: list[str], path: str) -> None:
        """Run a command line. `words`: its words. `path`: the command that they begin with."""
        from tui.screens.command.form import Form
        from tui.screens.command.needs import with_needs

        if self.commands is None:
            return
        fields = self.commands.fields(path)
        values = parse_values(fields, words[len(path.split()) :])
        if values is None or "--help" in words or "-h" in words:
            self._run_typed(line, words)
            return
        from_screen = self.known_for(path, fields)
        from_screen.pop(SEAL, None)  # a form shows which; a typed line without one means the newest
        values = {**from_screen, **values}
        if self._opens_form(path, values):
            return
        needed = with_needs(path, fields, values)
        if missing(needed, values):
            self.push_screen(Form(path, needed, values))
        else:
            self._run_typed(line, words_of(path, fields, values))

    def _opens_form(self, path: str, values: dict[str, str]) -> bool:
        """Open the form of a new issue, proposal or release, if the command makes one and its title is
        missing. Returns whether a form was opened."""
        from tui.screens.command.new import opens_form

        return opens_form(self, path, values)

    def run_beside(self, words: list[str], show: Callable[[str, tuple[str, str]], None]) -> None:
        """Run a command of svc without opening a screen for its output. `show`: called when the command has
        ended, with its output as plain text and its result as a part (text, role)."""
        from rich.text import Text

        from tui.screens.command.output import RUNNING, Command

        def show_end(text: str, state: tuple[str, str]) -> None:
            if state != RUNNING:
                show(Text.from_ansi(text).plain, state)

        if words and self.commands is not None:
            Command(words, self.place.folder, self.commands, show_end).begin(self, WIDEST)

    def command_ended(self) -> None:
        """Read again what a command of svc may have changed: the branch of the linked folder, and the account
        that is signed in. If that is another account now, end the app in order to open it again."""
        self.place = self.place.read_again()
        if self.commands is not None and self._account_now() != self.client.account:
            now = self._account_now()
            self.reopens, self.reopens_with = True, f"Signed in as {now}" if now else "Signed out"
            self.exit()

    def run_words(self, words: list[str]) -> None:
        """Run a command of svc and show its output on a screen. `words`: the command line."""
        from tui.screens.command.output import Command, Output

        if words and self.commands is not None:
            self.push_screen(Output(Command(words, self.place.folder, self.commands)))

    def _run_typed(self, line: str, words: list[str]) -> None:
        """Run a command line that the user typed, and say its answer in place if it is short."""
        from tui.screens.command.output import Command, run_here

        if words and self.commands is not None:
            command = Command(words, self.place.folder, self.commands)
            doing = f"svc {' '.join(line.split()).removeprefix('svc ')}"
            run_here(self, self._current, command, doing, mend=lambda fault: self._type_line(line, fault))

    def run_here(
        self, words: list[str], doing: str, ended: Callable[[bool], None] = lambda succeeded: None
    ) -> None:
        """Run a command of svc without leaving the screen. The screen says `doing` until the command has
        ended, and then its result. If the output is more than a line, it is shown on a screen of its own.
        `ended`: called with whether the command succeeded."""
        from tui.screens.command.output import Command, run_here

        if words and self.commands is not None:
            command = Command(words, self.place.folder, self.commands)
            run_here(self, self._current, command, doing, ended)


def _say_unanswered(screen: Any, ended: threading.Event, unanswered: Callable[[], None] | None) -> None:
    """Say on a screen that the server has not answered yet, unless the request has `ended`. `unanswered`:
    called then."""
    if ended.is_set() or not screen.remains:
        return
    screen.say_unread(UNANSWERED)
    if unanswered is not None:
        unanswered()


def _server_of(words: Sequence[str]) -> str | None:
    """Returns the server that the words of `svc login` name, "" if they name none. Returns None if they say
    more than that."""
    line = " ".join(words[1:]).replace("=", " ").split()
    if not line:
        return ""
    return line[1] if len(line) == 2 and line[0] == "--server" else None
