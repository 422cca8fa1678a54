"""Formats the changes of seals for people: headings, line counts, patches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from localstore.core.model.history import ChangedFile, SealSummary
from localstore.core.paths import terminal_safe
from localstore.core.words import count, first_line
from svc.console import Out
from svc.console.table import cells

GRAPH_MIN, NAME_MIN = 10, 20  # columns
WIDTH = 80


def subject(message: str) -> str:
    """Return the first line of a message, safe for a terminal."""
    return terminal_safe(first_line(message))


def heading(seal: SealSummary, out: Out) -> str:
    """Return the id, author, time and message of a seal as text. For a merge the text also names its parents
    and merged seals."""
    who = seal.provenance.author or seal.provenance.who.handle or seal.provenance.who.id
    joined = " ".join(seal_id[:12] for seal_id in (*seal.parents[:1], *seal.merged))
    lines = [f"seal {seal.id}", *([f"Merge:  {joined}"] if seal.merged else [])]
    lines += [f"Author: {terminal_safe(who)}", f"Date:   {out.moment(seal.created_at)}", ""]
    lines += [f"    {terminal_safe(line)}".rstrip() for line in seal.message.strip().splitlines()]
    return "\n".join([*lines, ""])


def names(files: Sequence[ChangedFile]) -> str:
    """Return the new path of each file, one in each line."""
    return "".join(f"{file.path}\n" for file in files)


def patches(files: Sequence[ChangedFile], instead: Mapping[str, str] = MappingProxyType({})) -> str:
    """Return the changes of the files as text. `instead` maps the path of a file to a line that replaces its
    changes."""
    return "".join(
        f"{terminal_safe(instead[file.path])}\n"
        if file.path in instead
        else file.patch or _without_patch(file)
        for file in files
    )


def _without_patch(file: ChangedFile) -> str:
    moved = f"rename {file.old_path} → {file.path}\n" if file.old_path else ""
    if moved and file.similarity == 100:
        return moved
    return moved + f"{'Binary' if file.binary else 'Large'} files differ: {file.path}\n"


def stat(files: Sequence[ChangedFile], width: int = WIDTH) -> str:
    """Return the line counts of the files with a bar graph and totals, laid out like `git diff --stat` in
    `width` columns. "" if there are no files."""
    if not files:
        return ""
    titles = [_title(file) for file in files]
    counts = [_count(file) for file in files]
    number = max(map(len, counts))
    wide = min(max(map(cells, titles)), max(NAME_MIN, width - number - GRAPH_MIN - 5))
    most = max(file.additions + file.deletions for file in files)
    scale = min(1.0, max(GRAPH_MIN, width - wide - number - 5) / most) if most else 1.0
    lines = []
    for file, title, lines_changed in zip(files, titles, counts, strict=True):
        graph = _bar("+", file.additions, scale) + _bar("-", file.deletions, scale)
        lines.append(f" {_fit_title(title, wide)} | {lines_changed:>{number}} {graph}".rstrip())
    return "\n".join([*lines, f" {_sum(files)}", ""])


def _title(file: ChangedFile) -> str:
    if file.old_path is None:
        return terminal_safe(file.path)
    alike = f" ({file.similarity}%)" if file.similarity is not None else ""
    return terminal_safe(f"rename {file.old_path} → {file.path}{alike}")


def _count(file: ChangedFile) -> str:
    return "Bin" if file.binary else str(file.additions + file.deletions)


def _bar(mark: str, lines: int, scale: float) -> str:
    return mark * max(1, round(lines * scale)) if lines else ""


def _fit_title(title: str, wide: int) -> str:
    while cells(title) > wide:
        title = "…" + title[2:]
    return title + " " * (wide - cells(title))


def _sum(files: Sequence[ChangedFile]) -> str:
    added, removed = sum(file.additions for file in files), sum(file.deletions for file in files)
    parts = [f"{count(len(files), 'file')} changed"]
    if added or not removed:
        parts.append(f"{count(added, 'insertion')}(+)")
    if removed or not added:
        parts.append(f"{count(removed, 'deletion')}(-)")
    return ", ".join(parts)
