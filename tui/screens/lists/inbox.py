"""The screen with the whole inbox. The rows of the inbox are also made here."""

from __future__ import annotations

import shlex
from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec
from rich.cells import cell_len

from localstore.core.model import inbox as inboxes
from localstore.core.model.inbox import InboxItem, InboxMarks, InboxState
from localstore.core.model.limits import INBOX_MARKED
from localstore.core.model.repo import Repo
from svc.flows.inbox_words import describe, describe_event
from tui import reads
from tui.actions import Action
from tui.screens.base import TWO_PANES
from tui.screens.first_steps import SIGN_IN, SIGNED_OUT, steps
from tui.screens.lists.answered import Answered
from tui.screens.split import SPLIT_ACTIONS
from tui.text import Part, ago, brief, safe
from tui.widgets.lines import Item, Lines, heading, queued_rows, sequence

if TYPE_CHECKING:
    from tui.asked import AskedApp
    from tui.listed import ListedProposal

NONE_GIVEN: Mapping[str, Part] = {}
WORD = 10  # columns of the word that says why a row is there
NAME, NAME_BESIDE = 32, 22  # columns of a repository's name, and beside a word about its proposal
# What waits for the user: all else can be marked as done without being looked at.
NEEDS_ME = frozenset(
    {
        "invited",
        "transfer",
        "access_requested",
        "review_requested",
        "check_failed",
        "ready_to_merge",
        "mention",
        "report",
    }
)
WATCHED = frozenset({"participant", "watching"})
SECTIONS = ("Needs me", "Mine", "Watching")
NOTHING: Part = ("", "dim")
NO_PROPOSALS: Mapping[str, ListedProposal] = {}
REASONS: dict[str, Part] = {
    "review_requested": ("review", "accent"),
    "mention": ("mention", "accent"),
    "assigned": ("assigned", "accent"),
    "author": ("yours", "dim"),
    "participant": ("took part", "dim"),
    "check_failed": ("✗ failed", "bad"),
    "ready_to_merge": ("◷ dropped", "warn"),
    "invited": ("invited", "accent"),
    "transfer": ("transfer", "accent"),
    "watching": ("watching", "dim"),
    "access_requested": ("access", "accent"),
    "access_granted": ("granted", "good"),
    "report": ("report", "bad"),
    "webhook_disabled": ("webhook", "bad"),
}


CODE, SECURITY = 2, 6  # tabs of a repository
NO_NEWS = "✓ nothing new concerns you"
COMES = (("", "Here comes what asks something of you, your own issues and proposals, and what you watch."),)
OPEN = Action("open", ("enter",), "open", "svc issue view {n}", footer=True)
GO = Action("go_repo", ("w",), "go to a repository", footer=True)


class Space(NamedTuple):
    """The room for a row of the inbox. `narrow`: there is little more room than for a title. `two_lines`: the
    row has a second line. `account`: the handle of the user. `columns`: those of the list, 0 if they do not
    matter."""

    narrow: bool = False
    two_lines: bool = False
    account: str = ""
    columns: int = 0


ROOMY = Space()


