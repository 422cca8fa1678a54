"""The connection to the server in detail: its state, and the queued actions."""

from __future__ import annotations

from collections.abc import Sequence

from textual.app import ComposeResult

from localstore.outbox import Entry
from svc.flows.outbox.actions import described
from tui.actions import Action
from tui.screens.base import Base
from tui.text import Part, ago, safe
from tui.widgets.frame import LIGHTS
from tui.widgets.lines import Item, Lines


class Sync(Base):
    ACTIONS = (
        Action("retry", ("u",), "send now", "svc queue retry", footer=True),
        Action("drop", ("x",), "drop", "svc queue drop {id}", "item", footer=True),
    )

    def content(self) -> ComposeResult:
        yield Lines(id="sync")

    def title_parts(self) -> Sequence[Part]:
        return ((" Sync", "title"), (f"  {safe(self.svc.client.origin)}", "dim"))

    def on_mount(self) -> None:
        super().on_mount()
        self.paint()

    def do_refresh(self) -> None:
        self.svc.send_queue()

    def news(self) -> None:
        """Does nothing: events change nothing here."""

    def queue_changed(self) -> None:
        self.paint()

    def paint(self) -> None:
        now = self.svc.clock()
        entries = self.svc.entries
        waiting = [entry for entry in entries if entry.state != "refused"]
        facts: list[tuple[Part, ...]] = [
            (("state    ", "dim"), LIGHTS[self.svc.line_state]),
            (("since    ", "dim"), (ago(self.svc.line_since, now), "text")),
            (("waiting  ", "dim"), (str(len(waiting)), "text")),
        ]
        if waiting:
            facts.append((("oldest   ", "dim"), (ago(waiting[0].created_at, now), "text")))
        rows = [Item(None, parts) for parts in facts] + [Item(None, (("", "text"),))]
        for entry in entries:
            rows.append(self._row(entry))
            if entry.reason:
                rows.append(Item(None, ((f"          {safe(entry.reason)}", "bad"),)))
        if not entries:
            rows.append(Item(None, (("nothing waits", "dim"),)))
        self.query_one("#sync", Lines).show(rows)

    def _row(self, entry: Entry) -> Item:
        sign: Part = ("X refused ", "bad") if entry.state == "refused" else ("⋯ queued  ", "warn")
        left: tuple[Part, ...] = (
            sign,
            (safe(described(entry)), "text"),
            (f"  {safe(entry.about)}", "dim"),
        )
        return Item(entry.id, left, ((f"{ago(entry.created_at, self.svc.clock())} ", "dim"),))

    @property
    def _entry(self) -> Entry | None:
        key = self.query_one("#sync", Lines).key
        return next((entry for entry in self.svc.entries if entry.id == key), None)

    def do_retry(self) -> None:
        """Send the queue, and the refused action under the cursor again."""
        entry = self._entry
        self.svc.send_queue(again=entry if entry is not None and entry.state == "refused" else None)

    def do_drop(self) -> None:
        entry = self._entry
        if entry is None:
            self.say("put the cursor on an action", "warn")
            return

        def done(typed: str) -> None:
            if typed.strip().lower() in ("y", "yes"):
                self.svc.drop_entry(entry)

        self.ask(f"drop «{described(entry)}» without sending it? y", done)
