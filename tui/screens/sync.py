"""The connection to the server in detail: its state, the watched folders, and the queued actions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from textual.app import ComposeResult

from localstore.agent.talk import Folder, Person
from localstore.outbox import QueuedAction
from svc.agent.invoke.sync import Status
from svc.flows.outbox.actions import described
from tui.actions import Action
from tui.screens.base import Base
from tui.text import Part, ago, safe
from tui.widgets.frame import LIGHTS
from tui.widgets.lines import Item, Lines, heading

EVERY = 2.0  # seconds between two questions to the agent, while this screen is shown


class Sync(Base):
    ACTIONS = (
        Action("retry", ("u",), "send now", "svc queue retry", footer=True),
        Action("drop", ("x",), "drop", "svc queue drop {id}", "item", footer=True),
        Action("pause", ("z",), "pause, go on", "svc invoke sync_pause", "item", footer=True),
    )

    def __init__(self) -> None:
        super().__init__()
        self._folders: list[Folder] = []
        self._painted = False

    def content(self) -> ComposeResult:
        yield Lines(id="sync")

    def title_parts(self) -> Sequence[Part]:
        return ((" Sync", "title"), (f"  {safe(self.svc.client.origin)}", "dim"))

    def on_mount(self) -> None:
        super().on_mount()
        self.paint()
        self._ask_agent()
        self.set_interval(EVERY, self._ask_agent)

    def do_refresh(self) -> None:
        """Send the queue, and query the agent and the server again; this shows the state of the
        connection."""
        self.svc.send_queue()
        self._ask_agent()
        self.svc.load(self.svc.repos, lambda value, at: None)

    def show_frame(self) -> None:
        super().show_frame()
        if self._painted:
            self.paint()

    def _ask_agent(self) -> None:
        """Request the folders from the agent, and read the outbox again, because other processes send from it
        too."""
        self.svc.look_at_outbox()
        machine = self.svc.machine
        if machine is not None:
            self._at_agent(machine.status)

    def _at_agent(self, ask: Callable[[], Status | None]) -> None:
        """Ask the agent on a thread, and paint the answer."""

        def work() -> None:
            status = ask()
            self.svc.call_from_thread(self._heard, status.folders if status is not None else [])

        self.svc.run_worker(work, thread=True, group="agent", exclusive=True, exit_on_error=False)

    def _heard(self, folders: list[Folder]) -> None:
        if self.is_attached and folders != self._folders:
            self._folders = folders
            self.paint()

    def do_pause(self) -> None:
        """Pause the watched folder under the cursor, or resume it."""
        machine, key = self.svc.machine, self.query_one("#sync", Lines).key
        folder = next((watched for watched in self._folders if ("folder", watched.folder) == key), None)
        if machine is None or folder is None:
            self.say("put the cursor on a watched folder", "warn")
            return
        paused = not folder.paused

        def ask() -> Status | None:
            machine.invoke("sync_pause", list[Folder], folder=folder.folder, paused=paused)
            return machine.status()

        self._at_agent(ask)

    def news(self) -> None:
        """Does nothing: events change nothing on this screen."""

    def queue_changed(self) -> None:
        self.paint()

    def paint(self) -> None:
        self._painted = True
        now = self.svc.clock()
        entries = self.svc.entries
        waiting = [entry for entry in entries if entry.state != "refused"]
        since = f"since {ago(self.svc.news.since, now)}"
        rows = [
            heading("Connection"),
            Item(None, (("  ", "text"), *LIGHTS[self.svc.news.state]), ((f"{since} ", "dim"),)),
            Item(None, (("", "text"),)),
        ]
        if self._folders:
            rows.append(heading("Folders", len(self._folders)))
        for folder in self._folders:
            rows.append(self._folder(folder))
            rows += [Item(None, person) for person in map(_person, folder.people)]
        if self._folders:
            rows.append(Item(None, (("", "text"),)))
        oldest = f"the oldest {ago(waiting[0].created_at, now)} " if waiting else ""
        rows.append(heading("Queue", len(waiting) or None, oldest))
        for entry in entries:
            rows.append(self._row(entry))
            if entry.reason:
                rows.append(Item(None, ((f"            {safe(entry.reason)}", "bad"),)))
        if not entries:
            rows.append(Item(None, (("  nothing waits ✓", "dim"),)))
        self.query_one("#sync", Lines).show(rows)

    def _folder(self, folder: Folder) -> Item:
        since = datetime.fromtimestamp(folder.since, UTC).isoformat()
        waiting = f" {folder.queued} queued" if folder.queued else ""
        why = f"  {safe(folder.why)}" if folder.why and folder.light != "live" else ""
        parts: tuple[Part, ...] = (
            ("  ", "text"),
            *LIGHTS[folder.light],
            (f"{waiting}  {safe(folder.folder)}", "text"),
            (f"  {safe(folder.repo)} {safe(folder.branch)}{why}", "dim"),
        )
        return Item(("folder", folder.folder), parts, ((f"{ago(since, self.svc.clock())} ", "dim"),))

    def _row(self, entry: QueuedAction) -> Item:
        sign: Part = ("✗ refused ", "bad") if entry.state == "refused" else ("⋯ queued  ", "warn")
        parts: tuple[Part, ...] = (
            ("  ", "text"),
            sign,
            (safe(described(entry)), "text"),
            (f"  {safe(entry.about)}", "dim"),
        )
        return Item(entry.id, parts, ((f"{ago(entry.created_at, self.svc.clock())} ", "dim"),))

    @property
    def _entry(self) -> QueuedAction | None:
        key = self.query_one("#sync", Lines).key
        return next((entry for entry in self.svc.entries if entry.id == key), None)

    def do_retry(self) -> None:
        """Send the queue again, including the refused action under the cursor."""
        entry = self._entry
        self.svc.send_queue(again=entry if entry is not None and entry.state == "refused" else None)

    def do_drop(self) -> None:
        entry = self._entry
        if entry is None:
            self.say("put the cursor on an action", "warn")
            return

        question = f"drop «{described(entry)}» without sending it?"
        self.confirm(question, lambda: self.svc.drop_entry(entry))


def _person(person: Person) -> tuple[Part, ...]:
    where = (
        f" in {safe(person.path)}" + (f", line {person.line}" if person.line else "") if person.path else ""
    )
    on = f" on {safe(person.device)}" if person.device else ""
    return (
        ("    ", "text"),
        (f"@{safe(person.who)}", "agent" if person.kind == "agent" else "name"),
        (on + where, "dim"),
    )
