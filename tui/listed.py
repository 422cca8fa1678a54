"""Issues and proposals as lists need them: reduced to the fields that rows and filters use.

    as_rows(api.items(proposals.LIST, query, limit=10_000, id=repo_id), ListedProposal)

10,000 proposals take 6 MB in this form. As the server sends them they would take 21 MB."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, TypeVar

import msgspec

T = TypeVar("T")


class Person(msgspec.Struct, frozen=True, gc=False):
    handle: str | None = None


class Named(msgspec.Struct, frozen=True, gc=False):
    name: str


class Counts(msgspec.Struct, frozen=True, gc=False):
    """How many checks there are in all, and how many of them have passed, failed or are pending."""

    total: int = 0
    passed: int = 0
    failed: int = 0
    pending: int = 0


class Verdict(msgspec.Struct, frozen=True, gc=False):
    """The verdict of a reviewer of a proposal. `stale`: the proposal has been changed since the verdict."""

    who: Person
    state: Literal["requested", "approved", "changes_requested"]
    stale: bool = False


class OpenThreads(msgspec.Struct, frozen=True, gc=False):
    """How many threads of a proposal are open."""

    open: int = 0


class Signed(msgspec.Struct, frozen=True, gc=False):
    """A merge that is signed in advance, with its strategy."""

    strategy: str


class ListedIssue(msgspec.Struct, frozen=True, gc=False):
    number: int
    title: str
    state: Literal["open", "closed"]
    author: Person
    assignees: tuple[Person, ...]
    labels: tuple[Named, ...]
    comments: int
    updated_at: str


class ListedProposal(msgspec.Struct, frozen=True, gc=False):
    """A proposal as lists show it. `blocked_by`: why it cannot be merged, as the codes of the relay. It is
    None in what was stored without it."""

    number: int
    title: str
    state: Literal["open", "closed", "merged"]
    draft: bool
    author: Person
    assignees: tuple[Person, ...]
    labels: tuple[Named, ...]
    head: str
    base: str
    reviewers: tuple[Verdict, ...]
    checks: Counts
    comments: int
    merge_state: str
    updated_at: str
    auto_merge: Signed | None = None
    blocked_by: tuple[str, ...] | None = None
    threads: OpenThreads = OpenThreads()


def as_rows(resources: Iterable[Any], shape: type[T]) -> list[T]:
    """Converts resources of the server to the struct `shape`, whose fields have the same names."""
    return [msgspec.convert(resource, shape, from_attributes=True) for resource in resources]
