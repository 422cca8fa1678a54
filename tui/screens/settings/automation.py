"""The panel Automation of the settings: webhooks and their deliveries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from localstore.core.model import webhook
from localstore.core.model.webhook import KINDS, EventKind, Webhook, WebhookEdit
from tui.screens.settings import reads
from tui.screens.settings.panel import Panel
from tui.text import Part
from tui.widgets.lines import Item

WHY = {
    "owner": "- switched off",
    "failing": "✗ off: it failed for days",
    "gone": "✗ off: its address is gone",
    "transferred": "✗ off since the repository has another owner",
}


class Automation(Panel):
    NAME = "Automation"
    RIGHTS: ClassVar = {"hook": "webhook.edit", "add": "webhook.create"}

    VERBS: ClassVar = {"hook": "deliveries, events, off", "add": "add one"}

    _hooks: tuple[Webhook, ...] = ()

    def load(self) -> None:
        if self.may_read("webhook.list"):
            self.svc.load(reads.webhooks(self.repo.id), self._take_webhooks)

    def _take_webhooks(self, webhooks: list[Webhook], at: float) -> None:
        self._hooks = tuple(webhooks)
        self.paint()

    def rows(self) -> list[Item]:
        if not self.may_read("webhook.list"):
            return [self.note("webhooks are shown to the owner")]
        rows = [
            self.row("hook", hook.id, hook.url, f"{_state(hook)}  {', '.join(hook.events)}")
            for hook in self._hooks
        ]
        return [
            *rows,
            self.row("add", "", "add a webhook", "is told what happens here", "dim"),
        ]

    def chosen(self, kind: str, name: str) -> None:
        if kind == "add":
            self.ask("address of the webhook, https://…", self._add_webhook)
            return
        hook_chosen = next((hook for hook in self._hooks if hook.id == name), None)
        if hook_chosen is not None:
            self._choices(hook_chosen)

    def _add_webhook(self, text: str) -> None:
        """Create a webhook for the typed URL. The request is sent at once and not through the outbox, because
        only its answer contains the secret of the webhook."""
        address = text.strip()
        if not address:
            return

        def create(kinds: list[EventKind]) -> None:
            self.run("repo", "webhook", "create", address, "--events", ",".join(kinds))

        self._choose_events("events that it is told", ["push"], create, unchanged=True)

    def _choices(self, hook: Webhook) -> None:
        switch = "switch off" if hook.active else "switch on"
        acts: dict[str, Callable[[], None]] = {
            "what it was sent": lambda: self.run("repo", "webhook", "deliveries", hook.id),
            "send it a ping": lambda: self.act(webhook.PING, hook=hook.id),
            "events": lambda: self._events(hook),
            switch: lambda: self.act(webhook.EDIT, WebhookEdit(active=not hook.active), hook=hook.id),
            "delete": lambda: self._delete(hook),
        }
        self.choose(hook.url, list(acts), lambda name: acts[name]())

    def _delete(self, hook: Webhook) -> None:
        self.type_name(
            hook.url, "deleted with its deliveries", lambda: self.act(webhook.DELETE, hook=hook.id)
        )

    def _events(self, hook: Webhook) -> None:
        def set_events(kinds: list[EventKind]) -> None:
            self.act(webhook.EDIT, WebhookEdit(events=kinds), hook=hook.id)

        self._choose_events(f"events that {hook.url} is told", hook.events, set_events)

    def _choose_events(
        self,
        what: str,
        now: Sequence[EventKind],
        chosen: Callable[[list[EventKind]], None],
        *,
        unchanged: bool = False,
    ) -> None:
        """Let the user mark events, and call `chosen` with the marked ones in the order of KINDS. `now`: the
        events that are marked at first. `unchanged`: they can be chosen as they are."""
        from tui.screens.choose import ChooseSeveral

        def apply(added: list[str], removed: list[str]) -> None:
            kinds = [kind for kind in KINDS if kind in added or (kind in now and kind not in removed)]
            if kinds:
                chosen(kinds)
            else:
                self.of.of.say("a webhook is told at least one event; nothing was changed", "warn")

        offered: dict[str, Sequence[Part]] = {kind: ((kind, "text"),) for kind in KINDS}
        self.of.app.push_screen(ChooseSeveral(what, offered, now, apply, unchanged=unchanged))


def _state(hook: Webhook) -> str:
    if not hook.active:
        return WHY[hook.disabled or "owner"]
    return "* failing" if hook.failing_since else "✓ active"
