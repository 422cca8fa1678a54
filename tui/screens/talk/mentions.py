"""Completes people and numbers of issues and proposals in a text: `@al` to `@alice`, `#pool` to `#12`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from localstore.core.model.issue import IssueQuery
from localstore.core.model.proposal import ProposalQuery
from localstore.core.model.repo import Repo
from tui import contents
from tui.text import safe

if TYPE_CHECKING:
    from tui.asked import AskedApp

WORD = re.compile(r"(?:^|(?<=[\s(\[,;]))([@#])([\w.-]*)$")
TITLE = 28  # characters of a title beside its number
OFFERED = 6  # names that are shown while a word is typed


class Name(NamedTuple):
    """What a word can be completed to. `word`: it, with its sign. `words`: what it means."""

    word: str
    words: str = ""


def word_before(line: str) -> str:
    """Returns the word at the end of a line if it is about a person or a number, with its sign. Returns ""
    for other words."""
    match = WORD.search(line)
    return match[0] if match else ""


def known_names(svc: AskedApp, repo: Repo, people: Iterable[str]) -> list[Name]:
    """Returns the people, issues and proposals of a repository, as far as they are known on this machine.
    `people`: handles that are known from what is shown."""
    read: list[Any] = []
    collaborators = svc.client.read_cached(contents.collaborators(repo.id))
    roles = [them.account.handle for them in collaborators[0]] if collaborators is not None else []
    handles = dict.fromkeys([*people, repo.owner, *roles, svc.client.account])
    for cached in (
        svc.client.read_cached(contents.issues(repo.id, IssueQuery(state="open"))),
        svc.client.read_cached(contents.proposals(repo.id, ProposalQuery(state="open"))),
    ):
        read += cached[0] if cached is not None else []
    read.sort(key=lambda item: -item.number)
    names = [Name(f"@{handle}") for handle in handles if handle]
    return [*names, *(Name(f"#{item.number}", str(item.title)) for item in read)]


def matching_names(word: str, names: Sequence[Name]) -> list[Name]:
    """Returns the names to which a word can be completed. What is typed behind `#` is the beginning of a
    number, or words of a title."""
    typed = word.casefold()
    if typed.startswith("@"):
        return [name for name in names if name.word.casefold().startswith(typed) and name.word != word]
    return [
        name
        for name in names
        if name.word.startswith("#")
        and name.word != word
        and (name.word.startswith(typed) or (typed[1:] in name.words.casefold()))
    ]


def complete_word(word: str, names: Sequence[Name]) -> str:
    """Returns the first name that matches a word, with a blank behind it. Returns the word if none matches
    it."""
    matching = matching_names(word, names)
    return f"{matching[0].word} " if matching else word


def offer_names(word: str, names: Sequence[Name]) -> str:
    """Returns the first names that match a word, as a line of text."""
    matching = matching_names(word, names)[:OFFERED]
    return "   ".join(safe(f"{name.word} {name.words[:TITLE]}".rstrip()) for name in matching)
