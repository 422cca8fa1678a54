"""Renders Markdown that commands print. On a terminal it looks as in the app; elsewhere it is printed as it
was written."""

from __future__ import annotations

from collections.abc import Sequence

from localstore.core.paths import PROSE, terminal_safe
from svc.console import Out

SECONDS = 2.0  # of CPU that one text may take; then it is shown as it was written
CODE = 0.2  # the same for the colours of one block of code
_CODES = {
    "heading": "1;36",
    "title": "1",
    "strong": "1",
    "emphasis": "3",
    "struck": "9",
    "code": "33",
    "link": "4",
    "person": "33",
    "accent": "36",
    "dim": "90",
    "gutter": "90",
    "quote": "90",
    "comment": "90",
    "keyword": "35",
    "string": "32",
    "number": "36",
    "name": "94",
}


def markdown(out: Out, text: str, *, breaks: bool = True) -> str:
    """Return the text rendered for a terminal, with colours and without control characters. For other outputs
    the text is returned unchanged. With `breaks`, each line break of the text stays a line break, as in
    comments; otherwise the lines of a paragraph are joined."""
    if not out.terminal or not out.signs or out.format.as_data:
        return terminal_safe(text, keep=PROSE).rstrip()
    from tui.markdown.page import Taste, render_markdown
    from tui.slices import within

    taste = Taste(breaks, None, targets=True)
    page = within(SECONDS, lambda: render_markdown(text, out.width, taste, _highlight))
    if page is None:
        return terminal_safe(text, keep=PROSE).rstrip()
    rows = []
    for row in page.rows:
        styled = (out.style(words, _CODES.get(role, "")) for words, role in row.parts)
        rows.append("".join(styled).rstrip())
    return "\n".join(rows)


def is_markdown(path: str) -> bool:
    """Return whether a file of this name is shown as Markdown."""
    return path.casefold().endswith((".md", ".markdown"))


def _highlight(text: str, language: str) -> Sequence[tuple[tuple[str, str], ...]] | None:
    from tui.highlight import colourable, with_roles
    from tui.lexing import lexer_for, roles_soon

    lexer = lexer_for(language) if colourable(text) else None
    roles = roles_soon(text, lexer, CODE) if lexer is not None else None
    return with_roles(roles) if roles is not None else None
