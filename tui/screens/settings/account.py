"""The account: its sessions, tokens for scripts, devices, and a code for adding another device."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from textual.app import ComposeResult

from localstore.core.model.auth import DeviceKey, Session
from tui.actions import Action
from tui.screens.base import Base
from tui.screens.settings import reads
from tui.text import Part, ago, safe
from tui.widgets.lines import Item, Lines, sequence

SHOWN = 12  # characters of an id


class Account(Base):
    ACTIONS = (
        Action("revoke", ("x",), "end, revoke", "svc auth token revoke {id}", "signed_in", footer=True),
        Action("pair", ("a",), "code for another device", "svc auth device add", "signed_in", footer=True),
        Action("rename", ("e",), "rename a device", "svc auth device rename {id}", "signed_in", footer=True),
    )

    def __init__(self) -> None:
        super().__init__()
        self._sessions: list[Session] | None = None
        self._devices: list[DeviceKey] | None = None

    def content(self) -> ComposeResult:
        yield Lines(empty="asking the server", id="account")

    def title_parts(self) -> Sequence[Part]:
        client = self.svc.client
        who = f"@{client.account}" if client.account else "not signed in"
        return ((" Account", "title"), (f"  {safe(who)} on {safe(client.origin)}", "dim"))

    def on_mount(self) -> None:
        super().on_mount()
        self.do_refresh()

    def on_screen_resume(self) -> None:
        super().on_screen_resume()
        if self._sessions is not None:
            self.do_refresh()

    def do_refresh(self) -> None:
        if not self.svc.client.account:
            self.query_one("#account", Lines).empty = "sign in first: svc login"
            return
        self.svc.load(reads.sessions(), self._paint_sessions)
        self.svc.load(reads.device_keys(), self._paint_devices)

    def _paint_sessions(self, sessions: list[Session], at: float) -> None:
        self._sessions = sessions
        self.paint()

    def _paint_devices(self, devices: list[DeviceKey], at: float) -> None:
        self._devices = devices
        self.paint()

    def paint(self) -> None:
        sessions = self._sessions or []
        signed_in = [session for session in sessions if session.kind != "script"]
        tokens = [session for session in sessions if session.kind == "script"]
        rows = [
            _heading(f"Sessions {len(signed_in)}"),
            *map(self._session, signed_in),
            _heading(f"Tokens for scripts {len(tokens)}"),
            *map(self._session, tokens),
            _note(f"made in a browser, at {self.svc.client.origin}/settings?tab=tokens"),
            _heading(f"Devices {len(self._devices or [])}"),
            *map(self._device, self._devices or []),
            Item(("pair", ""), (("  let another device in", "text"), ("  a code that works once: a", "dim"))),
        ]
        self.query_one("#account", Lines).show(sequence(rows))

    def _session(self, session: Session) -> Item:
        now = self.svc.clock()
        current: Part = ("● this one  ", "good") if session.current else ("", "text")
        parts: tuple[Part, ...] = (
            (f"  {session.kind:<8}", "dim"),
            current,
            (safe(session.label) or "without a name", "text"),
            (f"  {session.id[:SHOWN]}", "dim"),
        )
        used = (
            f"used {ago(session.last_used_at, now)}"
            if session.last_used_at
            else f"made {ago(session.created_at, now)}"
        )
        return Item(("session", session.id), parts, ((f"{used} ", "dim"),), f"{session.kind} {session.label}")

    def _device(self, device: DeviceKey) -> Item:
        now = self.svc.clock()
        state: Part = ("✗ revoked  ", "bad") if device.revoked_at else ("✓ active   ", "good")
        parts: tuple[Part, ...] = (
            ("  ", "text"),
            state,
            (safe(device.name) or "without a name", "text"),
            (f"  {device.id[:SHOWN]}", "dim"),
        )
        used = ago(device.last_used_at or device.created_at, now)
        return Item(("device", device.id), parts, ((f"{used} ", "dim"),), device.name)

    # --- changes: at once, because a session that ends later ends too late

    def on_lines_chosen(self, event: Lines.Chosen) -> None:
        if event.key == ("pair", ""):
            self.svc.carry_out(self.ACTIONS[1])

    def do_pair(self) -> None:
        self.svc.run_line("auth device add")

    def do_rename(self) -> None:
        device = self._chosen_device()
        if device is None:
            self.say("put the cursor on a device", "warn")
            return

        def done(typed: str) -> None:
            if typed.strip():
                self.svc.run_line(shlex.join(["auth", "device", "rename", f"={device.id}", typed.strip()]))

        self.ask("name of the device", done, value=device.name)

    def do_revoke(self) -> None:
        device, session = self._chosen_device(), self._chosen_session()
        if device is not None and device.revoked_at is None:
            name = device.name or device.id[:SHOWN]
            words = f"type {name}: its key signs nothing from then on, its sessions end"
            self.ask(words, lambda typed: self._revoked(typed, name, device))
        elif session is not None:
            consequence = "; this machine is signed out" if session.current else ""
            end = shlex.join(["auth", "token", "revoke", session.id, "--yes"])
            question = f"end {session.label or session.id[:SHOWN]}{consequence}?"
            self.confirm(question, lambda: self.svc.run_line(end))
        else:
            self.say("put the cursor on a session or an active device", "warn")

    def _revoked(self, typed: str, name: str, device: DeviceKey) -> None:
        if typed.strip() == name:
            self.svc.run_line(shlex.join(["auth", "device", "revoke", f"={device.id}", "--yes"]))
        else:
            self.say("that is not its name; nothing was revoked", "warn")

    def _chosen_device(self) -> DeviceKey | None:
        key = self.query_one("#account", Lines).key
        return next((device for device in self._devices or [] if ("device", device.id) == key), None)

    def _chosen_session(self) -> Session | None:
        key = self.query_one("#account", Lines).key
        return next((session for session in self._sessions or [] if ("session", session.id) == key), None)


def _heading(text: str) -> Item:
    return Item(None, ((text, "title"),))


def _note(text: str) -> Item:
    return Item(None, ((f"  {safe(text)}", "dim"),))