def row(
    item: InboxItem,
    now: float,
    space: Space = ROOMY,
    given: Part | None = None,
    proposal: ListedProposal | None = None,
) -> Item:
    """Returns the row of an inbox item. Its key is the id of the item. `given`: how the item was answered.
    `proposal`: the open proposal that it is about, None if it is about something else or is not known."""
    word, role = given or _why(item)
    stands = _stands(item, proposal, space) if given is None else NOTHING
    if stands[0] and not _still(item, proposal):
        (word, role), stands = stands, NOTHING
    number = f"#{item.subject.number}" if item.subject.number else ""
    full = _about(item)
    name = full.rpartition("/")[2] if space.narrow or space.two_lines else full
    room = NAME_BESIDE if stands[0] else NAME
    short = name if len(name) <= room else f"…{name[1 - room :]}"
    done, title = describe_event(item), safe(describe(item))
    text = f"{word} {stands[0]} {full} {number} {title} {done}"
    unread: Part = ("● " if item.unread and given is None else "  ", "accent")
    about: Part = (f"{safe(short)}{number} ", "accent")
    if space.two_lines:
        when = ((f"{brief(item.updated_at, now)} ", "dim"),)
        below: tuple[Part, ...] = (
            ("  ", "text"),
            (word, role),
            (f"  {stands[0]}" if stands[0] else "", stands[1]),
            (f"  {safe(done if number else full)}" if done or not number else "", "dim"),
        )
        return Item(item.id, (unread, about, (title, "text")), when, text, below=below)
    if space.narrow:
        when = ((f"{brief(item.updated_at, now)} ", "dim"),)
        word, role = stands if stands[0] and item.reason not in NEEDS_ME else (word, role)
        parts: tuple[Part, ...] = (unread, (f"{word} ", role), about, (title, "text"))
        taken = 1 + sum(cell_len(part) for part, _ in (*parts, *when))
        if number and space.columns and taken > space.columns:
            parts = (unread, (f"{word} ", role), (title, "text"))  # the preview says where it is
        return Item(item.id, parts, when, text)
    what: Part = (f" · {safe(done)}" if done else "", "dim")
    parts = (unread, (f"{word:<{WORD - 1}} ", role), about, (f" {title}", "text"), what)
    right = ((f"{stands[0]}  " if stands[0] else "", stands[1]), (f"{ago(item.updated_at, now)} ", "dim"))
    return Item(item.id, parts, right, text)


def _why(item: InboxItem) -> Part:
    """Returns why a row is in the inbox. For what is closed or merged by now, returns that instead of what it
    asked for."""
    return _end(item) if is_over(item) else REASONS[item.reason]


def _end(item: InboxItem) -> Part:
    """Returns that an issue or proposal is closed or merged. Returns "" if it is open."""
    if item.subject.state != "closed":
        return NOTHING
    if item.subject.kind == "issue":
        return "✓ closed", "dim"
    is_merged = item.subject.merged or item.event == "proposal.merge"
    return ("● merged", "agent") if is_merged else ("⊘ closed", "dim")


def _stands(item: InboxItem, proposal: ListedProposal | None, space: Space) -> Part:
    """Returns how an issue or proposal stands: that it is closed or merged, or what an open proposal waits
    for. Returns "" if that is unknown, or if the reason of the row says it already."""
    if proposal is None:
        return NOTHING if is_over(item) else _end(item)
    from tui.screens.proposal.words import standing_of  # which the first screen does not need

    standing = standing_of(proposal, space.account)
    if standing is None or (item.reason == "review_requested" and standing.role == "accent"):
        return NOTHING
    return standing.words if space.two_lines else standing.short, standing.role


def _still(item: InboxItem, proposal: ListedProposal | None) -> bool:
    """Returns whether a proposal still stands as the reason of its row says. Its checks may have passed since
    then, or its merge may have been signed again. If the proposal is unknown, returns True."""
    if proposal is None:
        return True
    if item.reason == "check_failed":
        return bool(proposal.checks.failed)
    return item.reason != "ready_to_merge" or proposal.auto_merge is None


def is_over(item: InboxItem) -> bool:
    """Returns whether an item of the inbox needs no answer any more. It asked for one, but its issue or
    proposal is closed or merged by now."""
    return item.reason in NEEDS_ME and item.subject.state == "closed"


def section_of(item: InboxItem, proposal: ListedProposal | None = None, account: str = "") -> str:
    """Returns the section of a row of the inbox: "Needs me" if it waits for the account, "Mine" if it is
    about the account's own work, or "Watching". `proposal`: the open proposal that the row is about, if it is
    known. If it does not stand any more as its reason says, it does not wait for the account. If it waits for
    the account's review, it does, whatever the reason of the row is."""
    if proposal is not None and account:
        from tui.screens.proposal.words import asks_for  # which the first screen does not need

        if asks_for(proposal, account):
            return "Needs me"
    if item.reason in NEEDS_ME and not is_over(item) and _still(item, proposal):
        return "Needs me"
    return "Watching" if item.reason in WATCHED or is_over(item) else "Mine"


