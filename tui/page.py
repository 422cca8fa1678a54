"""A page of the line mode (the app as plain lines of text): lines to read, and numbered choices.

page_of(repo, "files", (), [Choice("README.md", open_file)])
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from localstore.core.model.repo import Repo
from tui.page_acts import Act, Missing, Offer

NO_FACTS: Mapping[str, str] = MappingProxyType({})


class Choice(NamedTuple):
    """One numbered line of a page. It can open another page, do something, or ask for a text (`asks`) and
    open the page that `page_for` returns for it. If all are None, it does nothing."""

    text: str
    page: Callable[[], Page] | None = None
    act: Act | None = None
    asks: Missing | None = None
    page_for: Callable[[str], Page] | None = None


class Page(NamedTuple):
    """A page of the line mode: a title, lines to read, and choices. `search`: returns the page for the text
    that the user types after `/`. If it is None, the text filters the choices or, in a `text`, finds the next
    line with it. `facts`: values for commands that are typed here, by name, such as the full name of the
    repository and the number of the issue. `commands`: command lines that are of use here. `words`: words
    of a search that take a value. `start`: the place of the line that is read first."""

    title: str
    lines: Sequence[str] = ()
    choices: Sequence[Choice] = ()
    search: Callable[[str], Page] | None = None
    text: bool = False
    facts: Mapping[str, str] = NO_FACTS
    commands: Sequence[str] = ()
    words: Sequence[str] = ()
    start: int = 0


def page_of(
    repo: Repo,
    title: str,
    lines: Sequence[str] = (),
    choices: Sequence[Choice] = (),
    search: Callable[[str], Page] | None = None,
    *,
    text: bool = False,
    commands: Sequence[str] = (),
    words: Sequence[str] = (),
    **more: str,
) -> Page:
    """Returns a page about a repository, to which the commands that are typed there belong. `more`: its facts
    other than the repository."""
    facts = {"repo": repo.full_name, **more}
    return Page(title, lines, choices, search, text, facts, commands, words)


def choices_of(offers: Iterable[Offer]) -> list[Choice]:
    return [Choice(words, act=act) for words, act in offers]
