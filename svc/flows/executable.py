"""Sets the executable bits of files. The server does not store these bits, but `.svc.yaml` may list
executable files:

    executable: [scripts/run, "*.sh"]

A pattern without a slash matches a name at any depth. A pattern with a slash matches a path from the root.
`*`, `?`, `[…]` and `**` work as in ignore files. Clone, pull and restore set the bit of the matching files
that they write. They never remove it, and change no other file."""

from __future__ import annotations

import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import msgspec

from localstore.core.errors import Invalid, TooLarge
from localstore.core.ignore.rules import Rule
from localstore.core.ignore.wildmatch import SPECIAL, octets
from localstore.core.model.limits import EXECUTABLE_LIST, MANIFEST_BYTES
from localstore.core.names import MANIFEST
from localstore.folder.writer import replace_file
from localstore.sync.working_copy import WorkingCopy

LINE_CHARS = 200  # that one pattern may have in the manifest
KEY = "executable"
UNMARKED = "unmarked"  # 1 while files may lack a bit that the manifest gives them


class Executable(msgspec.Struct):
    """The executable files of a folder. `listed` are the files that `.svc.yaml` lists, `unlisted` the other
    executable files. `unfit` are files whose names cannot be listed. `written` says whether `.svc.yaml` was
    changed."""

    listed: list[str] = msgspec.field(default_factory=list)
    unlisted: list[str] = msgspec.field(default_factory=list)
    unfit: list[str] = msgspec.field(default_factory=list)
    written: bool = False


@contextmanager
def marking(copy: WorkingCopy, needed: bool = True) -> Iterator[None]:
    """A context for writing files and then setting their executable bits (`mark`). If the process is killed
    inside the context, the next command sets the missing bits, because a note in the record says so.

    `needed` is False if `.svc.yaml` is not among the files to write. Then the note is made only if the
    present `.svc.yaml` lists executable files."""
    noted = needed or _listed_by_manifest(copy) is not None
    if noted:
        copy.db.put(UNMARKED, 1)
    yield
    if noted:
        copy.db.put(UNMARKED, None)


def mark(copy: WorkingCopy, paths: Iterable[str]) -> None:
    """Set the executable bit of those files among `paths` that `.svc.yaml` lists. Whoever may read a file may
    then execute it."""
    listed = _listed_by_manifest(copy)
    if listed is not None:
        for path in paths:
            if listed(path):
                copy.files.make_executable(path)
        copy.files.forget()


def mark_interrupted(copy: WorkingCopy) -> None:
    """Set the executable bits of all files, if a command was killed between writing files and setting their
    bits."""
    if copy.db.number(UNMARKED):
        mark(copy, copy.entries)
        copy.db.put(UNMARKED, None)


def find_unlisted(copy: WorkingCopy, paths: Iterable[str]) -> list[str]:
    """Return the files among `paths` that are executable here but not listed in `.svc.yaml`, sorted."""
    listed = _listed_by_manifest(copy)
    unlisted_paths = [path for path in paths if not (listed and listed(path)) and _is_executable(copy, path)]
    copy.files.forget()
    return sorted(unlisted_paths)


def executable(copy: WorkingCopy, write: bool) -> Executable:
    """Return the executable files of the folder. With `write`, the files that `.svc.yaml` does not list are
    also added to it."""
    paths = sorted(copy.scan().files)
    result = Executable(unlisted=find_unlisted(copy, paths))
    listed = _listed_by_manifest(copy)
    if listed is not None:
        result.listed = [path for path in paths if listed(path) and _is_executable(copy, path)]
    if write and result.unlisted:
        _write(copy, result)
    copy.files.forget()
    return result


def _is_executable(copy: WorkingCopy, path: str) -> bool:
    info = copy.files.stat(path)
    return info is not None and stat.S_ISREG(info.st_mode) and bool(info.st_mode & stat.S_IXUSR)


def _listed_by_manifest(copy: WorkingCopy) -> Callable[[str], bool] | None:
    """Return a function that says whether `.svc.yaml` lists a path as executable. Returns None if `.svc.yaml`
    lists no files or cannot be read."""
    data = copy.files.read_up_to(MANIFEST, MANIFEST_BYTES)
    if data is None or KEY.encode() not in data:
        return None
    from localstore.core.manifest import parse  # loads a YAML reader

    try:
        patterns = parse(data).executable
    except Invalid:
        return None  # push reports this
    exact = {
        pattern.removeprefix("/") for pattern in patterns if "/" in pattern and SPECIAL.isdisjoint(pattern)
    }
    rules = [
        Rule(pattern, negated=False, line=0, source=MANIFEST, base="")
        for pattern in patterns
        if pattern.strip("/") and ("/" not in pattern or not SPECIAL.isdisjoint(pattern))
    ]

    def is_listed(path: str) -> bool:
        name = octets(path.rpartition("/")[2])
        return path in exact or any(rule.matches(name if rule.by_name else octets(path)) for rule in rules)

    return is_listed


def _write(copy: WorkingCopy, result: Executable) -> None:
    """Add the unlisted files to the list in `.svc.yaml`. Its other lines stay unchanged."""
    fit = [path for path in result.unlisted if path.isprintable() and len(path) < LINE_CHARS]
    result.unfit = sorted({*result.unlisted} - {*fit})
    old = copy.files.read_up_to(MANIFEST, MANIFEST_BYTES)
    from localstore.core.manifest import parse

    listed = parse(old).executable if old else ()
    patterns = [*listed, *("/" + _escape_pattern(path) for path in fit)]
    if len(patterns) > EXECUTABLE_LIST:
        raise TooLarge(
            f"{len(patterns)} files are executable, and {MANIFEST} lists at most {EXECUTABLE_LIST}; write "
            f"patterns there, such as `{KEY}: [bin/*]`"
        )
    new = _with_list((old or b"").decode("utf-8-sig"), patterns).encode()
    if parse(new).executable != tuple(patterns):
        raise Invalid(f"{MANIFEST} is written in a way that cannot be added to; list the files there by hand")
    replace_file(copy.folder / MANIFEST, new)
    result.written = True


def _escape_pattern(path: str) -> str:
    return "".join("\\" + char if char in "\\*?[]" else char for char in path)


def _with_list(text: str, patterns: list[str]) -> str:
    """Return the text of `.svc.yaml` with its list of executable files replaced by these patterns."""
    lines, inside = [], False
    for line in text.splitlines():
        if line.startswith(f"{KEY}:"):
            inside = True
        elif not (inside and (not line.strip() or line[0] in " \t-]#")):
            inside = False
            lines.append(line)
    quoted = [f"  - {msgspec.json.encode(pattern).decode()}" for pattern in patterns]
    return "\n".join([*lines, f"{KEY}:", *quoted]) + "\n"