def sections(
    items: Sequence[InboxItem],
    now: float,
    space: Space = ROOMY,
    most: int | None = None,
    given: Mapping[str, Part] = NONE_GIVEN,
    proposals: Mapping[str, ListedProposal] = NO_PROPOSALS,
) -> list[Item]:
    """Returns the rows of the inbox by section. Each section begins with a heading that has the number of its
    rows. `most`: how many rows of each section are shown at most. `given`: how rows were answered, by id.
    `proposals`: the open proposals that rows are about, by the id of the row."""
    rows: list[Item] = []
    for name in SECTIONS:
        own = [item for item in items if section_of(item, proposals.get(item.id), space.account) == name]
        if own:
            rows.append(heading(name, sum(item.id not in given for item in own)))
        rows += [row(item, now, space, given.get(item.id), proposals.get(item.id)) for item in own[:most]]
        if most is not None and len(own) > most:
            rows.append(Item(None, ((f"  {len(own) - most} more: i", "dim"),)))
    return rows


def _about(item: InboxItem) -> str:
    """Returns what a row of the inbox is about: OWNER/NAME of a repository, or the handle of an
    organisation."""
    return item.subject.title if item.repo is None else item.repo.full_name


def _about_one(item: InboxItem) -> str:
    """Returns a short name of what a row of the inbox is about: the number of an issue or a proposal. Without
    one, see `_about`."""
    return f"#{item.subject.number}" if item.subject.number is not None else safe(_about(item))


def preview_item(panes: Answered, item: InboxItem) -> None:
    """Show the preview of a row of the inbox: of its issue, its proposal or its repository."""
    from tui.screens.lists.answering import answers_to, preview_offer, read_offer
    from tui.screens.lists.glance import Glance
    from tui.screens.talk.previews import preview_talk

    number, repo = item.subject.number, item.repo
    answers = answers_to(item)
    words: list[tuple[Part, ...]] = [((safe(describe(item)), "title"),)]
    if item.id in panes.given:
        words.append((panes.given[item.id],))
    elif answers:
        words.append((("enter ", "accent"), (f"answers: {' or '.join(answers)}", "dim")))
    elif item.reason == "report":
        words.append((("enter ", "accent"), ("opens Security, which lists the reports", "dim")))
    if repo is None or (answers and item.event != "access.request"):  # what is offered may be hidden yet
        preview_offer(panes, item, safe(_about(item)), words)
    elif number is not None:
        preview_talk(panes, item.id, repo.id, item.subject.kind, number, words[0])
    elif answers:
        read_offer(
            panes,
            item,
            lambda rows, facts: Glance(panes, item.id, repo.id, [*words, *rows, (("", "text"),)]).begin(),
        )
    else:
        Glance(panes, item.id, repo.id, [*words, (("", "text"),)]).begin()


def open_item(screen: Answered, item: InboxItem) -> bool:
    """Open a row of the inbox. If the row needs an answer, let the user choose one. Otherwise show its issue,
    proposal or repository, and mark the row as read. Returns whether it was marked."""
    from tui.screens.lists.answering import ask_for_answer

    if ask_for_answer(screen, item, lambda: open_subject(screen.svc, item)):
        return False
    if item.repo is None:
        screen.say(f"{safe(item.subject.title)}: {safe(describe(item))}")
        return False
    if item.unread:
        screen.stale = True  # it is read when the user comes back
        screen.svc.outbox.act(inboxes.UPDATE, InboxState(state="read"), about=_about(item), id=item.id)
    open_subject(screen.svc, item)
    return item.unread


def opening(item: InboxItem, given: Part | None = None) -> Action:
    """Returns the action of the key enter on a row of the inbox, with the command that does the same.
    `given`: how the row was answered."""
    from tui.screens.lists.answering import answers_to

    answers = answers_to(item) if given is None else {}
    if answers:
        return Action(
            "open", ("enter",), "answer", shlex.join(["svc", *next(iter(answers.values()))]), footer=True
        )
    if item.repo is None:
        return OPEN
    number, noun = item.subject.number, "pr" if item.subject.kind == "proposal" else "issue"
    where = ["repo", "view", item.repo.full_name]
    words = where if number is None else [noun, "view", str(number), "-R", item.repo.full_name]
    return Action("open", ("enter",), "open", shlex.join(["svc", *words]), footer=True)


