"""Opens the screen that compares two branches, tags or seals, for a line such as `:diff main..topic`."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeVar

from localstore.core.errors import SvcError
from localstore.core.model.repo import Repo
from tui import contents
from tui.asked import AskedApp
from tui.client import Client
from tui.reads import Read
from tui.screens.base import READING_SECONDS, Base
from tui.screens.code.comparison import ComparedRef, Comparison

T = TypeVar("T")

SEAL = re.compile(r"[0-9a-f]{4,64}")  # the id of a seal, or its beginning
TWO = 2


def find_compared(client: Client, repo_id: str, word: str) -> ComparedRef | None:
    """Returns the branch, tag or seal that a word names, in this order. Returns None if it names none that
    has a seal, or if it is the beginning of several seals. Requests what it needs from the server, so call
    it on a thread. Raises the errors of these requests."""
    refs = _newest(client, contents.refs(repo_id))
    for kind in ("branch", "tag"):
        named = next((ref for ref in refs if (ref.type, ref.name) == (kind, word)), None)
        if named is not None:
            return ComparedRef(word, kind, named.head) if named.head is not None else None
    if SEAL.fullmatch(word) is None:
        return None
    seals = _newest(client, contents.seals_beginning(repo_id, word))
    return ComparedRef(seals[0].id[:8], "seal", seals[0].id) if len(seals) == 1 else None


def _newest(client: Client, read: Read[T]) -> T:
    """Returns the answer of the server or, if it gives none, the one that is cached. Raises the error of the
    request if there is neither."""
    try:
        return client.fetch(read)[0]
    except SvcError:
        cached = client.read_cached(read)
        if cached is None:
            raise
        return cached[0]


def two_in(words: Sequence[str]) -> tuple[str, str, str] | None:
    """Returns the two names in the words after `svc diff`, and the dots between them. The dots are "" if the
    names are two words. Returns None for anything else, such as options."""
    if any(word.startswith("-") for word in words):
        return None
    if len(words) == TWO:
        return words[0], words[1], ""
    parts = re.fullmatch(r"(.+?)(\.{2,3})([^.].*)", words[0]) if len(words) == 1 else None
    return (parts[1], parts[3], parts[2]) if parts is not None else None


def opens_comparison(
    app: AskedApp,
    screen: Base,
    words: Sequence[str],
    mend: Callable[[str, str], None],
    otherwise: Callable[[], None],
) -> bool:
    """Open the comparison that a line `:diff A..B` names, if both are branches, tags or seals of the
    repository that `screen` shows. `words`: those after `diff`. `mend`: called with a line and a hint if the
    two are not joined by dots. `otherwise`: called if the line means anything else. Returns False if that is
    clear at once; then it is not called."""
    repo, two = screen.subject()[0], two_in(words)
    folder = app.place.folder
    names_file = folder is not None and any((folder / word).exists() for word in words)
    if repo is None or two is None or names_file:
        return False
    old, new, dots = two

    def work() -> None:
        sides = None
        with suppress(SvcError):
            base, head = (find_compared(app.client, repo.id, name) for name in (old, new))
            sides = (base, head) if base is not None and head is not None else None
        app.later(lambda: finish(repo, sides))

    def finish(repo: Repo, sides: tuple[ComparedRef, ComparedRef] | None) -> None:
        if not screen.in_front:
            return
        screen.say("")
        if sides is None:
            screen.drop_keys()
            otherwise()
        elif dots:
            app.push_screen(Comparison(repo, *sides, direct=dots == ".."))
        else:
            screen.drop_keys()
            mend(f"diff {old}..{new}", f"two are compared as {old}..{new}")

    screen.hold_keys(READING_SECONDS)
    screen.say("◐ asking the server", "dim")
    app.run_worker(work, thread=True, group="comparing", exclusive=True, exit_on_error=False)
    return True
