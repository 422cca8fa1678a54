"""The inbox, over all repositories."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from localstore.core.limits import INBOX_MARKED
from localstore.core.model.collaboration import inbox as inboxes
from localstore.core.model.collaboration.inbox import InboxItem, InboxMarks, InboxState
from localstore.core.model.repo import Repo
from svc.flows.inbox_words import happened, said
from tui import reads
from tui.actions import Action
from tui.screens.split import SPLIT_ACTIONS, Panes, SplitScreen
from tui.text import Part, ago, brief, safe
from tui.widgets.lines import Item, Lines, sequence

if TYPE_CHECKING:
    from tui.app import SvcApp

NAME = 32  # columns of a repository's name
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
    }
)
WATCHED = frozenset({"participant", "watching"})
SECTIONS = ("Needs me", "Mine", "Watching")
REASONS: dict[str, Part] = {
    "review_requested": ("review", "accent"),
    "mention": ("mention", "accent"),
    "assigned": ("assigned", "accent"),
    "author": ("yours", "dim"),
    "participant": ("took part", "dim"),
    "check_failed": ("✗ fails", "bad"),
    "ready_to_merge": ("✓ ready", "good"),
    "invited": ("invited", "accent"),
    "transfer": ("transfer", "accent"),
    "watching": ("watching", "dim"),
    "access_requested": ("access", "accent"),
    "access_granted": ("granted", "good"),
    "report": ("report", "bad"),
    "webhook_disabled": ("webhook", "bad"),
}


class Space(NamedTuple):
    """The room of a row: `narrow` has little more than a title's, `two_lines` a second line."""

    narrow: bool = False
    two_lines: bool = False


ROOMY = Space()


def row(one: InboxItem, now: float, space: Space = ROOMY) -> Item:
    """One row of the inbox; its key is the id."""
    word, role = REASONS[one.reason]
    number = f"#{one.subject.number}" if one.subject.number else ""
    full = _about(one)
    name = full.rpartition("/")[2] if space.narrow or space.two_lines else full
    short = name if len(name) <= NAME else f"…{name[1 - NAME :]}"
    done, title = happened(one), safe(said(one))
    text = f"{word} {full} {number} {title} {done}"
    unread: Part = ("● " if one.unread else "  ", "accent")
    about: Part = (f"{safe(short)}{number} ", "accent")
    if space.two_lines:
        when = ((f"{brief(one.updated_at, now)} ", "dim"),)
        below: tuple[Part, ...] = (("  ", "text"), (word, role), (f"  {safe(done)}" if done else "", "dim"))
        return Item(one.id, (unread, about, (title, "text")), when, text, below=below)
    if space.narrow:
        when = ((f"{brief(one.updated_at, now)} ", "dim"),)
        return Item(one.id, (unread, (f"{word} ", role), about, (title, "text")), when, text)
    what: Part = (f" · {safe(done)}" if done else "", "dim")
    left = (unread, (f"{word:<10}", role), about, (f" {title}", "text"), what)
    return Item(one.id, left, ((f"{ago(one.updated_at, now)} ", "dim"),), text)


def section_of(one: InboxItem) -> str:
    """Whether it waits for the account, is the account's own, or is only watched."""
    if one.reason in NEEDS_ME:
        return "Needs me"
    return "Watching" if one.reason in WATCHED else "Mine"


def sections(
    items: Sequence[InboxItem], now: float, space: Space = ROOMY, most: int | None = None
) -> list[Item]:
    """The rows by what they ask of the account, each section below its name and count; `most` of each."""
    found: list[Item] = []
    for name in SECTIONS:
        own = [one for one in items if section_of(one) == name]
        if own:
            found.append(Item(None, ((f"{name} ", "title"), (str(len(own)), "dim"))))
        found += [row(one, now, space) for one in own[:most]]
        if most is not None and len(own) > most:
            found.append(Item(None, ((f"  {len(own) - most} more: i", "dim"),)))
    return found


def _about(one: InboxItem) -> str:
    """OWNER/NAME, or the organisation that it is about."""
    return one.subject.title if one.repo is None else one.repo.full_name


def preview_item(panes: Panes, one: InboxItem) -> None:
    """Preview the issue, proposal or repository of a row."""
    from tui.screens.lists.glance import Glance
    from tui.screens.talk.previews import preview_talk

    number = one.subject.number
    if one.repo is None:
        panes.show_preview(one.id, safe(_about(one)), [((safe(said(one)), "text"),)])
    elif number is not None:
        preview_talk(panes, one.id, one.repo.id, one.subject.kind, number)
    else:
        words: Part = (safe(said(one)), "text")
        Glance(panes, one.id, one.repo.id, [(words,), (("", "text"),)]).begin()


