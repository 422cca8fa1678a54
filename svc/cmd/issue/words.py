"""Functions that commands on issues share. They read numbers and lists of names, and format columns."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Annotated, Any

import typer

from localstore.core.errors import NotFound, SvcError, UsageError
from localstore.core.model import proposal as proposals
from localstore.core.model.issue import REACTIONS, Issue
from localstore.core.model.repo import Repo
from localstore.core.paths import PROSE, terminal_safe
from svc.cmd.frame.context import Ctx
from svc.console import Column

LIST = "svc issue list"
QUALIFIER = r"(?<!\S)(?:label|author|assignee|state|is|in|sort|base|head|draft|reviewer):\S+"
Number = Annotated[str, typer.Argument(metavar="NUMBER", help="Its number, #12 or its address")]
Labels = Annotated[
    list[str] | None,
    typer.Option("-l", "--label", metavar="NAME", help='A label; several with commas, "a, b" is one'),
]
Assignees = Annotated[
    list[str] | None,
    typer.Option("-a", "--assignee", metavar="HANDLE", help="Who is to do it; @me is you"),
]
Web = Annotated[
    bool,
    typer.Option("-w", "--web", help="Open its page in a browser, or print the address"),
]


def handle_typed(typed: str) -> str | None:
    """Return the handle that the user typed for a filter, without its @; `@me` stays. None if it is empty."""
    return (typed if typed == "@me" else typed.removeprefix("@")) or None


def author(record: dict[str, Any]) -> str:
    who = record["author"]
    return str(who.get("handle") or who["id"])


def label_names(record: dict[str, Any]) -> list[str]:
    return [str(label["name"]) for label in record["labels"]]


def list_assignees(record: dict[str, Any]) -> list[str]:
    return [str(assignee.get("handle") or assignee["id"]) for assignee in record["assignees"]]


def count_reactions(record: dict[str, Any]) -> str:
    counts = record["reactions"]
    return ", ".join(f"{name} {counts[name]}" for name in REACTIONS if counts[name])


COLUMNS = (
    Column("number"),
    Column("title", kind="line"),
    Column("state", kind="state", spare=2),
    Column("labels", label_names, spare=3),
    Column("author", author, spare=1),
    Column("comments", spare=4),
    Column("updated_at", kind="time"),
)
ONE = (
    Column("number"),
    Column("title", kind="line"),
    Column("state", kind="state"),
    Column("state_reason"),
    Column("author", author),
    Column("assignees", list_assignees),
    Column("labels", label_names),
    Column("reacted", count_reactions),
    Column("comments"),
    Column("created_at", kind="time"),
    Column("updated_at", kind="time"),
    Column("closed_at", kind="time"),
)


def number_of(typed: str) -> str:
    """Return the number in `12`, `#12` or the address of an issue's page, as text. Raises UsageError for
    anything else."""
    match = re.fullmatch(r"(?:#|https?://\S*[/=])?([1-9][0-9]{0,17})", typed.strip())
    if match is None:
        raise UsageError(f"{typed} is not a number of an issue; see: {LIST}")
    return match[1]


def names_of(typed: list[str] | None) -> list[str]:
    """Return the names given to an option that can be repeated and takes several names separated by commas. A
    name that contains a comma is quoted, as in CSV. Raises UsageError if the quoting is wrong."""
    try:
        rows = [row for text in typed or [] for row in csv.reader([text], skipinitialspace=True)]
    except csv.Error:
        raise UsageError("names are separated by commas, on one line") from None
    return [name for row in rows for part in row if (name := part.strip())]


def label_of(typed: str) -> str | None:
    """Return the label that a list is filtered by. None if none was typed. Raises UsageError if several were
    typed."""
    names = names_of([typed])
    if len(names) > 1:
        quoted = terminal_safe(f"'\"{typed}\"'")
        raise UsageError(
            f"a list is of one label, and this names several: {terminal_safe(typed)}; a name with a comma is "
            f"quoted: {quoted}"
        )
    return names[0] if names else None


def handles_of(typed: list[str] | None) -> list[str]:
    return [name if name == "@me" else name.removeprefix("@") for name in names_of(typed)]


def alone(ctx: Ctx, beside: str) -> None:
    """Raise UsageError if `--queue` is given. It queues a single change, but this command also needs
    something else. `beside` names that thing in the error, such as "an editor". If `--queue` is not given,
    later errors of this command do not suggest it."""
    if ctx.obj.queues:
        raise UsageError(f"--queue keeps one change, without {beside} beside it")
    ctx.obj.can_queue = False


@contextmanager
def known_issue(ctx: Ctx, repo: Repo, number: str) -> Iterator[None]:
    """A context that explains why an issue was not found. If the server gave no reason for a NotFound, the
    error says instead that no issue has this number, or that the number belongs to a proposal."""
    try:
        yield
    except NotFound as error:
        if not error.bare:
            raise
        if _is_proposal(ctx, repo, number):
            raise NotFound(
                f"#{number} of {repo.full_name} is a proposal; see: svc pr view {number}"
            ) from None
        raise NotFound(f"{repo.full_name} has no issue #{number}; see: {LIST}") from None


def _is_proposal(ctx: Ctx, repo: Repo, number: str) -> bool:
    with suppress(SvcError):
        ctx.reader.send(proposals.GET, id=repo.id, n=number)
        return True
    return False


def format_title(issue: Issue) -> str:
    """Return the number and title of an issue for a sentence: `#12 (Title)`."""
    return f"#{issue.number} ({terminal_safe(issue.title)})"


def prose(text: str) -> str:
    """Return the text of an issue or comment for display, with every control and bidirectional character
    escaped."""
    return terminal_safe(text, keep=PROSE).rstrip()


def note_qualifier(ctx: Ctx, search: str) -> None:
    """Print a note if the search text has a qualifier of GitHub's search, such as `label:bug`. svc searches
    for it as an ordinary word."""
    match = re.search(QUALIFIER, search)
    if match is not None:
        ctx.out.note(
            f"--search looks for words, and {terminal_safe(match[0])} is one; choose by options, such as "
            "--label NAME, --author HANDLE and --state closed"
        )
