"""The screen of the account: its sessions, its tokens for scripts, its devices, and a code for adding another
device."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from datetime import datetime

from localstore.core.model.auth import RegisteredKey, Session
from localstore.core.model.organisation import Organisation
from localstore.core.model.repo import Repo
from tui.actions import Action
from tui.blocks import Block, lay_blocks
from tui.charts import bar
from tui.screens.first_steps import SIGN_IN, SIGNED_OUT, steps
from tui.screens.settings import reads
from tui.screens.split import SPLIT_ACTIONS, SplitScreen
from tui.text import Part, ago, brief, fold, fold_after, safe
from tui.widgets.lines import Item, Lines, heading, sequence

SHOWN = 12  # characters of an id
METER, LISTED = 20, 8  # columns of a meter, and rows of a list in the preview
WHOLE = 40  # columns of a preview from which it shows the whole account beside the row
HOUR, DAY = 3600.0, 86400.0
NAME = 11  # columns of the name of a fact
IN_USE = "in use now"
Line = tuple[Part, ...]
BLANK: Line = (("", "text"),)
PAIR: Line = (("  + let another device in", "accent"), ("  a code that works once: a", "dim"))
LISTS = {"organisations": "org list", "API keys": "auth key list", "documents": "doc list"}
KINDS = {
    "browser": "a browser",
    "cli": "svc on a terminal",
    "device": "svc, signed in with the key of a device",
    "guest": "a guest",
    "script": "a token for scripts",
    "ssh": "the app over SSH",
}


class Account(SplitScreen):
    LIST = "account"
    WAITING = "asking the server"
    ACTIONS = (
        Action("revoke", ("x",), "end, revoke", "svc auth token revoke {id}", "signed_in", footer=True),
        Action("pair", ("a",), "code for another device", "svc auth device add", "signed_in", footer=True),
        Action(
            "rename", ("e",), "rename a device", "svc auth device rename {id} NAME", "signed_in", footer=True
        ),
        *SPLIT_ACTIONS,
    )

    def __init__(self) -> None:
        super().__init__()
        self._sessions: list[Session] | None = None
        self._devices: list[RegisteredKey] | None = None
        self._repos: list[Repo] = []
        self._organisations: list[Organisation] = []

    def label_of(self, action: Action) -> str:
        """Returns what the key of an action does with the session or device under the cursor."""
        device = self._chosen_device()
        active = device is not None and device.revoked_at is None
        if action.id == "revoke":
            return "revoke" if active else "end it" if self._chosen_session() is not None else ""
        if action.id == "rename":
            return "rename" if active else ""
        if action.id == "open":
            key = self.listed.key
            lists = isinstance(key, tuple) and key[0] == "list"
            return "make a code" if key == ("pair", "") else "list them" if lists else ""
        return super().label_of(action)

    def title_parts(self) -> Sequence[Part]:
        client = self.svc.client
        who = f"@{client.account}" if client.account else "not signed in"
        return ((" Account", "title"), (f"  {safe(who)} on {safe(client.origin)}", "dim"))

    def first_steps(self) -> tuple[str, Sequence[tuple[Part, ...]]]:
        width = self.preview_width if self.previews else self.list_width
        return "", steps(width, SIGNED_OUT, SIGN_IN)

    def actions(self) -> tuple[Action, ...]:
        return self.ACTIONS if self.svc.client.account else SPLIT_ACTIONS

    def make_title(self) -> tuple[Part, ...]:
        account = self.svc.client.account
        return ((f"Account of @{safe(account)}" if account else "Account", "title"),)

    def on_mount(self) -> None:
        super().on_mount()
        self.do_refresh()

    def on_screen_resume(self) -> None:
        super().on_screen_resume()
        if self._sessions is not None:
            self.do_refresh()

    def do_refresh(self) -> None:
        if not self.svc.client.account:
            self.listed.waiting, self.listed.empty = "", SIGNED_OUT
            self.listed.show(
                sequence([] if self.previews else [Item(None, row) for row in self.first_steps()[1]])
            )
            self.rest()
            return
        self.svc.load(reads.sessions(), self._paint_sessions)
        self.svc.load(reads.device_keys(), self._paint_devices)
        if self.previews:
            self.svc.load(self.svc.repos, self._learn_repos)
            self.svc.load(reads.organisations(), self._learn_organisations)

    def _learn_repos(self, repos: list[Repo], at: float) -> None:
        self._repos = repos
        self.renew()

    def _learn_organisations(self, organisations: list[Organisation], at: float) -> None:
        self._organisations = organisations
        self.renew()

    def _paint_sessions(self, sessions: list[Session], at: float) -> None:
        self._sessions = sessions
        self.paint()

    def _paint_devices(self, devices: list[RegisteredKey], at: float) -> None:
        self._devices = devices
        self.paint()

    def paint(self) -> None:
        if self._sessions is None:  # the cursor begins on the first of them
            return
        sessions = self._sessions or []
        signed_in = [session for session in sessions if session.kind != "script"]
        signed_in.sort(key=lambda session: not session.current)
        tokens = [session for session in sessions if session.kind == "script"]
        devices = self._devices or []
        rows = [
            heading("Sessions", len(signed_in)),
            *map(self._session, signed_in),
            Item(None, BLANK),
            heading("Tokens for scripts", len(tokens)),
            *map(self._session, tokens),
            Item(("token", ""), (("  + make one in a browser", "accent"), (self._page, "dim"))),
            Item(None, BLANK),
            heading("Devices", len(devices)),
            *map(self._device, devices),
            Item(
                ("pair", ""),
                (("  + let another device in", "accent"), ("  a code that works once: a", "dim")),
            ),
            Item(None, BLANK),
            heading("What else is yours"),
            *(
                Item(("list", line), ((f"  {name:<16}", "text"), (f":{line}", "dim")), (), name)
                for name, line in LISTS.items()
            ),
        ]
        self.listed.show(sequence(rows))
        self.renew()

    @property
    def _page(self) -> str:
        """The URL of the page on which tokens are made. "" if the list has no room for it."""
        return "" if self.narrow else f"  {safe(self.svc.client.origin)}/settings?tab=tokens"

    def _session(self, session: Session) -> Item:
        now = self.svc.clock()
        marker = "● " if self.narrow else "● this session  "
        current: Part = (marker if session.current else "", "good")
        id_words = "" if self.narrow else f"  {session.id[:SHOWN]}"
        parts: tuple[Part, ...] = (
            (f"  {session.kind:<8}", "dim"),
            current,
            (safe(session.label) or "without a name", "text"),
            (id_words, "dim"),
        )
        when = brief if self.narrow else ago
        used = (
            IN_USE
            if session.current
            else f"used {when(session.last_used_at, now)}"
            if session.last_used_at
            else f"made {when(session.created_at, now)}"
        )
        return Item(("session", session.id), parts, ((f"{used} ", "dim"),), f"{session.kind} {session.label}")

    def _is_here(self, device: RegisteredKey) -> bool:
        """Returns whether the app uses a session that this device has signed in."""
        return any(session.current and session.device_key_id == device.id for session in self._sessions or ())

    def _device(self, device: RegisteredKey) -> Item:
        state: Part = ("✗ revoked  ", "bad") if device.revoked_at else ("✓ active   ", "good")
        id_words = "" if self.narrow else f"  {device.id[:SHOWN]}"
        marker = "● " if self.narrow else "● this machine  "
        parts: tuple[Part, ...] = (
            ("  ", "text"),
            state,
            (marker if self._is_here(device) else "", "good"),
            (safe(device.name) or "without a name", "dim" if device.revoked_at else "text"),
            (id_words, "dim"),
        )
        return Item(("device", device.id), parts, ((f"{self._use_of(device)} ", "dim"),), device.name)

    def _use_of(self, device: RegisteredKey) -> str:
        """Returns when a device was used, or when it was added if it never was."""
        now, when = self.svc.clock(), brief if self.narrow else ago
        if self._is_here(device):
            return IN_USE
        used = device.last_used_at
        return f"used {when(used, now)}" if used else f"added {when(device.created_at, now)}"

    # --- the preview

    def preview_of(self, key: Hashable) -> None:
        device, session = self._chosen_device(), self._chosen_session()
        if session is not None:
            self.show_preview(key, safe(session.label) or "session", self._session_rows(session))
        elif device is not None:
            self.show_preview(key, safe(device.name) or "device", self._device_rows(device))
        elif isinstance(key, tuple) and key[0] == "list":
            line = str(key[1])
            words = self.svc.summary(line)
            rows: list[Line] = [((safe(words), "title"),), BLANK, *_help("enter", f"runs :{line}", 60)]
            self.show_preview(key, line, rows)
        elif key == ("token", ""):
            self.show_preview(key, "a token", self._token_rows())
        else:
            self.show_preview(key, "another device", self._pair_rows())

    def _session_rows(self, session: Session) -> list[Line]:
        """Returns rows about a session: what kind it is, when it began and when it ends, and how the user can
        end it."""
        more = ": this machine is signed out then" if session.current else ""
        blocks = [
            Block("Session", lambda wide: self._session_facts(session, wide)),
            Block("Next", lambda wide: _help("x", f"ends it at once{more}", wide)),
        ]
        rows: list[Line] = [((safe(session.label) or "without a name", "title"),)]
        rows += (
            [(("● this session", "good"), ("  of the app that you look at", "dim"))]
            if session.current
            else []
        )
        return [*rows, BLANK, *lay_blocks([*blocks, *self._whole_account()], self.preview_width)]

    def _session_facts(self, session: Session, width: int) -> list[Line]:
        now, devices = self.svc.clock(), self._devices or []
        device = next((device for device in devices if device.id == session.device_key_id), None)
        return [
            _fact("kind", KINDS.get(session.kind, session.kind)),
            _fact("id", session.id, "accent"),
            _fact("made", ago(session.created_at, now)),
            _fact("used", IN_USE if session.current else _ago_or_never(session.last_used_at, now)),
            (*_fact("ends", session.expires_at[:10]), *_left_of(session, now, width)),
            *([_fact("device", device.name or device.id[:SHOWN])] if device is not None else []),
        ]

    def _device_rows(self, device: RegisteredKey) -> list[Line]:
        """Returns rows about a device: what it is, which sessions it signed in, and what can be done with
        it."""
        now = self.svc.clock()
        state: Part = ("✗ revoked", "bad") if device.revoked_at else ("✓ active", "good")
        sessions = [session for session in self._sessions or () if session.device_key_id == device.id]

        def facts(width: int) -> list[Line]:
            return [
                *_cut("id", device.id, width),
                *_cut("public key", device.public_key, width),
                _fact("added", ago(device.created_at, now)),
                _fact("used", IN_USE if self._is_here(device) else _ago_or_never(device.last_used_at, now)),
            ]

        def helps(width: int) -> list[Line]:
            if device.revoked_at:
                return [(("what it signed before stays valid", "dim"),)]
            words = "revokes it: its key signs nothing from then on, and its sessions end"
            return [*_help("e", "gives it another name", width), *_help("x", words, width)]

        blocks = [
            Block("Device", facts),
            Block("Sessions", lambda wide: [_short(session) for session in sessions], str(len(sessions))),
            Block("Next", helps),
        ]
        return [
            ((safe(device.name) or "without a name", "title"),),
            (
                state,
                (f"  {ago(device.revoked_at, now)}" if device.revoked_at else "", "dim"),
                ("  ● this machine" if self._is_here(device) else "", "good"),
            ),
            BLANK,
            *lay_blocks([*blocks, *self._whole_account()], self.preview_width),
        ]

    # --- the account as a whole, where there is room for it

    def _whole_account(self) -> list[Block]:
        """Returns blocks about the whole account: its sessions, devices, repositories and organisations. They
        are shown with the blocks about the row under the cursor. Returns [] if there is no room for them."""
        if self.preview_width < WHOLE:
            return []
        devices = [device for device in self._devices or () if not device.revoked_at]
        return [
            Block("Sessions by kind", self._kind_rows, str(len(self._sessions or ()))),
            Block("Active devices", lambda wide: self._used_rows(devices), str(len(devices))),
            Block("Repositories", self._repo_rows, str(len(self._repos)) if self._repos else ""),
            Block("Organisations", lambda wide: self._organisation_rows()),
        ]

    def _kind_rows(self, width: int) -> list[Line]:
        counts = Counter(session.kind for session in self._sessions or ())
        return _bars({KINDS[kind]: count for kind, count in counts.most_common()}, width)

    def _used_rows(self, devices: Sequence[RegisteredKey]) -> list[Line]:
        """Returns a row for each device. The device that was used last comes first."""
        newest = sorted(devices, key=lambda device: device.last_used_at or device.created_at, reverse=True)
        return [
            (
                ("✓ ", "good"),
                (safe(device.name) or device.id[:SHOWN], "text"),
                (f"  {self._use_of(device)}", "dim"),
            )
            for device in newest[:LISTED]
        ]

    def _repo_rows(self, width: int) -> list[Line]:
        """Returns rows about the account's repositories: a bar for each role, and how many of them are
        private and public."""
        roles = Counter(repo.viewer.role or "reader" for repo in self._repos if repo.viewer is not None)
        private = sum(repo.visibility == "private" for repo in self._repos)
        if not self._repos:
            return []
        words = f"{private} private, {len(self._repos) - private} public"
        return [*_bars(dict(roles.most_common()), width), ((words, "dim"),)]

    def _organisation_rows(self) -> list[Line]:
        return [((f"@{safe(listed.handle)}", "name"),) for listed in self._organisations[:LISTED]]

    def _token_rows(self) -> list[Line]:
        """Returns rows that say where the user makes a token for scripts, and what such a token is for."""
        page, width = f"{self.svc.client.origin}/settings?tab=tokens", self.preview_width
        rows: list[Line] = [
            (("A token for scripts", "title"),),
            BLANK,
            *fold([("made in a browser, where it is shown once:", "text")], width),
            *fold([(safe(page), "link")], width),
            BLANK,
            *fold([("A script has it as SVC_TOKEN; x on its row here ends it.", "dim")], self.preview_width),
        ]
        return [*rows, BLANK, *lay_blocks(self._whole_account(), width)]

    def _pair_rows(self) -> list[Line]:
        """Returns rows that say how the user adds another device to the account."""
        client = self.svc.client
        rows: list[Line] = [
            (("Let another device in", "title"),),
            BLANK,
            (("1  ", "accent"), ("a makes a code, which works once, for ten minutes", "text")),
            (("2  ", "accent"), ("on the other device:", "text")),
            ((f"   export SVC_SERVER={safe(client.origin)}", "code"),),
            ((f"   svc login --device-key --pair CODE --handle {safe(client.account)}", "code"),),
            BLANK,
            (("Its key then signs in your name; x on its row revokes it.", "dim"),),
        ]
        return [*rows, BLANK, *lay_blocks(self._whole_account(), self.preview_width)]

    # --- changes: at once, because a session that ends later ends too late

    def on_lines_chosen(self, event: Lines.Chosen) -> None:
        if isinstance(event.key, tuple) and event.key[0] == "list":
            self.svc.run_line(str(event.key[1]))
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
                words = ["auth", "device", "rename", f"={device.id}", typed.strip()]
                self.svc.run_here(words, f"renaming {device.name}")

        self.ask("name of the device", done, value=device.name)

    def do_revoke(self) -> None:
        device, session = self._chosen_device(), self._chosen_session()
        if device is not None and device.revoked_at is None:
            name = device.name or device.id[:SHOWN]
            question = (
                f"{name}: its key signs nothing from then on, its sessions end. To revoke it, type its name."
            )
            end = ["auth", "device", "revoke", f"={device.id}", "--yes"]
            otherwise = "that is not its name; nothing was revoked"
            self.confirm_by_name(
                question, name, lambda: self.svc.run_here(end, f"revoking {name}"), otherwise
            )
        elif session is not None:
            consequence = "; this machine is signed out" if session.current else ""
            end = ["auth", "token", "revoke", session.id, "--yes"]
            label = session.label or session.id[:SHOWN]
            self.confirm(f"End {label}{consequence}?", lambda: self.svc.run_here(end, f"ending {label}"))
        else:
            self.say("put the cursor on a session or an active device", "warn")

    def facts(self) -> dict[str, str]:
        device, session = self._chosen_device(), self._chosen_session()
        chosen = device or session
        return {"id": chosen.id} if chosen is not None else {}

    def command_of(self, action: Action) -> str:
        device = self._chosen_device()
        if action.id == "revoke" and device is not None:
            return "svc auth device revoke {id}" if device.revoked_at is None else ""
        return "" if action.id == "rename" and device is None else action.command

    def _chosen_device(self) -> RegisteredKey | None:
        key = self.listed.key
        return next((device for device in self._devices or [] if ("device", device.id) == key), None)

    def _chosen_session(self) -> Session | None:
        key = self.listed.key
        return next((session for session in self._sessions or [] if ("session", session.id) == key), None)


def _ago_or_never(time: str | None, now: float) -> str:
    return ago(time, now) if time else "never"


def _fact(name: str, value: str, role: str = "text") -> Line:
    return (f"{name:<{NAME}}", "dim"), (safe(value), role)


def _cut(name: str, value: str, width: int) -> list[Line]:
    """Returns a long fact in as many rows as it needs. `name`: the name of the fact, at the beginning of the
    first row."""
    rows = fold([(safe(value), "text")], max(8, width - NAME))
    return [((f"{name if place == 0 else '':<{NAME}}", "dim"), *row) for place, row in enumerate(rows)]


def _help(key: str, words: str, width: int) -> list[Line]:
    """Returns rows with a key and what it does."""
    return list(fold_after([(f"{key} ", "accent")], [(words, "dim")], width))


def _short(session: Session) -> Line:
    """Returns a session as one line, for the list of the sessions of a device."""
    mark: Part = ("● ", "good") if session.current else ("  ", "text")
    return (mark, (safe(session.label) or session.id[:SHOWN], "text"), (f"  {session.kind}", "dim"))


def _left_of(session: Session, now: float, width: int) -> Line:
    """Returns a bar that shows how much time is left of a session. Returns () if there is no room for it, or
    if the session has ended."""
    begins, ends = (
        datetime.fromisoformat(time).timestamp() for time in (session.created_at, session.expires_at)
    )
    remaining = ends - now
    room = min(METER, width - NAME - 24)
    if remaining <= 0 or ends <= begins or room < 4:
        return ()
    words = f"{remaining / HOUR:.0f} h" if remaining < 2 * DAY else f"{remaining / DAY:.0f} days"
    role = "good" if remaining > (ends - begins) / 10 else "warn"
    return (("  ", "text"), *bar(remaining, ends - begins, room, role), (f" {words} left", "dim"))


def _bars(counts: Mapping[str, int], width: int) -> list[Line]:
    """Returns a row for each number, with its name and a bar."""
    most, longest = max(counts.values(), default=0), max(map(len, counts), default=0)
    room = max(4, min(METER, width - longest - 6))
    return [
        ((f"{name:<{longest}}  ", "text"), *bar(count, most, room), (f" {count}", "dim"))
        for name, count in counts.items()
    ]
