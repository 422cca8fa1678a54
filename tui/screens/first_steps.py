"""Texts in place of missing rows. An empty list says why it is empty and which keys help. A preview says why
it could not be read."""

from __future__ import annotations

from collections.abc import Sequence

from localstore.core.errors import ServerUnreachable, Unauthorized
from tui.text import Part, fold, safe
from tui.wording import UNSEEN

KEY = 10  # columns of a key
SIGNED_OUT = "You are not signed in."
SIGN_IN = (
    (":login", "signs in: by a code that you type in a browser on any device, or by this machine's key"),
)
MAKE = (
    (":", "repo create NAME makes a repository"),
    (":", "repo init OWNER/NAME links this folder, push -m MESSAGE fills it"),
    ("w", "opens one that you may see"),
)
KEYS = (
    ("?", "the keys of the screen"),
    ("space", "all actions by name"),
    (":", "runs any command of svc"),
)


def steps(
    width: int, sentence: str, *groups: Sequence[tuple[str, str]], role: str = "title"
) -> list[tuple[Part, ...]]:
    """Returns a sentence and, below it, keys with what they do. Both are wrapped to `width` columns.
    `groups`: the groups of keys, with a blank row between them."""
    rows: list[tuple[Part, ...]] = [(("", "text"),), *_indent(fold([(sentence, role)], width - 4))]
    for group in groups:
        rows.append((("", "text"),))
        for key, words in group:
            lines = fold([(words, "text")], max(12, width - 4 - (KEY if key else 0)))
            if not key:
                rows += _indent(lines)
                continue
            names = [key, *[""] * (len(lines) - 1)]
            rows += [((f"  {name:<{KEY}}", "accent"), *line) for name, line in zip(names, lines, strict=True)]
    return rows


def first_seal(name: str) -> list[tuple[Part, ...]]:
    """Returns rows that say how files are sealed for the first time in the repository `name`."""
    return [
        (("Nothing is sealed here yet.", "title"),),
        (("", "text"),),
        (("In a folder with your files:", "text"),),
        (("", "text"),),
        (("  svc repo init ", "accent"), (safe(name), "accent")),
        (('  svc push -m "First seal"', "accent"),),
        (("", "text"),),
        (("What is pushed is shown here at once. ", "dim"), (":", "accent"), (" runs a command.", "dim")),
    ]


def missing(error: BaseException, width: int) -> list[tuple[Part, ...]]:
    """Returns rows that say why a preview could not be read. Without these, the preview would keep the
    content of another row. `width`: that of the preview."""
    if isinstance(error, Unauthorized):
        return fold([("Nothing is shown before the sign-in: ", "dim"), (":login", "accent")], width)
    if isinstance(error, ServerUnreachable):
        return fold([(UNSEEN, "dim")], width)
    return fold([("Its text was not read on this machine.", "dim")], width)


def _indent(rows: Sequence[tuple[Part, ...]]) -> list[tuple[Part, ...]]:
    return [(("  ", "text"), *row) for row in rows]
