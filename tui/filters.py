"""Filters of the lists of issues and proposals, as users type them. They consist of the options of `issue
list` and `pr list`, and of free text.

    filter = parse("issues", 'state:closed label:"good first" author:ana stalls')
    filter.query   # IssueQuery(state="closed", label="good first", author="ana")
    filter.free    # "stalls"

An option is typed as NAME:VALUE, with quotes around a value that contains blanks. All other text is free
text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Literal, NamedTuple

import msgspec

from localstore.core.errors import UsageError
from localstore.core.model.issue import IssueQuery
from localstore.core.model.proposal import ProposalQuery
from localstore.core.validation import refusal

Kind = Literal["issues", "proposals"]
Query = IssueQuery | ProposalQuery
STATES: Mapping[str, tuple[str, ...]] = {
    "issues": ("open", "closed", "all"),
    "proposals": ("open", "closed", "merged", "all"),
}
WORDS: Mapping[str, tuple[str, ...]] = {
    "issues": ("state", "label", "author", "assignee"),
    "proposals": ("state", "label", "author", "assignee", "reviewer", "base", "head", "draft"),
}
PEOPLE = frozenset({"author", "assignee", "reviewer"})
_TOKEN = re.compile(r'(?:[^\s"]|"[^"]*"?)+')
_WORD = re.compile(r"([A-Za-z_-]+):(?!//)(.*)", re.DOTALL)


class Filter(NamedTuple):
    """A filter of a list. `query`: what the server filters by. `words`: the typed options, as values by name.
    `free`: the text that rows must contain."""

    query: Query
    words: dict[str, str]
    free: str

    @property
    def without_state(self) -> str:
        """Returns the filter as it is typed, without its state."""
        return " ".join(f"{name}:{_quote(value)}" for name, value in self.words.items() if name != "state")

    @property
    def typed(self) -> str:
        """Returns the filter as text, in the notation in which users type it."""
        return " ".join(
            [*(f"{name}:{_quote(value)}" for name, value in self.words.items()), *self.free.split()]
        )


def parse(kind: Kind, text: str, state: str = "open") -> Filter:
    """Returns the filter that a text describes. `state`: the state if the text names none. Raises UsageError
    for an unknown option, and for a value that an option does not accept."""
    words: dict[str, str] = {}
    free: list[str] = []
    for token in _TOKEN.findall(text):
        match = _WORD.fullmatch(token)
        if match is None:
            free.append(token.replace('"', ""))
            continue
        name, value = match[1].lower(), match[2].replace('"', "").strip()
        if name not in WORDS[kind]:
            names = " ".join(f"{word}:" for word in WORDS[kind])
            raise UsageError(f"{name}: is not a word of this filter; there are {names}")
        if not value:
            raise UsageError(f"{name}: needs a value, such as {name}:{_example(kind, name)}")
        if name == "state" and value not in STATES[kind]:
            raise UsageError(f"state: is one of {', '.join(STATES[kind])}, not {value}")
        words[name] = value.removeprefix("@") if name in PEOPLE and value != "@me" else value
    query = {"state": state, **words}
    if "draft" in query and query["draft"] not in ("yes", "no"):
        raise UsageError("draft: is yes or no")
    members = {name: value == "yes" if name == "draft" else value for name, value in query.items()}
    shape: type[IssueQuery] | type[ProposalQuery] = IssueQuery if kind == "issues" else ProposalQuery
    try:
        parsed = msgspec.convert(members, shape)
    except msgspec.ValidationError as error:
        raise UsageError(refusal(error, shape).detail) from None
    return Filter(parsed, words, " ".join(free))


def complete(kind: Kind, text: str, values: Callable[[str], Iterable[str]]) -> tuple[str, list[str]]:
    """Completes the last word of a filter. Returns the text with this word completed as far as all candidates
    agree, and the candidates. `values`: returns the values of an option, such as the labels of the
    repository."""
    before, typed = _split_last(text)
    name, colon, begun = typed.partition(":")
    if colon and name in WORDS[kind]:
        quoted = begun.removeprefix('"')
        offered = STATES[kind] if name == "state" else ("yes", "no") if name == "draft" else values(name)
        people = ("@me",) if name in PEOPLE else ()
        candidates = [
            f"{name}:{_quote(value)} "
            for value in dict.fromkeys((*people, *offered))
            if value.casefold().startswith(quoted.casefold())
        ]
    elif colon or '"' in typed:
        candidates = []
    else:
        candidates = [f"{word}:" for word in WORDS[kind] if word.startswith(typed)]
    if not candidates:
        return text, []
    shared = (
        candidates[0]
        if len(candidates) == 1
        else _find_common([candidate.rstrip('" ') for candidate in candidates])
    )
    return before + (shared if len(shared) > len(typed) else typed), [
        candidate.strip() for candidate in candidates
    ]


def _split_last(text: str) -> tuple[str, str]:
    """Splits a typed filter before its last word, which may be quoted. Returns (the text before that word,
    the word). The word is "" if the text ends with a blank."""
    tokens = list(_TOKEN.finditer(text))
    if not tokens or tokens[-1].end() != len(text):
        return text, ""
    return text[: tokens[-1].start()], tokens[-1].group()


def _find_common(names: list[str]) -> str:
    """Returns the longest beginning that all names have in common."""
    first, last = min(names), max(names)
    same = next((at for at, letter in enumerate(first) if last[at : at + 1] != letter), len(first))
    return first[:same]


def _quote(value: str) -> str:
    return f'"{value}"' if re.search(r"\s", value) else value


def _example(kind: str, name: str) -> str:
    if name in PEOPLE:
        return "@me"
    return {"state": STATES[kind][1], "draft": "yes"}.get(name, "NAME")