def open_subject(svc: SvcApp, one: InboxItem) -> None:
    """Show the issue, proposal or repository of a row; of an organisation, how to answer."""
    if one.repo is None:
        return
    repo_id = one.repo.id
    opened: list[bool] = []

    def show(repo: Repo, at: float) -> None:
        from tui.screens.proposal.screen import ProposalScreen
        from tui.screens.repo import RepoScreen
        from tui.screens.talk.issue import IssueScreen

        if opened:
            return
        opened.append(True)
        number = one.subject.number
        if number is None:
            svc.push_screen(RepoScreen(repo))
        elif one.subject.kind == "proposal":
            svc.push_screen(ProposalScreen(repo, number))
        else:
            svc.push_screen(IssueScreen(repo, number))

    svc.load(reads.repo(repo_id), show)


class Inbox(SplitScreen):
    FOLLOWS_LATER = True
    LIST = "inbox"
    TWO_LINES = True
    WAITING = "…"
    ACTIONS = (
        Action("open", ("enter",), "open", "svc issue view {n}", footer=True),
        Action("done", ("x",), "done", "svc inbox done {item}", "signed_in", footer=True),
        Action("all_done", ("X",), "all done", "svc inbox done --all", "signed_in", footer=True),
        Action("undo", ("u",), "undo done", "svc inbox unread {item}", "signed_in"),
        *SPLIT_ACTIONS,
    )

    def __init__(self) -> None:
        super().__init__()
        self._items: list[InboxItem] = []
        self._undone: list[InboxItem] = []  # what `u` brings back

    def titled(self) -> tuple[Part, ...]:
        return ("Inbox ", "title"), (str(len(self._items)), "dim")

    def preview_of(self, key: Hashable) -> None:
        one = self._of(key)
        if one is not None:
            preview_item(self, one)

    def title_parts(self) -> Sequence[Part]:
        return ((" Inbox", "title"), (f"  {len(self._items)}", "dim"))

    def on_mount(self) -> None:
        super().on_mount()
        self.do_refresh()

    def do_refresh(self) -> None:
        self.svc.load(reads.inbox(), self._paint)

    def about(self) -> list[str]:
        known = self.svc.client.known(self.svc.repos)
        mine = [repo.id for repo in known[0]] if known is not None else []
        return [*(one.repo.id for one in self._items if one.repo is not None), *mine]

    def _paint(self, found: list[InboxItem], at: float) -> None:
        self._items = found
        self.listen()
        self.paint()

    def queue_changed(self) -> None:
        self.paint()

    def paint(self) -> None:
        now = self.svc.clock()
        rows = sections(self._items, now, Space(self.narrow, self.two_lines))
        if not rows:
            rows.append(Item(None, (("nothing new concerns you ✓  w opens a repository", "dim"),)))
        rows += [Item(None, ((f"⋯ queued  {words}", "warn"),)) for words in self.svc.queued("/inbox")]
        self.query_one("#inbox", Lines).show(sequence(rows))
        self.show_frame()
        self.rest()

    def _of(self, key: Hashable | None) -> InboxItem | None:
        return next((one for one in self._items if one.id == key), None)

    def do_done(self) -> None:
        one = self._of(self.query_one("#inbox", Lines).key)
        if one is not None:
            body = InboxState(state="done")
            self.svc.act(inboxes.UPDATE, body, about=_about(one), id=one.id)
            self._marked([one], "done; u undoes it")

    def do_all_done(self) -> None:
        """Mark what is listed, except what waits for an answer of the user's, after a question."""
        chosen = [one for one in self._items if one.reason not in NEEDS_ME]
        stays = len(self._items) - len(chosen)
        kept = f"; {stays} that need{'s' if stays == 1 else ''} you stay{'s' if stays == 1 else ''}"
        if not chosen:
            self.say("each of these waits for you; x marks one as done" if stays else "there is none", "warn")
            return

        def mark() -> None:
            self._mark(chosen, "done")
            self._marked(chosen, f"{len(chosen)} done{kept if stays else ''}; u undoes it")

        self.confirm(f"{len(chosen)} done{kept if stays else ''}?", mark)

    def do_undo(self) -> None:
        """Bring back what was marked last, read or unread as it was."""
        back, self._undone = self._undone, []
        if not back:
            self.say("nothing was marked as done here", "warn")
            return
        self._mark([one for one in back if one.unread], "unread")
        self._mark([one for one in back if not one.unread], "read")
        self.say(f"{len(back)} {'is' if len(back) == 1 else 'are'} back")

    def _mark(self, chosen: list[InboxItem], state: Literal["done", "read", "unread"]) -> None:
        for first in range(0, len(chosen), INBOX_MARKED):
            ids = [one.id for one in chosen[first : first + INBOX_MARKED]]
            self.svc.act(inboxes.UPDATE_ALL, InboxMarks(state=state, ids=ids), about="")

    def _marked(self, chosen: list[InboxItem], words: str) -> None:
        self._undone = chosen
        self.say(words)

    def on_lines_chosen(self, event: Lines.Chosen) -> None:
        one = self._of(self.listed.key)
        if one is not None and one.repo is None:
            name = safe(one.subject.title)
            if one.event == "invite.decline":
                self.say(f"{safe(said(one))} to {name}")
            else:
                self.say(f"{name} invites you: svc org invite accept, or svc org invite decline")
        elif one is not None:
            open_subject(self.svc, one)
