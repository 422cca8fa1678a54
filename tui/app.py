"""The terminal app: `svc tui`, and bare `svc` on a terminal.

    SvcApp(client, Place(repo, folder), keys).run()

Screens paint what is known and ask the client for news; keys run actions of the table (`tui.actions`). No
call of a server runs on the app's own thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from textual.worker import Worker, get_current_worker

from localstore.core.model.repo import Repo
from tui import reads
from tui.actions import EVERYWHERE, Action, remap
from tui.client import Client, sentence, state_after
from tui.display import LeanApp
from tui.reads import Read
from tui.text import safe
from tui.theme import BACKGROUNDS, THEMES
from tui.widgets.lines import Item

T = TypeVar("T")


class Place(NamedTuple):
    """Where the app was started: the linked folder and its repository, if there is one."""

    folder: Path | None = None
    repo_id: str = ""
    full_name: str = ""
    branch: str = ""


NOWHERE = Place()


class SvcApp(LeanApp, inherit_bindings=False):
    """The app. `colours`: name of the theme."""

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
    ) -> None:
        super().__init__(ansi_color=colours == "terminal")
        self.client, self.place, self.keys, self.clock = client, place, dict(keys or {}), clock
        self.colours = colours
        self.line_state = "unknown"
        self.broken: Exception | None = None
        self.animation_level = "none"

    def actions(self) -> tuple[Action, ...]:
        """What keys do now: the screen's actions, then those of everywhere that it does not replace."""
        own = tuple(getattr(self.screen, "actions", tuple)())
        named = {action.id for action in own}
        return remap((*own, *(action for action in EVERYWHERE if action.id not in named)), self.keys)

    def press(self, key: str) -> bool:
        """Run the action of a key; False if it has none here."""
        taken = next((action for action in self.actions() if key in action.keys), None)
        if taken is None:
            return False
        self.carry_out(taken)
        return True

    def carry_out(self, action: Action) -> None:
        name = f"do_{action.id}"
        own = getattr(self.screen, "handler", None)
        run = own(name) if own else getattr(self.screen, name, None)
        run = run or getattr(self, name, None)
        if run is not None:
            run()

    def load(
        self,
        read: Read[T],
        paint: Callable[[T, float], None],
        failed: Callable[[BaseException], None] | None = None,
    ) -> None:
        """Paint what is known, then what the server answers; `paint(value, at)` gets the time it was read. A
        failure keeps what is painted and says so; `failed` hears of it too."""
        screen = self.screen
        known = self.client.known(read)
        if known is not None:
            paint(*known)
            if read.final:
                return

        def work() -> None:
            try:
                value, at = self.client.fetch(read)
            except Exception as error:
                self._tell(worker(), screen, error, failed)
                return
            if not worker().is_cancelled:
                self.call_from_thread(self._arrived, screen, lambda: paint(value, at))

        def worker() -> Worker[None]:
            return get_current_worker()

        self.run_worker(work, thread=True, group=read.key, exclusive=True, exit_on_error=False)

    def _tell(
        self,
        worker: Worker[None],
        screen: Any,
        error: BaseException,
        failed: Callable[[BaseException], None] | None,
    ) -> None:
        if worker.is_cancelled:
            return

        def tell() -> None:
            self.line_state = state_after(error)
            if screen.is_attached:
                screen.say(sentence(error), "warn" if self.line_state != "online" else "bad")
                if failed is not None:
                    failed(error)

        self.call_from_thread(tell)

    def _arrived(self, screen: Any, paint: Callable[[], None]) -> None:
        self.line_state = "online"
        if screen.is_attached:
            paint()
            screen.show_frame()

    def do_go_repo(self) -> None:
        """Choose a repository."""
        known = self.client.known(reads.repos())
        if known is None:
            return
        from tui.screens.choose import Choose
        from tui.screens.repo import RepoScreen

        items = [Item(repo, ((safe(repo.full_name), "text"),)) for repo in known[0]]

        def go(repo: Repo) -> None:
            self.push_screen(RepoScreen(repo))

        self.push_screen(Choose("repositories", items, go))

    def _handle_exception(self, error: Exception) -> None:
        """End with the error itself: who started the app says it, in one sentence."""
        self.broken = error
        self.exit(return_code=1)

    def do_help(self) -> None:
        from tui.screens.help import Help

        self.push_screen(Help(self.actions(), type(self.screen).__name__))

    def do_palette(self) -> None:
        from tui.screens.help import Help

        self.push_screen(Help(self.actions(), "type to filter", typing=True))

    def do_command(self) -> None:
        """Run any command line of svc."""
        ask: Any = self.screen
        ask.ask("svc", self._run_command)

    def _run_command(self, line: str) -> None:
        from tui.screens.output import Output

        if line.strip():
            self.push_screen(Output(line.strip().removeprefix("svc "), self.place.folder))

    def do_quit(self) -> None:
        self.exit()

    def do_theme(self) -> None:
        names = list(THEMES)
        self.wear(names[(names.index(self.colours) + 1) % len(names)])

    def wear(self, colours: str) -> None:
        """Change the theme."""
        self.colours = colours
        self.ansi_color = colours == "terminal"
        for screen in self.screen_stack:
            screen.styles.background = BACKGROUNDS[colours]
        self.forget_display()
        self.refresh(layout=True)

    def on_mount(self) -> None:
        from tui.screens.home import Home

        self.push_screen(Home())

    def on_unmount(self) -> None:
        self.client.close()
