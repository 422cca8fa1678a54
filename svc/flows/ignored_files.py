"""Finds files that svc does not send, so that commands can report them. These are ignored files, files that
git tracks but svc's rules exclude, and files with names that other systems cannot store."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator

import msgspec

from localstore.core.ignore import matcher
from localstore.core.ignore.matcher import ALWAYS, BUILT_IN, OVER_GIT, Reason, Scope
from localstore.core.paths import case_collisions, portability, terminal_safe
from localstore.folder.link import FOLDER
from localstore.folder.walk_rules import LISTED, NESTED, is_utf8, rules_in
from localstore.sync.held_back import escape_pattern
from localstore.sync.working_copy import WorkingCopy
from svc.flows.stignore import read_otherwise

NOTED = "told"  # meta: what was said of this folder already
NOTED_MAX = 5000
BUILT_IN_RULE = "built-in "  # and the pattern
COMPARED = "git_index"  # meta: the index of git that was compared with the rules last, and those rules


class IgnoredFile(msgspec.Struct, frozen=True):
    """An ignored file or folder. The path of a folder ends in `/`. `rule` is the rule that ignores it. `keep`
    is the line to add to `.svcignore` so that the file is no longer ignored. It is "" if the rule is in
    `.svcignore` itself, where the rule can be deleted."""

    path: str
    rule: str
    keep: str

    @property
    def built_in(self) -> bool:
        """Whether the rule is part of svc. Other rules come from a file in the folder."""
        return self.rule.startswith(BUILT_IN_RULE)


def find_ignored(copy: WorkingCopy) -> Iterator[IgnoredFile]:
    """Yields every ignored file with its rule. A folder that is ignored as a whole is one item."""
    copy.files.forget()
    fd = os.open(copy.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield from _ignored_in(copy, fd, "", None)
    finally:
        os.close(fd)


def _ignored_in(copy: WorkingCopy, fd: int, prefix: str, above: Scope | None) -> Iterator[IgnoredFile]:
    with os.scandir(fd) as entries:
        listed = sorted(entries, key=lambda entry: entry.name)
    names = {entry.name for entry in listed}
    if prefix and not names.isdisjoint(NESTED):
        return
    rules = rules_in(fd, prefix, names)
    scope = above.enter(prefix[:-1].rpartition("/")[2], rules) if above else matcher.root(rules)
    for entry in listed:
        path, folder = prefix + entry.name, entry.is_dir(follow_symlinks=False)
        if not is_utf8(path):
            continue
        tracked = copy.tracked.tracks_below(path) if folder else copy.tracked.tracks(path)
        if folder and (not scope.prune(entry.name) or tracked):
            yield from _ignored_below(copy, fd, entry.name, path, scope)
            continue
        reason = scope.explain(entry.name, folder)
        if reason is not None and reason.ignored and not tracked and reason.source != ALWAYS:
            yield _left_out(path + "/" * folder, reason)


def _ignored_below(copy: WorkingCopy, fd: int, name: str, path: str, scope: Scope) -> Iterator[IgnoredFile]:
    """Yields the ignored files and folders below the folder `name`. The folder that contains it is open as
    `fd`. `path` is its path from the root, and `scope` has the ignore rules that apply there. Yields nothing
    if the folder `name` cannot be opened."""
    try:
        opened = os.open(name, LISTED, dir_fd=fd)
    except OSError:
        return
    try:
        yield from _ignored_in(copy, opened, path + "/", scope)
    finally:
        os.close(opened)


def _left_out(path: str, reason: Reason) -> IgnoredFile:
    if reason.source == BUILT_IN:
        rule = BUILT_IN_RULE + reason.pattern
    else:
        where = f"{reason.base}/{reason.source}" if reason.base else reason.source
        rule = f"{where}:{reason.line} {reason.pattern}"
    keep = "" if reason.source == ".svcignore" else terminal_safe(_line_for(path))
    return IgnoredFile(terminal_safe(path), terminal_safe(rule), keep)


def _line_for(path: str) -> str:
    """Return the line of `.svcignore` that includes exactly this path."""
    return "!/" + escape_pattern(path)


def tracked_by_git(copy: WorkingCopy) -> list[IgnoredFile]:
    """Return the files that git tracks but a rule of `.svcignore` or `.stignore` excludes from svc."""
    copy.git.refresh()
    files = [
        _left_out(path, reason)
        for path, reason in copy.git.left_out()
        if reason.source != ALWAYS and not copy.db.tracks(path) and copy.exists(path)
    ]
    copy.files.forget()
    return files


def newly_tracked_by_git(copy: WorkingCopy) -> list[IgnoredFile]:
    """Return the files of `tracked_by_git` that were not reported before. Returns [] without looking if git's
    list of files and the ignore files in the top folder are unchanged."""
    copy.git.refresh()
    compared = f"{copy.git.identity.hex()} {' '.join(_stat_of(copy, name) for name in OVER_GIT)}"
    if not copy.git.identity or copy.db.text(COMPARED) == compared:
        return []
    files = tracked_by_git(copy)
    fresh = _not_noted_before(copy, [f"git {file.path}" for file in files])
    copy.db.put(COMPARED, compared)
    return [file for file in files if f"git {file.path}" in fresh]


def _stat_of(copy: WorkingCopy, name: str) -> str:
    info = copy.files.stat(name)
    return f"{info.st_mtime_ns}/{info.st_size}" if info else "-"


def index_warnings(copy: WorkingCopy) -> list[str]:
    """Return a warning if git's index cannot be read, and one if git tracks `.svc/`. Each warning is returned
    only once."""
    fault = copy.git.fault
    if copy.git.has_below(FOLDER) and _not_noted_before(copy, [f"git {FOLDER}"]):
        return [
            f"warning: git versions {FOLDER}, the link of this folder, and brings it to others; to end that: "
            f"git rm -r --cached {FOLDER}"
        ]
    if not fault or not _not_noted_before(copy, [f"index {fault}"]):
        return []
    return [f"warning: .git/index: {fault}; what git tracks and .gitignore names is left out"]


def syncthing_warnings(copy: WorkingCopy, command: str) -> list[str]:
    """Return a warning for each line of `.stignore` that Syncthing and svc read differently. Each warning is
    returned only once for each `command`, which is the name of the running command."""
    warnings = {f"{command} {line}": line for line in read_otherwise(copy)}
    fresh = _not_noted_before(copy, [*warnings]) if warnings else set()
    return [line for key, line in warnings.items() if key in fresh]


def warn_unportable(copy: WorkingCopy, new: Collection[str], there: Iterable[str]) -> list[str]:
    """Return a warning for each path in `new` that some systems cannot store. They may not allow its name, or
    they may confuse it with another path in `new` or `there` that differs only by case or Unicode form. Each
    warning is returned only once."""
    faults_by_path: dict[str, list[str]] = {}
    for path in new:
        faults_by_path[path] = portability(path)
    if new:
        for path, holder in case_collisions([*sorted({*there} - {*new}), *sorted(new)]).items():
            faults_by_path.setdefault(path, []).append(
                f"differs from '{terminal_safe(holder)}' in case or form alone"
            )
    warned = {path: faults for path, faults in faults_by_path.items() if faults}
    fresh = _not_noted_before(copy, [f"name {path}" for path in warned])
    return [
        f"warning: {terminal_safe(path)}: {'; '.join(faults)}; not every system can hold this name"
        for path, faults in sorted(warned.items())
        if f"name {path}" in fresh
    ]


def _not_noted_before(copy: WorkingCopy, texts: list[str]) -> set[str]:
    """Return the `texts` that were not reported to the user before, and record them as reported."""
    raw = copy.db.get(NOTED)
    noted = msgspec.json.decode(raw, type=list[str]) if isinstance(raw, bytes) else []
    fresh = {*texts} - {*noted}
    if fresh:
        copy.db.put(NOTED, msgspec.json.encode([*noted, *sorted(fresh)][-NOTED_MAX:]))
    return fresh
