"""Answers rows of the inbox that need an answer: invitations, requests for access, and transfers."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from localstore.core.model.access import AccessRequest, Invite
from localstore.core.model.inbox import InboxItem
from localstore.core.model.repo import Repo
from svc.flows.inbox_words import describe
from tui import contents, reads
from tui.screens.choose import Choose
from tui.screens.facts import fact_rows
from tui.text import Part, ago, safe
from tui.widgets.lines import Item

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tui.screens.lists.answered import Answered
    from tui.screens.split import Panes

Line = tuple[Part, ...]
FACT_NAME, FACT_WIDTH = (
    "dim",
    14,
)  # role of the name of a fact, and its columns in a preview
BLANK: Line = (("", "text"),)
HIDDEN: Line = (("its files are shown once you have accepted", "dim"),)
Fact = Item  # a row of the column of facts
OPEN = "open the repository"
DAY = 86_400
ASKED = {"invite.create": "invited by", "access.request": "asked by", "transfer.create": "offered by"}
ASKS = {"invite.create": "repo invite {}", "transfer.create": "repo transfer-{}"}  # event → command


def answers_to(item: InboxItem) -> dict[str, list[str]]:
    """Returns the possible answers to a row of the inbox. Each comes with the words of the svc command that
    gives it. Returns {} if the row needs no answer."""
    event, repo = item.event or "", item.repo
    if repo is None:
        commands = {"accept": "org invite accept", "decline": "org invite decline"}
        about = [item.subject.title]
        asks = event == "invite.create"
    elif event == "access.request":
        commands = {"grant": "repo access grant", "decline": "repo access decline"}
        handle = item.actor.handle if item.actor is not None else None
        about, asks = [handle or "", "-R", repo.full_name], handle is not None
    else:
        commands = {answer: ASKS.get(event, "").format(answer) for answer in ("accept", "decline")}
        about, asks = [repo.full_name], event in ASKS
    return {answer: [*command.split(), *about] for answer, command in commands.items()} if asks else {}


def read_offer(panes: Panes, item: InboxItem, paint: Callable[[list[Line], list[Fact]], None]) -> None:
    """Call `paint` with rows about the role that a row of the inbox offers or asks for, and with the note of
    the person who asks. Its second argument are facts about the offer. `paint` is first called with what the
    row of the inbox says, and again once the server has answered."""
    repo, actor = item.repo, item.actor
    now = panes.front.svc.clock()
    who: Line = (
        (f"@{safe((actor and actor.handle) or '?')}", "person"),
        (f"  {ago(item.updated_at, now)}", "dim"),
    )
    about = ("organisation", item.subject.title) if repo is None else ("repository", repo.full_name)
    first_facts = [
        *fact_rows(about[0], [(safe(about[1]), "accent")]),
        *fact_rows(ASKED.get(item.event or "", "from"), who),
    ]
    paint([], first_facts)
    if repo is None or actor is None:
        return

    def paint_request(requests: list[AccessRequest], at: float) -> None:
        for request in requests:
            if request.state == "pending" and request.account.id == actor.id:
                note = [("note  ", "dim"), (safe(request.note), "text")] if request.note else []
                facts = [*first_facts, *fact_rows("asks for", [(request.role, "accent")])]
                paint([_role("asks for", request.role), *([tuple(note)] if note else [])], facts)

    def paint_invite(invites: list[Invite], at: float) -> None:
        for invite in invites:
            if invite.state == "pending" and invite.repo.id == repo.id:
                facts = [*first_facts, *fact_rows("role", [(invite.role, "accent")]), *_ends(invite, now)]
                paint([_role("offers", invite.role)], facts)

    load = panes.front.svc.load
    if item.event == "access.request":
        load(contents.access_requests(repo.id), paint_request, lambda error: None)
    elif item.event == "invite.create":
        load(contents.my_invites(), paint_invite, lambda error: None)


def preview_offer(panes: Panes, item: InboxItem, title: str, words: Sequence[Line]) -> None:
    """Show the preview of an invitation or a transfer: what is offered, and below it the repository, as
    far as the account may see it. `title`: what it is about. `words`: rows at the top."""
    from tui.screens.lists.glance import Glance

    repo = item.repo
    lines: list[Line] = []
    facts: list[Fact] = []
    visible: list[Repo] | None = None  # once the server has said whether the account may see it

    def show() -> None:
        if visible:
            Glance(panes, item.id, visible[0].id, [*lines, BLANK], None, facts).begin()
        else:
            panes.show_preview(
                item.id, title, [*lines, *([BLANK, HIDDEN] if visible is not None else [])], facts
            )

    def paint_offer(rows: list[Line], offered: list[Fact]) -> None:
        nonlocal lines, facts
        lines, facts = [*words, *(rows if panes.facts_shown else in_lines(offered))], offered
        show()

    def paint_repo(answer: list[Repo], at: float) -> None:
        nonlocal visible
        if answer != visible:
            visible = answer
            show()

    read_offer(panes, item, paint_offer)
    if repo is not None:
        panes.front.svc.load(reads.offered_repo(repo.id), paint_repo, lambda error: None)


def in_lines(facts: Sequence[Fact]) -> list[Line]:
    """Returns facts as rows of a preview, for screens without room for the column of facts. The name of a
    fact stands before its values."""
    rows: list[Line] = []
    name = ""
    for fact in facts:
        text = "".join(part for part, _ in fact.left).strip()
        if not text:
            continue
        if fact.left[0][1] == FACT_NAME:
            name = text
            continue
        rows.append(((f"{name:<{FACT_WIDTH}}", "dim"), *fact.left))
        name = ""
    return rows


def _ends(invite: Invite, now: float) -> list[Fact]:
    """Returns rows that say how long an invitation can be answered."""
    seconds = datetime.fromisoformat(invite.expires_at).timestamp() - now
    days, hours = int(seconds // DAY), int(seconds % DAY // 3600)
    words = f"{days} day{'' if days == 1 else 's'}" if days else f"{hours} h" if hours else "less than 1 h"
    lasts: Part = (f"{words} left", "text" if days else "warn") if seconds > 0 else ("over", "bad")
    return fact_rows("stands until", [(invite.expires_at[:10], "text")], [lasts])


def _role(verb: str, role: str) -> Line:
    return ((f"{verb} the role ", "text"), (role, "accent"))


def ask_for_answer(screen: Answered, item: InboxItem, open_repository: Callable[[], None]) -> bool:
    """Let the user choose an answer to a row of the inbox, and run the svc command that gives it.
    `open_repository`: called if the user chooses to see the repository instead. Returns False if the row
    needs no answer."""
    if item.id in screen.given:
        words, role = screen.given[item.id]
        if role == "good" and item.repo is not None:
            open_repository()
        else:
            screen.say(words, "dim")
        return True
    answers = answers_to(item)
    if not answers:
        return False

    def chosen(answer: str) -> None:
        if answer == OPEN:
            open_repository()
        else:
            screen.give(item, answer, answers[answer])

    about = item.subject.title if item.repo is None else item.repo.full_name
    labels = [*answers, *([OPEN] if item.event == "access.request" else [])]  # what is offered may be hidden
    rows = [Item(label, ((label, "text"),)) for label in labels]
    screen.app.push_screen(Choose(f"{safe(about)}: {safe(describe(item))}", rows, chosen))
    return True