def open_subject(svc: AskedApp, item: InboxItem) -> None:
    """Show the issue, proposal or repository that a row of the inbox is about. Does nothing if it is about an
    organisation."""
    if item.repo is None:
        return
    repo_id = item.repo.id
    opened: list[bool] = []

    def show(repo: Repo, at: float) -> None:
        from tui.screens.proposal.screen import ProposalScreen
        from tui.screens.repo import RepoScreen
        from tui.screens.talk.issue import IssueScreen

        if opened:
            return
        opened.append(True)
        number = item.subject.number
        if number is None:
            svc.push_screen(RepoScreen(repo, SECURITY if item.reason == "report" else CODE))
        elif item.subject.kind == "proposal":
            svc.push_screen(ProposalScreen(repo, number))
        else:
            svc.push_screen(IssueScreen(repo, number))

    svc.load(reads.repo(repo_id), show)


class Inbox(Answered):
    FOLLOWS_LATER = True
    LIST = "inbox"
    TWO_LINES = True
    TWO_LINES_FROM = TWO_PANES
    FACTS = True
    WAITING = "asking the server"
    ACTIONS = (
        OPEN,
        Action("done", ("x",), "done", "svc inbox done {item}", "signed_in", footer=True),
        Action("all_done", ("X",), "all done", "svc inbox done --all", "signed_in", footer=True),
        Action("undo", ("u",), "undo done or read", "svc inbox unread {item}", "signed_in"),
        *SPLIT_ACTIONS,
    )

    def __init__(self) -> None:
        super().__init__()
        self._items: list[InboxItem] = []
        self._is_read = False  # whether it is known what the inbox holds
        self._undone: list[list[InboxItem]] = []  # what `u` brings back, the last of it first
        self._back = ""  # the row to which the cursor goes once it is back

    def make_title(self) -> tuple[Part, ...]:
        return ("Inbox ", "title"), (str(self._count) if self._is_read else "", "dim")

    @property
    def _count(self) -> int:
        """How many rows are not answered yet."""
        return sum(item.id not in self.given for item in self._items)

    def actions(self) -> tuple[Action, ...]:
        item = self._of(self.listed.key) if self.is_mounted else None
        if item is not None:
            return (opening(item, self.given.get(item.id)), *self.ACTIONS[1:])
        if self._items:
            return self.ACTIONS
        # nothing is done with rows that are not there
        return (*(msgspec.structs.replace(action, footer=False) for action in self.ACTIONS), GO)

    def first_steps(self) -> tuple[str, Sequence[tuple[Part, ...]]]:
        width = self.preview_width if self.previews else self.list_width
        if not self.svc.client.account:
            return "", steps(width, SIGNED_OUT, SIGN_IN)
        return "", steps(width, NO_NEWS, COMES, (("w", "opens a repository"),), role="good")

    def preview_of(self, key: Hashable) -> None:
        item = self._of(key)
        if item is not None:
            preview_item(self, item)

    def label_of(self, action: Action) -> str:
        useless = action.id in ("open", "done") and self._of(self.listed.key) is None
        useless = useless or (action.id == "all_done" and not self._items)
        return "" if useless else super().label_of(action)

    def title_parts(self) -> Sequence[Part]:
        return ((" Inbox", "title"), (f"  {self._count}" if self._is_read else "", "dim"))

    def on_mount(self) -> None:
        super().on_mount()
        self.do_refresh()

    def do_refresh(self) -> None:
        if not self.svc.client.account:
            self.paint()  # the server would only say to sign in
            return
        self.svc.load(reads.inbox(), self._paint)
        self.renew()

    def about(self) -> list[str]:
        cached = self.svc.client.read_cached(self.svc.repos)
        mine = [repo.id for repo in cached[0]] if cached is not None else []
        return [*(item.repo.id for item in self._items if item.repo is not None), *mine]

    def _paint(self, items: list[InboxItem], at: float) -> None:
        self._items, self._is_read = self.keep_answered(items, self._items), True
        self.read_proposals(self._items)
        self.listen()
        self.paint()

    def drop_declined(self) -> None:
        self._items = self.without_declined(self._items)
        self.paint()

    def queue_changed(self) -> None:
        self.paint()

    def paint(self) -> None:
        if self.svc.client.account and not self._is_read:
            self.show_frame()
            return
        now = self.svc.clock()
        columns = self.list_width if self.previews else 0
        space = Space(self.narrow, self.two_lines, self.svc.client.account, columns)
        proposals = self.find_proposals(self._items)
        rows = sections(self._items, now, space, given=self.given, proposals=proposals)
        if not rows and self.previews:
            self.listed.empty = NO_NEWS if self.svc.client.account else SIGNED_OUT
        elif not rows:
            rows += [Item(None, row) for row in self.first_steps()[1]]
        rows += queued_rows(self.svc.outbox.describe("/inbox"))
        there = bool(self._back) and self._of(self._back) is not None
        self.query_one("#inbox", Lines).show(sequence(rows), self._back if there else None)
        self._back = "" if there else self._back
        self.show_frame()
        self.rest()

    def facts(self) -> dict[str, str]:
        key = self.listed.key
        return {"item": str(key)} if key is not None else {}

    def _of(self, key: Hashable | None) -> InboxItem | None:
        return next((item for item in self._items if item.id == key), None)

    def do_done(self) -> None:
        item = self._of(self.query_one("#inbox", Lines).key)
        if item is not None and item.id in self.given:
            self.say("it is answered", "dim")
        elif item is not None:
            body = InboxState(state="done")
            self.svc.outbox.act(inboxes.UPDATE, body, about=_about(item), id=item.id)
            self._renew_below()
            self._say_marked([item], f"{_about_one(item)} is done; u undoes it")

    def do_all_done(self) -> None:
        """Ask whether to mark all listed rows as done, and mark them. Rows that wait for the user are left
        out."""
        proposals = self.find_proposals(self._items)
        listed = [item for item in self._items if item.id not in self.given]
        account = self.svc.client.account
        chosen = [item for item in listed if section_of(item, proposals.get(item.id), account) != "Needs me"]
        stays = len(listed) - len(chosen)
        staying = f"{stays} that need{'s' if stays == 1 else ''} you stay{'s' if stays == 1 else ''}"
        if not chosen:
            self.say("each of these waits for you; x marks one as done" if stays else "there is none", "warn")
            return

        def mark() -> None:
            self._mark(chosen, "done")
            self._say_marked(chosen, f"{len(chosen)} done{f'; {staying}' if stays else ''}; u undoes it")

        question = f"Mark {len(chosen)} as done?{f' {staying}.' if stays else ''}"
        self.confirm(question, mark, "all done")

    def do_undo(self) -> None:
        """Bring back the rows that the user has just marked as done, or the row that the user has just
        opened. Each is read or unread, as it was before."""
        if not self._undone:
            self.say("nothing was marked as done or opened here", "warn")
            return
        back = self._undone.pop()
        self._back = back[0].id
        self._mark([item for item in back if item.unread], "unread")
        self._mark([item for item in back if not item.unread], "read")
        more = "; u undoes the one before" if self._undone else ""
        about = _about_one(back[0]) if len(back) == 1 else str(len(back))
        self.say(f"{about} {'is' if len(back) == 1 else 'are'} back{more}")

    def _renew_below(self) -> None:
        """Let Home read the inbox again, once the user is back there."""
        for screen in self.app.screen_stack:
            if screen is not self and isinstance(screen, Answered):
                screen.stale = True

    def _mark(self, chosen: list[InboxItem], state: Literal["done", "read", "unread"]) -> None:
        for first in range(0, len(chosen), INBOX_MARKED):
            ids = [item.id for item in chosen[first : first + INBOX_MARKED]]
            self.svc.outbox.act(inboxes.UPDATE_ALL, InboxMarks(state=state, ids=ids), about="")
        self._renew_below()

    def _say_marked(self, chosen: list[InboxItem], words: str) -> None:
        self._undone.append(chosen)
        self.say(words)

    def on_lines_moved(self, event: Lines.Moved) -> None:
        super().on_lines_moved(event)
        self._back = ""  # the user has gone elsewhere

    def on_lines_chosen(self, event: Lines.Chosen) -> None:
        item = self._of(self.listed.key)
        if item is not None and open_item(self, item):
            self._undone.append([item])
