"""Everything that issues and proposals share: their sequence of numbers, labels, assignees and events."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from localstore.core import validation
from localstore.core.errors import Conflict, Invalid, NotFound
from localstore.core.model import limits
from localstore.core.model.base import Actor
from localstore.core.model.label import Label, LabelCreate
from localstore.core.model.rights import OPERATIONS
from localstore.core.numbers import whole_number
from relay.base.actors import to_actor
from relay.base.clock import now_ms
from relay.base.words import find_words
from relay.caller import View
from relay.db.collaboration import issue as rows
from relay.db.engine.database import Statement, Tx
from relay.domain.discussion import label as labels


@dataclass(slots=True, frozen=True)
class Subject:
    """An issue or a proposal, according to `kind`. `comments`: the number of its comments."""

    number: int
    kind: str
    state: str
    author_id: str
    comments: int = 0


async def find(tx: Tx, view: View, number: str) -> Subject:
    """Find the issue or proposal with this number. Raises NotFound."""
    row = await tx.one(rows.SUBJECT, of_repo=view.repo.id, of_number=number_of(number))
    if row is None:
        raise NotFound
    return Subject(*row)


def number_of(number: str) -> int:
    """Read the number of an issue or proposal from a path in a URL. Raises NotFound if the text is not a
    number."""
    n = whole_number(number)
    if not n or str(n) != number:
        raise NotFound
    return n


def require_operation(view: View, operation: str, author: str | None = None) -> None:
    """Raise Forbidden unless the table of rights allows the operation to this caller. `author`: the author of
    the issue or proposal, who may do what the table allows to authors."""
    may = OPERATIONS[operation]
    if may.author and author == view.me.account_id:
        return
    if may.least is not None:
        view.require(may.least)


async def next_number(tx: Tx, view: View) -> int:
    if await tx.run(rows.COUNT_UP, of_repo=view.repo.id) == 0:
        await tx.run(rows.FIRST, repo_id=view.repo.id, last=1)
    number = int(await tx.value(rows.LAST, of_repo=view.repo.id))
    if number > limits.ISSUES:
        raise Conflict(
            f"{view.repo.full_name} has {limits.ISSUES} issues and proposals, and no repository has more"
        )
    return number


async def insert(tx: Tx, view: View, kind: str, title: str, body: str) -> Subject:
    """Insert an open issue or proposal of the caller. Raises Conflict if the repository has as many as
    allowed."""
    now, me = now_ms(), view.me.account_id
    number = await next_number(tx, view)
    await tx.run(
        rows.INSERT,
        repo_id=view.repo.id,
        number=number,
        kind=kind,
        state="open",
        state_reason=None,
        title=title,
        body=body,
        author_id=me,
        comments=0,
        created_at=now,
        updated_at=now,
        closed_at=None,
    )
    subject = Subject(number, kind, "open", me)
    await tx.many(rows.WORD, _word_rows(view, subject, title, body))
    await take_part(tx, view, subject)
    await announce(tx, view, f"{kind}.create", number)
    return subject


async def take_part(tx: Tx, view: View, of: Subject) -> None:
    """Record the caller as a participant of the issue or proposal."""
    who = view.me.account_id
    if await tx.run(rows.POSTED, of_repo=view.repo.id, of_number=of.number, who=who) == 0:
        await _add_part(tx, view, of, who, posted=True)


async def set_state(tx: Tx, repo_id: str, number: int, state: str) -> None:
    """Copy the state of an issue or proposal into other tables, whose rows are used to filter lists by
    state."""
    for copied in (rows.LABEL_STATE, rows.PART_STATE, rows.WORD_STATE):
        await tx.run(copied, of_repo=repo_id, of_number=number, new_state=state)


# --- words


async def replace_words(tx: Tx, view: View, of: Subject, title: str, body: str) -> None:
    """Replace the words under which searches find the issue or proposal."""
    await tx.run(rows.WORDS_OFF, of_repo=view.repo.id, of_number=of.number)
    await tx.many(rows.WORD, _word_rows(view, of, title, body))


def _word_rows(view: View, of: Subject, title: str, body: str) -> list[dict[str, Any]]:
    shared = {"repo_id": view.repo.id, "number": of.number, "kind": of.kind, "state": of.state}
    return [{**shared, "word": word} for word in find_words(title, body)]


# --- labels


async def add_named_label(tx: Tx, view: View, of: Subject, name: str, create: bool) -> None:
    """Add a label to an issue or proposal. `create`: create the label if the repository lacks it."""
    if create and await labels.find(tx, view, name) is None:
        require_operation(view, "label.create")
        await labels.add(tx, view, validation.check_members(LabelCreate(name=name)))
    await add_labels(tx, view, of, [name])


async def add_labels(tx: Tx, view: View, of: Subject, names: list[str]) -> None:
    """Add labels to an issue or proposal. Raises Invalid for a label that the repository lacks, and Conflict
    for too many."""
    on = {label.name.casefold() for label in await _labels_on(tx, view, of.number)}
    for folded, name in {name.casefold(): name for name in names}.items():
        if folded in on:
            continue
        known_label = await labels.find(tx, view, name)
        if known_label is None:
            raise Invalid(
                f"{view.repo.full_name} has no label {name}; to make it: svc label create {shlex.quote(name)}"
            )
        on.add(folded)
        if len(on) > limits.ISSUE_LABELS:
            raise Conflict(f"#{of.number} has {limits.ISSUE_LABELS} labels, and no {of.kind} has more")
        values = {"repo_id": view.repo.id, "number": of.number, "folded": folded}
        await tx.run(rows.LABEL_ON, **values, kind=of.kind, state=of.state)
        await record_change(tx, view, f"{of.kind}.label", of.number, name=known_label.name)


async def remove_labels(tx: Tx, view: View, of: Subject, names: list[str]) -> None:
    for name in names:
        values = {"of_repo": view.repo.id, "of_number": of.number, "label": name.casefold()}
        if await tx.run(rows.LABEL_OFF, **values):
            await record_change(tx, view, f"{of.kind}.unlabel", of.number, name=name)


async def labels_of(tx: Tx, view: View, numbers: list[int]) -> dict[int, list[Label]]:
    on: dict[int, list[Label]] = {}
    for n, name, color, description in await tx.all(rows.LABELS, of_repo=view.repo.id, numbers=numbers):
        on.setdefault(n, []).append(Label(name=name, color=color, description=description))
    return on


async def _labels_on(tx: Tx, view: View, number: int) -> list[Label]:
    return (await labels_of(tx, view, [number])).get(number, [])


# --- people


async def assign(tx: Tx, view: View, of: Subject, handles: list[str]) -> None:
    """Assign accounts to an issue or proposal. Raises Invalid for an account without a role in the
    repository."""
    assigned = {row[1] for row in await tx.all(rows.ASSIGNEES, of_repo=view.repo.id, numbers=[of.number])}
    for handle in handles:
        who = await find_member(tx, view, handle, "/assignees")
        if who in assigned:
            continue
        assigned.add(who)
        if len(assigned) > limits.ASSIGNEES:
            raise Conflict(f"#{of.number} has {limits.ASSIGNEES} assignees, and no {of.kind} has more")
        values = {"of_repo": view.repo.id, "of_number": of.number, "who": who}
        if not await tx.run(rows.ASSIGNED, **values, is_assigned=True):
            await _add_part(tx, view, of, who, assigned=True)
        await record_change(tx, view, f"{of.kind}.assign", of.number, account_id=who)


async def unassign(tx: Tx, view: View, of: Subject, handles: list[str]) -> None:
    assigned = {row[1] for row in await tx.all(rows.ASSIGNEES, of_repo=view.repo.id, numbers=[of.number])}
    for handle in handles:
        who = await find_account(tx, view, handle)
        if who in assigned:
            values = {"of_repo": view.repo.id, "of_number": of.number, "who": who}
            await tx.run(rows.ASSIGNED, **values, is_assigned=False)
            await record_change(tx, view, f"{of.kind}.unassign", of.number, account_id=who)


async def assignees_of(tx: Tx, view: View, numbers: list[int]) -> dict[int, list[Actor]]:
    people: dict[int, list[Actor]] = {}
    for n, *who in await tx.all(rows.ASSIGNEES, of_repo=view.repo.id, numbers=numbers):
        people.setdefault(n, []).append(to_actor(*who))
    return people


async def find_member(tx: Tx, view: View, handle: str, pointer: str) -> str:
    """The id of the account with this handle. Raises Invalid unless it has a role in the repository."""
    who = await find_account(tx, view, handle)
    if who is None or await tx.one(rows.MEMBER, of_repo=view.repo.id, who=who) is None:
        raise Invalid(f"{handle} has no role in {view.repo.full_name}", pointer=pointer)
    return who


async def find_account(tx: Tx, view: View, handle: str) -> str | None:
    """The id of the account with this handle, None if there is none. "@me" means the caller."""
    if handle == "@me":
        return view.principal.account_id if view.principal else None
    account_id: str | None = await tx.value(rows.BY_HANDLE, handle=handle.lower())
    return account_id


async def _add_part(
    tx: Tx, view: View, of: Subject, who: str, posted: bool = False, assigned: bool = False
) -> None:
    values = {"repo_id": view.repo.id, "number": of.number, "account_id": who}
    await tx.run(rows.PART, **values, kind=of.kind, state=of.state, posted=posted, assigned=assigned)


# --- filters of lists


async def to_filters(tx: Tx, view: View, query: Any, people: tuple[str, ...]) -> dict[str, Any] | None:
    """Parameters for the filters of a list of issues or proposals; None if nothing can match. `people`: names
    of the fields of the query that name an account."""
    values: dict[str, Any] = {}
    if query.state != "all":
        values["state"] = query.state
    for name in people:
        handle = getattr(query, name)
        if handle is None:
            continue
        account_id = await find_account(tx, view, handle)
        if account_id is None:
            return None
        values[name] = account_id
    if query.label is not None:
        values["label"] = query.label.casefold()
    if query.search is not None:
        rarest = await _sort_rarest_first(tx, view, find_words(query.search, many=limits.SEARCH_WORDS))
        if not rarest:
            return None
        values |= dict(zip(rows.SEARCHES, rarest, strict=False))
    return values


async def find_leading_filter(
    tx: Tx,
    view: View,
    values: dict[str, Any],
    leaders: Sequence[str],
    amount: Callable[[str, bool], Statement],
) -> str:
    """Choose the filter that matches the fewest rows, because reading a list along its index is fastest.
    `leaders`: names of the filters that have an index. `values`: the filters of the request. `amount`:
    returns the statement that counts the rows of a filter. Returns "" if the request has no filter with an
    index."""
    names = [name for name in leaders if name in values]
    if len(names) < 2:
        return names[0] if names else ""
    stated = {"state": values["state"]} if "state" in values else {}
    counts = {
        name: await tx.value(
            amount(name, bool(stated)), of_repo=view.repo.id, **{name: values[name]}, **stated
        )
        for name in names
    }
    return min(names, key=counts.__getitem__)


async def _sort_rarest_first(tx: Tx, view: View, searched: list[str]) -> list[str]:
    """Sort the words of a search, rarest first. Returns [] if there are several words and one of them occurs
    nowhere."""
    if len(searched) < 2:
        return searched
    counts = {word: await tx.value(rows.HAVE_WORD, of_repo=view.repo.id, word=word) for word in searched}
    return sorted(searched, key=counts.__getitem__) if all(counts.values()) else []


# --- events


async def record_change(tx: Tx, view: View, kind: str, number: int, **data: Any) -> None:
    """Set the time of the last change of an issue or proposal to now, and write an event of this kind."""
    await tx.run(rows.TOUCH, of_repo=view.repo.id, of_number=number, now=now_ms())
    await announce(tx, view, kind, number, **data)


async def announce(tx: Tx, view: View, kind: str, number: int, **data: Any) -> None:
    await view.node.hub.announce(tx, view.repo.id, kind, number=number, **data)
