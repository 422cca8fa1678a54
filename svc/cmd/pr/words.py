"""Functions that commands on proposals share. They find the proposal, read lists of names, and format
columns."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from localstore.core.errors import UsageError
from localstore.core.model.proposal import Proposal
from localstore.core.model.repo import Repo
from localstore.core.paths import terminal_safe
from localstore.core.words import state_of_proposal
from svc.cmd.frame.context import Ctx
from svc.cmd.issue.words import author, count_reactions, label_names, list_assignees
from svc.console import Column
from svc.flows.place.known_subjects import listing, store_base
from svc.flows.proposal import finding
from svc.flows.proposal.finding import ProposalPlace

Number = Annotated[
    str,
    typer.Argument(
        metavar="[NUMBER|BRANCH]", help="Its number, address or branch; else this folder's branch"
    ),
]
Named = Annotated[str, typer.Argument(metavar="NUMBER|BRANCH", help="Its number, address or branch")]
Reviewers = Annotated[
    list[str] | None,
    typer.Option("-r", "--reviewer", metavar="HANDLE", help="Ask for a review; several with commas"),
]


def state(record: dict[str, Any]) -> str:
    return state_of_proposal(record["state"], record["draft"])


def branches(record: dict[str, Any]) -> str:
    return f"{head_of(record)} → {record['base']}"


def head_of(record: dict[str, Any]) -> str:
    """Return the name of the proposed branch. If the branch is in another repository, it is written
    OWNER:BRANCH. `record` has the fields of the proposal."""
    if not record["cross_repository"]:
        return str(record["head"])
    there = record["head_repo"]
    return f"{there['full_name'].partition('/')[0] if there else '?'}:{record['head']}"


def list_reviewers(record: dict[str, Any]) -> list[str]:
    """Return each reviewer with their verdict, such as `bob approve (stale)`. A verdict is stale if the
    change was edited after it."""
    return [
        f"{reviewer['who'].get('handle') or reviewer['who']['id']} {reviewer['state']}"
        f"{' (stale)' if reviewer['stale'] else ''}"
        for reviewer in record["reviewers"]
    ]


def auto_merge(record: dict[str, Any]) -> str:
    """Return how a proposal will be merged automatically, and which account signed that, such as `squash by
    bob`. "" if it will not be merged automatically."""
    waiting = record["auto_merge"]
    return f"{waiting['strategy']} by {waiting['by'].get('handle') or waiting['by']['id']}" if waiting else ""


def _talk(counts: dict[str, int]) -> str:
    return ", ".join(f"{many} {state}" for state, many in counts.items() if many) or "none"


COLUMNS = (
    Column("number"),
    Column("title", kind="line"),
    Column("state", state, kind="state", spare=3),
    Column("branches", branches, spare=1),
    Column("reviewed", list_reviewers, spare=4),
    Column("author", author, spare=2),
    Column("updated_at", kind="time"),
)


def checks(record: dict[str, Any]) -> str:
    """Return how many checks of the proposal's newest version passed, failed and are pending, as words for a
    sentence."""
    count = record["checks"]
    counts = [f"{count[name]} {word}" for name, word in _COUNTED if count[name]]
    return ", ".join(counts)


_COUNTED = (("failed", "failed"), ("pending", "pending"), ("passed", "passed"))
CHECKED = Column("checks", checks)
ONE = (
    Column("number"),
    Column("title", kind="line"),
    Column("state", state, kind="state"),
    Column("branches", branches),
    Column("author", author),
    Column("reviewed", list_reviewers),
    Column("merge_state"),
    Column("conflicts"),
    Column("blocked_by"),
    Column("auto", auto_merge),
    Column("version"),
    Column("head_seal", kind="id"),
    Column("assignees", list_assignees),
    Column("labels", label_names),
    Column("reacted", count_reactions),
    Column("comments"),
    Column("threads", lambda one: _talk(one["threads"])),
    Column("depends_on"),
    Column("closes"),
    Column("created_at", kind="time"),
    Column("updated_at", kind="time"),
    Column("closed_at", kind="time"),
    Column("merged_seal", kind="id"),
)


def place_of(ctx: Ctx, *, session: bool = True) -> ProposalPlace:
    """Return the repository whose proposals the command is about. It is the repository named by -R, else the
    folder's repository or, if that is a fork, its parent. If `session` is False, no session is needed."""
    place = finding.place_of(ctx.obj, lambda: ctx.api if session else ctx.reader)
    if place.fork is not None:
        store_base(ctx.obj.home, place.fork.id, place.repo.id)
    return place


def say_place(ctx: Ctx, place: ProposalPlace) -> None:
    """Print a note, on a terminal, if proposals of a fork's parent are shown in the folder of the fork. The
    note names the parent."""
    if place.fork is not None and ctx.out.noted:
        ctx.out.note(f"proposals of {place.repo.full_name}{place.elsewhere}")


def find(ctx: Ctx, typed: str, *, session: bool = True) -> tuple[Repo, Proposal]:
    """Return the repository and the proposal that the user named. In the folder of a fork, the repository is
    the fork's parent, and a note says so. If `session` is False, no session is needed. Raises NotFound if
    there is no such proposal."""
    ctx.obj.can_queue &= finding.number_in(typed) is not None
    place = place_of(ctx, session=session)
    proposal = finding.find(ctx.obj, ctx.reader, place, typed)
    list(listing(ctx.obj.home, place.repo.id, [proposal]))
    if place.fork is not None and typed and finding.open_in_both(ctx.reader, place, proposal):
        fork = place.fork.full_name
        ctx.out.note(
            f"#{proposal.number} of {place.repo.full_name}; this folder's fork has an open "
            f"#{proposal.number} too: -R {fork}"
        )
    else:
        say_place(ctx, place)
    return place.repo, proposal


def number_of(ctx: Ctx, typed: str) -> tuple[Repo, str]:
    """Return the repository and the number of the proposal that the user named, for a command that changes
    it. With `--queue`, no server is asked, so the user must type a number. Raises UsageError for anything
    else."""
    if ctx.obj.queues:
        number = finding.number_in(typed)
        if number is None:
            raise UsageError("--queue asks no server; name the proposal by its number")
        return place_of(ctx).repo, number
    repo, proposal = find(ctx, typed)
    return repo, str(proposal.number)


def format_title(proposal: Proposal) -> str:
    """Return the number and title of a proposal for a sentence: `#12 (Title)`."""
    return f"#{proposal.number} ({terminal_safe(proposal.title)})"
