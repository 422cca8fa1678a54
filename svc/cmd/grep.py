"""The command `svc grep`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from itertools import groupby
from operator import itemgetter
from typing import Annotated, Any, Generic, TypeVar

import typer

from localstore.core.errors import EXIT_FAILED, UsageError
from localstore.core.paths import PROSE, terminal_safe
from localstore.core.words import count as count_of
from svc.cmd.frame.context import Ctx
from svc.cmd.frame.values import TYPED
from svc.console import Column, Out, answers
from svc.flows.search.context import Around, FoundLine, ShownLine, add_context
from svc.flows.search.lines import Pattern, compile_pattern, split_lines
from svc.flows.search.texts import SearchTexts

T = TypeVar("T")
PATH, NUMBER, MATCH = "36", "2", "1"  # SGR codes
LINES = (Column("path"), Column("line"), Column("text"))
COUNTS = (Column("path"), Column("count"))


@answers((*LINES, Column("count")))
def grep(
    ctx: Ctx,
    pattern: Annotated[str, typer.Argument(metavar="PATTERN", help="A regular expression, as of Python")],
    seal: Annotated[
        str, typer.Argument(metavar="[SEAL]", help="A branch, tag or seal; else this folder as it is")
    ] = "",
    paths: Annotated[
        list[str] | None, typer.Argument(metavar="[PATH]...", help="Only these files and folders")
    ] = None,
    fixed: Annotated[
        bool, typer.Option("-F", "--fixed-strings", help="PATTERN is plain text, without special characters")
    ] = False,
    ignore_case: Annotated[
        bool, typer.Option("-i", "--ignore-case", help="Upper and lower case are equal")
    ] = False,
    whole_words: Annotated[bool, typer.Option("-w", "--word-regexp", help="Only whole words match")] = False,
    names: Annotated[
        bool, typer.Option("-l", "--files-with-matches", "--name-only", help="Only the paths")
    ] = False,
    count: Annotated[bool, typer.Option("-c", "--count", help="How many lines of each file match")] = False,
    numbers: Annotated[
        bool, typer.Option("-n", "--line-number", help="With line numbers, as without this option")
    ] = False,
    after: Annotated[
        int | None,
        typer.Option("-A", "--after-context", min=0, metavar="N", help="With N lines after a match"),
    ] = None,
    before: Annotated[
        int | None,
        typer.Option("-B", "--before-context", min=0, metavar="N", help="With N lines before a match"),
    ] = None,
    context: Annotated[
        int, typer.Option("-C", "--context", min=0, metavar="N", help="With N lines before and after")
    ] = 0,
    limit: Annotated[
        int | None, typer.Option("-L", "--limit", min=1, metavar="N", help="At most this many")
    ] = None,
) -> None:
    """Search the lines of all files for a pattern

    In a linked folder the files are searched as they are on the disk, edits included: those that a push would
    send. No server is asked. With SEAL, the files of that seal are searched. With -R and no SEAL, those of
    the newest seal of the default branch. Outside of a linked folder -R is needed.

    A word after PATTERN that names a file here, or is a pattern such as '*.py', is a PATH. Words after -- are
    PATHs, too. Paths are printed as in the repository. Binary files are passed over, and their number is
    printed to stderr. Exits 1 if nothing matches.

    Examples:
    svc grep 'def [a-z_]+'
    svc grep -i todo src '*.md'
    svc grep -Fw 'a.b' v1.0
    svc grep -C 2 'raise NotFound' -- '*.py'
    svc grep main HEAD~2 -- src
    svc grep -l licence -R alice/notes
    svc grep todo --jq 'map(.path) | unique | .[]'
    """
    if names and count:
        raise UsageError("-l prints paths and -c counts; use one of them")
    around = Around(context if before is None else before, context if after is None else after)
    if any(around) and (names or count or ctx.out.format.as_data):
        raise UsageError("-A, -B and -C print lines around a match; leave them out with -l, -c and data")
    compiled = compile_pattern(pattern, fixed=fixed, ignore_case=ignore_case, whole_words=whole_words)
    texts = SearchTexts(ctx.obj, *_split(ctx, seal, paths or []))
    with closing(texts.read()) as files:
        matches: _Limited[Any]
        if count or names:
            matches = _Limited(_count(files, compiled, first=names), limit)
            _print_counts(ctx.out, matches, names)
        else:
            matches = _Limited(_find(files, compiled, any(around)), limit)
            _print_lines(ctx.out, matches, compiled, around)
    _note_skipped(ctx.out, texts.skipped)
    if matches.is_cut:
        ctx.out.note(f"only the first {limit} are printed, and more match; --limit N prints N")
    if not matches.passed:
        ctx.out.note("nothing matches")
        ctx.exit(EXIT_FAILED)


class _Limited(Generic[T]):
    """The first `limit` of some items; None means all. `passed` is how many were taken, and `is_cut` is
    whether there are more."""

    def __init__(self, items: Iterable[T], limit: int | None) -> None:
        self._items, self._limit = items, limit
        self.passed, self.is_cut = 0, False

    def __iter__(self) -> Iterator[T]:
        for item in self._items:
            if self.passed == self._limit:
                self.is_cut = True
                return
            self.passed += 1
            yield item


def _split(ctx: Ctx, seal: str, paths: list[str]) -> tuple[str, list[str]]:
    """Return SEAL and PATHs of the command line. Words after `--` are paths, unless PATTERN is after it,
    too."""
    words = [seal, *paths]
    typed = ctx.meta[TYPED]
    after = len(typed) - typed.index("--") - 1 if "--" in typed else 0
    if "--" in words:
        before, named = words[: words.index("--")], words[words.index("--") + 1 :]
    elif 0 < after <= len(words) and (seal or paths):
        before, named = words[:-after], words[-after:]
    else:
        return seal, paths
    if not before:
        return "", named
    return before[0], [*before[1:], *named]


def _find(files: Iterable[tuple[str, str]], pattern: Pattern, whole: bool) -> Iterator[FoundLine]:
    """Yields the lines that match; with `whole`, each with all lines of its file."""
    for path, text in files:
        lines: list[str] = []
        for line in pattern.lines_of(text):
            lines = lines or (split_lines(text) if whole else [])
            yield FoundLine(path, line, lines)


def _count(files: Iterable[tuple[str, str]], pattern: Pattern, *, first: bool) -> Iterator[tuple[str, int]]:
    """Yields (path, number of lines that match) of the files that match. With `first`, the number is 1,
    because a file is read only up to its first match."""
    for path, text in files:
        lines = pattern.lines_of(text)
        number = int(next(lines, None) is not None) if first else sum(1 for _ in lines)
        if number:
            yield path, number


def _print_counts(out: Out, matches: Iterable[tuple[str, int]], names: bool) -> None:
    if out.format.as_data:
        rows = ({"path": path, "count": number} for path, number in matches)
        out.rows(rows, COUNTS[:1] if names else COUNTS)
        return
    out.stream(f"{_path(out, path)}{'' if names else f':{number}'}\n" for path, number in matches)


def _print_lines(out: Out, matches: Iterable[FoundLine], pattern: Pattern, around: Around) -> None:
    if out.format.as_data:
        rows = ({"path": path, "line": line.number, "text": line.text} for path, line, _ in matches)
        out.rows(rows, LINES)
        return
    files = enumerate(groupby(matches, itemgetter(0)))
    if out.terminal:
        out.stream(
            ("\n" if at else "") + _block(out, path, add_context(matching, around), pattern)
            for at, (path, matching) in files
        )
    else:
        parting = "--\n" if any(around) else ""
        out.stream(
            (parting if at and not nth else "") + _plain_line(path, row)
            for at, (path, matching) in files
            for nth, row in enumerate(add_context(matching, around))
        )


def _plain_line(path: str, row: ShownLine | None) -> str:
    if row is None:
        return "--\n"
    sign = ":" if row.matches else "-"
    return f"{path}{sign}{row.line.number}{sign}{row.line.text}\n"


def _block(out: Out, path: str, rows: Iterable[ShownLine | None], pattern: Pattern) -> str:
    """Return the lines of one file, below its path, for a terminal."""
    return f"{_path(out, path)}\n{''.join(_terminal_line(out, row, pattern) for row in rows)}"


def _terminal_line(out: Out, row: ShownLine | None, pattern: Pattern) -> str:
    if row is None:
        return f"{out.style('--', NUMBER)}\n"
    number, text = row.line
    if row.matches:
        return f"{out.style(f'{number}:', NUMBER)}{_mark(out, text, pattern)}\n"
    return f"{out.style(f'{number}-', NUMBER)}{_safe(text)}\n"


def _mark(out: Out, text: str, pattern: Pattern) -> str:
    """Return a line for a terminal, with what matches in bold."""
    parts, at = list[str](), 0
    for start, end in pattern.spans_in(text) if out.colours else ():
        parts += [_safe(text[at:start]), out.style(_safe(text[start:end]), MATCH)]
        at = end
    return "".join([*parts, _safe(text[at:])])


def _safe(text: str) -> str:
    return terminal_safe(text, keep=PROSE)


def _path(out: Out, path: str) -> str:
    return out.style(terminal_safe(path), PATH) if out.terminal else path


def _note_skipped(out: Out, skipped: dict[str, int]) -> None:
    words = [
        count_of(skipped["binary"], "binary file") if "binary" in skipped else "",
        count_of(skipped["unreadable"], "unreadable file") if "unreadable" in skipped else "",
        f"{skipped['left out']} that a push skips (svc status lists them)" if "left out" in skipped else "",
    ]
    if skipped:
        out.note(f"not searched: {', '.join(word for word in words if word)}")
