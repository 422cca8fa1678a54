"""The protocol of the app that screens use, so that they need not import the app. `tui.app.SvcApp` implements
it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from rich.console import Console
    from textual.events import Key
    from textual.screen import Screen
    from textual.widget import Widget

    from localstore.core.endpoint import Endpoint
    from localstore.core.model.repo import Repo
    from localstore.outbox import QueuedAction
    from svc.http.session import Sessions
    from tui.actions import Action
    from tui.client import Client
    from tui.drafts import Drafts
    from tui.images.protocol import Way
    from tui.machine import Machine, Place
    from tui.reads import Read
    from tui.sending import Sending
    from tui.tints import Tints

T = TypeVar("T")
DONE = "done"  # the state of a command that succeeded, as `run_beside` passes it on


class AskedNews(Protocol):
    """The state of the connection to the server. `state`: its name, such as `live` (the names are in LIGHTS).
    `since`: when that state began."""

    since: str
    reason: str  # why the last request that failed did so, "" if none did

    @property
    def state(self) -> str: ...

    def follow(self, repo_ids: Sequence[str]) -> None: ...

    def ask_now(self, heard: Callable[[BaseException | None], None]) -> None: ...


class AskedOutbox(Protocol):
    """The part of the app's outbox that screens use (`tui.outbox.AppOutbox` says what each does)."""

    sending: Sending | None  # None: nothing can be changed
    entries: list[QueuedAction]  # what it holds, as of the last change
    sent: set[str]  # ids of what this app has sent

    @property
    def signed_in(self) -> bool: ...

    def act(
        self, endpoint: Endpoint[Any], body: Any = None, query: Any = None, *, about: str, **path: str
    ) -> None: ...

    def queue(
        self,
        put: Callable[[Sending], object],
        queued: Callable[[], None] | None = None,
        done: str = "",
    ) -> None: ...

    def send(self, again: QueuedAction | None = None, by_user: bool = True) -> None: ...

    def look(self) -> None: ...

    def drop(self, entry: QueuedAction) -> None: ...

    def describe(self, prefix: str) -> list[str]: ...

    def texts(self, prefix: str) -> list[tuple[str, str]]: ...


class AskedApp(Protocol):
    """The part of the app that screens use."""

    client: Client
    place: Place  # the linked folder and its repository
    machine: Machine | None
    drafts: Drafts | None
    declined: set[tuple[str, str]]  # rows of the inbox that were declined here, by id and time
    clock: Callable[[], float]
    colours: str  # the name of the theme
    images: Way
    used_actions: list[str]  # ids of the actions that were chosen from a list, the last one first
    pressed: str  # the key whose action runs
    keys: dict[str, tuple[str, ...]]  # the keys that the user has chosen, by the id of the action
    key_at: float  # when the last key came, by the monotonic clock
    shares: dict[str, int]  # hundredths of the width that a list takes, by its name
    sessions: Sessions | None  # None: nobody signs in here

    @property
    def news(self) -> AskedNews: ...

    @property
    def outbox(self) -> AskedOutbox: ...

    @property
    def selected(self) -> str:
        """The role (name of a colour in the theme) that paints the line under a cursor."""

    @property
    def tints(self) -> Tints | None:
        """The backgrounds of changed lines, None if the theme has none."""

    @property
    def opens_links(self) -> bool:
        """Whether the terminal itself opens links when they are clicked."""

    @property
    def repos(self) -> Read[list[Repo]]:
        """Returns the request for the user's repositories."""

    # --- reading and changing

    def load(
        self,
        read: Read[T],
        paint: Callable[[T, float], None],
        failed: Callable[[BaseException], None] | None = None,
        unanswered: Callable[[], None] | None = None,
    ) -> None: ...

    def note_failure(self, error: BaseException) -> None: ...

    # --- texts

    def compose_text(self, name: str, done: Callable[[str], None]) -> None: ...

    def finish(self, name: str, done: Callable[[str], None], text: str, blank: bool = False) -> None: ...

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
    ) -> None: ...

    def show_tab_of(self, repo: Repo, number: int) -> None: ...

    def follow_link(self, screen: Any, target: str) -> None: ...

    # --- actions and commands

    def actions(self) -> tuple[Action, ...]: ...

    def press(self, key: str) -> bool: ...

    def came_below(self, key: Key) -> bool: ...

    def end_passing(self) -> None: ...

    def keep_order(self, widget: Widget) -> None: ...

    def carry_out(self, action: Action) -> None: ...

    def find_refusal(self, action: Action) -> str: ...

    def here(self) -> str: ...

    def summary(self, path: str) -> str: ...

    def path_of_command(self, line: str) -> str: ...

    def open_form(self, path: str, **values: str) -> None: ...

    def run_line(self, line: str) -> None: ...

    def sign_in(self, server: str = "", way: str = "") -> None: ...

    def run_words(self, words: list[str]) -> None: ...

    def run_here(
        self, words: list[str], doing: str, ended: Callable[[bool], None] = lambda succeeded: None
    ) -> None: ...

    def run_in_terminal(self, words: list[str]) -> None: ...

    def command_ended(self) -> None: ...

    def run_beside(self, words: list[str], show: Callable[[str, tuple[str, str]], None]) -> None: ...

    # --- Textual's

    @property
    def screen(self) -> Screen[Any]: ...

    @property
    def is_running(self) -> bool: ...

    @property
    def console(self) -> Console: ...

    def push_screen(self, *arguments: Any, **options: Any) -> Any: ...

    def run_worker(self, work: Any, *arguments: Any, **options: Any) -> Any: ...

    def later(self, work: Callable[[], None]) -> None: ...

    def call_from_thread(self, callback: Callable[..., T], *arguments: Any, **options: Any) -> T: ...

    def exit(self) -> None: ...
