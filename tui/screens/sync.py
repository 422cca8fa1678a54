"""The screen about synchronisation: the connection to the server, the watched folders, and the actions in the
outbox."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from datetime import UTC, datetime

from localstore.agent.talk import Folder, PersonOnBranch
from localstore.core.words import count
from localstore.outbox import QueuedAction
from svc.agent.invoke.sync import SyncStatus
from svc.flows.outbox.actions import describe_action, text_of
from tui.actions import Action
from tui.blocks import Block, lay_blocks
from tui.client import sentence
from tui.drafts import name_draft
from tui.screens.split import SPLIT_ACTIONS, SplitScreen
from tui.text import Part, ago, brief, fold, fold_after, lasting, safe
from tui.widgets.frame import LIGHTS, Prompt
from tui.widgets.lines import Item, heading, sequence
from tui.wording import in_app

EVERY = 2.0  # seconds between two questions to the agent, while this screen is shown

Line = tuple[Part, ...]
BLANK: Line = (("", "text"),)
NAME = 10  # columns of the name of a fact
SIGN = 12  # columns of a light with its word
MEANINGS = {
    "live": "changes of others come by themselves, yours are sent at once",
    "online": "the server answers; its events do not come yet",
    "polling": "events do not come, so the server is asked every few seconds",
    "slow": "the server takes long to answer",
    "offline": "the server does not answer and is asked again by itself; what you do waits here until then",
    "sign_in": "the server asks who you are; :login",
    "unknown": "nothing has been asked yet",
}


class Sync(SplitScreen):
    LIST = "sync"
    ACTIONS = (
        Action("retry", ("u",), "send now", "svc queue retry", footer=True),
        Action("drop", ("x",), "drop", "svc queue drop {id}", "item", footer=True),
        Action("pause", ("z",), "pause, go on", "", "item", footer=True),
        *SPLIT_ACTIONS,
    )

    def __init__(self) -> None:
        super().__init__()
        self._folders: list[Folder] = []
        self._painted = False
        # The question whether a queued action is dropped, the id of the action, and its words.
        self._dropping: tuple[Prompt | None, str, str] = (None, "", "")

    def title_parts(self) -> Sequence[Part]:
        return ((" Sync", "title"), (f"  {safe(self.svc.client.origin)}", "dim"))

    def label_of(self, action: Action) -> str:
        """Returns what the key of an action does with the queued action or the folder under the cursor."""
        if action.id == "retry":
            if not self.svc.outbox.entries:
                return "ask the server"
            entry = self._entry
            return "try it again" if entry is not None and entry.state == "refused" else action.label
        if action.id == "drop":
            return action.label if self._entry is not None else ""
        if action.id == "pause":
            folder = self._folder_under
            return "" if folder is None else "go on" if folder.paused else "pause"
        return super().label_of(action)

    @property
    def _folder_under(self) -> Folder | None:
        """The watched folder under the cursor, None if the row is no folder."""
        key = self.listed.key
        return next((watched for watched in self._folders if ("folder", watched.folder) == key), None)

    def make_title(self) -> tuple[Part, ...]:
        return (("Sync", "title"),)

    def on_mount(self) -> None:
        super().on_mount()
        self.paint()
        self.svc.outbox.look()
        self._ask_agent()
        self.set_interval(EVERY, self._ask_agent)

    def do_refresh(self) -> None:
        """Send the outbox, and ask the agent and the server again. The answers also show the state of the
        connection."""
        self.svc.outbox.send()
        self._ask_agent()
        self.svc.load(self.svc.repos, lambda value, at: None)

    def show_frame(self) -> None:
        super().show_frame()
        if self._painted:
            self.paint()

    def _ask_agent(self) -> None:
        """Ask the agent for the watched folders."""
        machine = self.svc.machine
        if machine is not None:
            self._at_agent(machine.status)

    def _at_agent(self, ask: Callable[[], SyncStatus | None]) -> None:
        """Call `ask` on a thread, and paint the answer. `ask`: makes a request to the agent."""

        def work() -> None:
            status = ask()
            self.svc.call_from_thread(self._heard, status.folders if status is not None else [])

        self.svc.run_worker(work, thread=True, group="agent", exclusive=True, exit_on_error=False)

    def _heard(self, folders: list[Folder]) -> None:
        if self.is_attached and folders != self._folders:
            self._folders = folders
            self.paint()

    def do_pause(self) -> None:
        """Pause the watched folder under the cursor. If it is paused, resume it."""
        machine, folder = self.svc.machine, self._folder_under
        if machine is None or folder is None:
            self.say("put the cursor on a watched folder; z pauses it, Z zooms", "warn")
            return
        paused = not folder.paused

        def ask() -> SyncStatus | None:
            machine.invoke("sync_pause", list[Folder], folder=folder.folder, paused=paused)
            return machine.status()

        self._at_agent(ask)
        words = "paused: edits wait here; z goes on" if paused else "follows its branch again"
        self.say(f"{folder.repo} {folder.branch} {words}")

    def news(self) -> None:
        """Does nothing, because events of the server change nothing on this screen."""

    def queue_changed(self) -> None:
        self.paint()
        prompt, id, words = self._dropping
        outbox = self.svc.outbox
        if prompt is None or self._prompt is not prompt or any(entry.id == id for entry in outbox.entries):
            return
        self.drop_question()
        over = "was sent" if id in outbox.sent else "waits here no more: it was sent, or dropped elsewhere"
        self.say(f"«{words}» {over}", "dim")

    def paint(self) -> None:
        self._painted = True
        now = self.svc.clock()
        entries = self.svc.outbox.entries
        waiting = [entry for entry in entries if entry.state != "refused"]
        since = lasting(self.svc.news.since, now)
        rows = [
            heading("Connection"),
            Item("connection", (("  ", "text"), *LIGHTS[self.svc.news.state]), ((f"{since} ", "dim"),)),
            Item(None, BLANK),
            heading("Folders", len(self._folders) or None),
        ]
        for folder in self._folders:
            rows.append(self._folder(folder))
            rows += [Item(None, person) for person in map(_person, folder.people)]
        if not self._folders:
            rows.append(Item(None, (("  none is watched; :watch --detach", "dim"),)))
        rows.append(Item(None, BLANK))
        oldest = f"the oldest {ago(waiting[0].created_at, now)} " if waiting else ""
        rows.append(heading("Queue", len(waiting) or None, oldest))
        for entry in entries:
            rows.append(self._row(entry))
            if entry.reason and not self.previews:
                reason = fold([(safe(in_app(entry.reason)), "bad")], max(20, self.list_width - 14))
                rows += [Item(None, ((" " * 12, "text"), *row)) for row in reason]
        if not entries:
            rows.append(Item(None, (("  nothing waits ✓", "good"),)))
        self.listed.show(sequence(rows))
        self.renew()

    def preview_of(self, key: Hashable) -> None:
        entry = self._entry
        folder = next((watched for watched in self._folders if ("folder", watched.folder) == key), None)
        if entry is not None:
            self.show_preview(key, "action", self._entry_rows(entry))
        elif folder is not None:
            self.show_preview(key, safe(folder.folder), self._folder_rows(folder))
        else:
            self.show_preview(key, "connection", self._connection_rows())

    def _connection_rows(self) -> list[Line]:
        """Returns rows about the connection: its state and what that means, the server, and the account. The
        list beside it has the folders and the queue."""
        news, now, width = self.svc.news, self.svc.clock(), self.preview_width
        rows: list[Line] = [
            (*LIGHTS[news.state], (f"  {lasting(news.since, now)}", "dim")),
            *fold([(MEANINGS.get(news.state, ""), "text")], width),
            *(fold([(safe(news.reason), "warn")], width) if news.state == "offline" and news.reason else ()),
            BLANK,
        ]
        blocks = [
            Block("Connection", lambda wide: self._connection_facts()),
            Block("Next", self._help_rows),
            Block("The lights", self._legend),
        ]
        return [*rows, *lay_blocks(blocks, width)]

    def _connection_facts(self) -> list[Line]:
        client = self.svc.client
        return [
            _fact("server", client.origin),
            _fact("account", f"@{client.account}" if client.account else "not signed in"),
        ]

    def _help_rows(self, width: int) -> list[Line]:
        refused = any(entry.state == "refused" for entry in self.svc.outbox.entries)
        entries = self.svc.outbox.entries
        helps = [("u ", "sends what waits now" if entries else "asks the server at once")]
        helps += [("x ", "drops the change under the cursor")] if entries else []
        helps += [("u ", "on a refused change tries it once more")] if refused else []
        helps += [("z ", "pauses the folder under the cursor")] if self._folders else []
        helps.append((": ", "watch --detach  has this folder follow its branch"))
        rows: list[Line] = []
        for key, words in helps:
            rows += fold_after([(key, "accent")], [(words, "dim")], width)
        return rows

    def _legend(self, width: int) -> list[Line]:
        """Returns rows that say what each state of the connection means. The present state is marked."""
        rows: list[Line] = []
        for state, words in MEANINGS.items():
            if state == "unknown":
                continue
            mark: Part = ("▌", "accent") if state == self.svc.news.state else (" ", "text")
            sign, (word, role) = LIGHTS[state]
            rows += fold_after([mark, sign, (f"{word:<{SIGN - 1}}", role)], [(words, "dim")], width)
        return rows

    def _entry_rows(self, entry: QueuedAction) -> list[Line]:
        """Returns rows about an action in the outbox: what it does, how often it was tried, why it was
        refused, and its text."""
        refused = entry.state == "refused"
        width, now = self.preview_width, self.svc.clock()
        sign: Part = ("✗ ", "bad") if refused else ("⋯ ", "warn")
        rows: list[Line] = [*fold([sign, (safe(describe_action(entry)), "title")], width)]
        why = f"refused: {in_app(entry.reason)}" if entry.reason else "refused by the server"
        state: Part = (safe(why), "bad") if refused else (self._waits_for(entry), "warn")
        rows += [*fold([state], width), BLANK]
        rows += [_fact("about", entry.about)] if entry.about else []
        rows += [_fact("queued", ago(entry.created_at, now)), _fact("by", f"@{entry.handle}")]
        tried = f"{entry.attempts} times" if entry.attempts > 1 else "once" if entry.attempts else "not yet"
        rows += [_fact("tried", tried)]
        body = entry.value.get("body") if isinstance(entry.value, dict) else None
        if isinstance(body, str) and body.strip():
            rows += [BLANK, *self.text_rows(body)]  # type: ignore[list-item]
        words = "tries it again" if refused else "sends what waits now"
        drops = "drops it; its text becomes the draft again" if text_of(entry) else "drops it"
        return [*rows, BLANK, (("u ", "accent"), (words, "dim")), (("x ", "accent"), (drops, "dim"))]

    def _waits_for(self, entry: QueuedAction) -> str:
        """Returns what a queued action waits for, as a sentence."""
        if self._whose(entry):
            return "waits for the server of its account"
        if self.svc.news.state == "sign_in":
            return "waits until you sign in: :login"
        if self.svc.news.state in ("offline", "slow"):
            return "waits until the server answers"
        return "waits to be sent"

    def _folder_rows(self, folder: Folder) -> list[Line]:
        """Returns rows about a watched folder: how it is connected to the server, what waits to be sent, and
        who is on its branch."""
        since = datetime.fromtimestamp(folder.since, UTC).isoformat()
        rows: list[Line] = [
            (*LIGHTS[folder.light], (f"  {lasting(since, self.svc.clock())}", "dim")),
            *(fold([(safe(folder.why), "warn")], self.preview_width) if folder.why else []),
            BLANK,
            _fact("folder", folder.folder),
            _fact("repo", folder.repo, "accent"),
            _fact("branch", folder.branch),
            _fact("waiting", count(folder.queued, "edit") if folder.queued else "nothing"),
            _fact("state", "paused" if folder.paused else "follows its branch"),
            BLANK,
            (("People ", "title"), (str(len(folder.people)), "dim")),
            *map(_person, folder.people),
            *([] if folder.people else [(("  nobody else is here", "dim"),)]),
            BLANK,
        ]
        words = "goes on" if folder.paused else "pauses it: edits wait here until it goes on"
        return [*rows, (("z ", "accent"), (words, "dim"))]

    def _folder(self, folder: Folder) -> Item:
        since = datetime.fromtimestamp(folder.since, UTC).isoformat()
        waiting = f" {folder.queued} queued" if folder.queued else ""
        why = f"  {safe(folder.why)}" if folder.why and folder.light != "live" else ""
        parts: tuple[Part, ...] = (
            ("  ", "text"),
            *LIGHTS[folder.light],
            (waiting, "text"),
            (why, "warn"),
            (f"  {safe(folder.repo)} {safe(folder.branch)}", "text"),
            (f"  {safe(folder.folder)}", "dim"),
        )
        return Item(("folder", folder.folder), parts, ((f"{ago(since, self.svc.clock())} ", "dim"),))

    def _row(self, entry: QueuedAction) -> Item:
        sign: Part = ("✗ refused  ", "bad") if entry.state == "refused" else ("⋯ ", "warn")
        parts: tuple[Part, ...] = (
            ("  ", "text"),
            sign,
            (self._whose(entry), "person"),
            (safe(describe_action(entry)), "text"),
            (f"  {safe(entry.about)}", "dim"),
        )
        return Item(entry.id, parts, ((f"{brief(entry.created_at, self.svc.clock())} ", "dim"),))

    def _whose(self, entry: QueuedAction) -> str:
        """Returns the handle and server of the account that a queued action belongs to. Returns "" if that is
        the account that is signed in."""
        sending = self.svc.outbox.sending
        if sending is None or sending.is_mine(entry):
            return ""
        return f"@{safe(entry.handle)} at {safe(entry.origin.partition('://')[2])}  "

    def facts(self) -> dict[str, str]:
        entry = self._entry
        return {"id": entry.id} if entry is not None else {}

    @property
    def _entry(self) -> QueuedAction | None:
        key = self.listed.key
        return next((entry for entry in self.svc.outbox.entries if entry.id == key), None)

    def do_retry(self) -> None:
        """Send the outbox again. The action under the cursor is sent even if the server has refused it
        before."""
        entry = self._entry
        if not self.svc.outbox.entries:
            self.say("◐ asking the server", "dim")
            self.svc.news.ask_now(self._say_answer)
            return
        self.svc.outbox.send(again=entry if entry is not None and entry.state == "refused" else None)

    def _say_answer(self, error: BaseException | None) -> None:
        """Say whether the server answers, after the user has asked for it."""
        if not self.remains:
            return
        if error is None:
            self.say("the server answers", "good")
        else:
            self.say_unreached(sentence(error))
        self.paint()

    def do_drop(self) -> None:
        entry = self._entry
        if entry is None:
            self.say("put the cursor on an action", "warn")
            return
        words = describe_action(entry)

        def drop() -> None:
            self.svc.outbox.drop(entry)
            note = "; c on it goes on with the text" if self._keep_text(entry) else ""
            self.say(f"dropped: {words}{note}")

        self.confirm(f"Drop «{words}» without sending it?", drop, destroys=True)
        self._dropping = self._prompt, entry.id, words

    def _keep_text(self, entry: QueuedAction) -> bool:
        """Make the text of a comment that is dropped the draft of its issue or proposal again, unless there
        is another draft. Returns whether it is kept."""
        drafts, text, (repo_id, kind, number) = self.svc.drafts, text_of(entry), _place_of(entry)
        if drafts is None or not text or kind not in ("issues", "proposals") or not number.isdigit():
            return False
        name = name_draft(repo_id, int(number))
        if drafts.exists(name):
            return False
        drafts.keep(name, text)
        return True


def _place_of(entry: QueuedAction) -> tuple[str, str, str]:
    """Returns the repository, the kind and the number of what a queued action is about, each "" if it is
    about none."""
    words = [*entry.path.split("/"), "", "", "", "", ""]
    return (words[2], words[3], words[4]) if words[1] == "repos" else ("", "", "")


def _person(person: PersonOnBranch) -> tuple[Part, ...]:
    where = (
        f" in {safe(person.path)}" + (f", line {person.line}" if person.line else "") if person.path else ""
    )
    on = f" on {safe(person.device)}" if person.device else ""
    return (
        ("    ", "text"),
        (f"@{safe(person.who)}", "agent" if person.kind == "agent" else "name"),
        (on + where, "dim"),
    )


def _fact(name: str, value: str, role: str = "text") -> Line:
    return (f"{name:<{NAME}}", "dim"), (safe(value), role)
