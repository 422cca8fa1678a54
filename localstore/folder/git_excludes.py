"""Finds the files that git ignores only for this user: by the rules in `.git/info/exclude` and in the file of
`core.excludesFile`, by default git's `~/.config/git/ignore`. These rules are not part of a repository, so
svc does not ignore such files. But it sends new ones only after the user has confirmed a push.

git is not run, because a repository's configuration may name programs. So the settings of system, user and
repository are read here, with the files that `[include]` names. `[includeIf]` is not supported."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from localstore.core.ignore import matcher
from localstore.core.ignore.matcher import Reason, Scope
from localstore.core.model.limits import IGNORE_FILE_BYTES, MIB
from localstore.folder.git_index import find_index, read_small
from localstore.folder.rule_files import rules_of

_INCLUDES = 10  # files that one setting may lead through
_SECTION = re.compile(r'\[\s*([\w.-]+)(?:\s+"((?:[^"\\]|\\.)*)")?\s*\]\s*')
_SETTING = re.compile(r"([A-Za-z][A-Za-z0-9-]*)\s*(?:=\s*(.*))?")
_ESCAPES = {"t": "\t", "n": "\n", "b": "\b"}


class _Texts(NamedTuple):
    """The rules by which git ignores files only for this user. `exclude`: text of `.git/info/exclude`.
    `named`: name of the file to which git's setting `core.excludesFile` leads; `everywhere`: its text."""

    exclude: str
    named: str
    everywhere: str


class GitExcludes:
    """The rules of git that apply to the work tree `root` only for this user. `refresh` reads them."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._texts: _Texts | None = None
        self._scopes: dict[str, Scope] = {}

    def refresh(self) -> None:
        """Read the rules from disk again."""
        self._scopes = {}
        self._texts = _texts(self._root, os.environ)

    @property
    def active(self) -> bool:
        """Whether git has any rules that apply only for this user."""
        return self._texts is not None and any(
            line.strip() and not line.startswith("#")
            for text in (self._texts.exclude, self._texts.everywhere)
            for line in text.split("\n")
        )

    def reason(self, path: str) -> Reason | None:
        """The rule by which git ignores this file only for this user. None if there is no such rule."""
        if self._texts is None:
            return None
        at = path.find("/")
        while at >= 0:
            if (decision := self._decides(path[:at], True)) is not None:
                return decision
            at = path.find("/", at + 1)
        return self._decides(path, False)

    def _decides(self, path: str, is_dir: bool) -> Reason | None:
        folder, _, name = path.rpartition("/")
        scope = self._scope(folder)
        if not scope.is_ignored(name, is_dir):
            return None
        reason = scope.explain(name, is_dir)
        return (
            reason
            if reason is not None and reason.source in (matcher.GIT_EXCLUDE, matcher.GIT_EVERYWHERE)
            else None
        )

    def _scope(self, folder: str) -> Scope:
        scope = self._scopes.get(folder)
        if scope is None:
            above, _, name = folder.rpartition("/")
            rules = rules_of(self._root, folder, (".gitignore",))
            if folder:
                scope = self._scope(above).enter(name, rules)
            else:
                assert self._texts is not None  # noqa: S101 - `reason` asks only then
                scope = matcher.git_root(rules, self._texts.exclude, self._texts.everywhere)
            self._scopes[folder] = scope
        return scope

    @property
    def file_everywhere(self) -> str:
        """The path of the file to which git's setting `core.excludesFile` leads, for messages."""
        return self._texts.named if self._texts else ""


def _texts(root: Path, environment: Mapping[str, str]) -> _Texts | None:
    """The rules that git reads for the work tree `root` besides those that the repository contains. None if
    `root` has no `.git`. `environment`: the environment variables, which may move git's settings."""
    index = find_index(root)
    if index is None:
        return None
    common = _common(index.parent)
    exclude = _text(common / "info" / "exclude")
    named = ""
    for place in (*_user_settings(environment), common / "config"):
        for value in _excludes_files(place, environment):
            named = value
    if not named and (default := _user_folder(environment)) is not None:
        named = str(default / "git" / "ignore")
    everywhere = _text(root / _expand(named, environment)) if named else ""
    return _Texts(exclude, named, everywhere) if exclude or everywhere else None


def _common(git: Path) -> Path:
    """The git folder that all work trees of a repository share. `git`: the git folder of one work tree."""
    try:
        data = read_small(git / "commondir", 5000)
    except OSError:
        return git
    return git / os.fsdecode(data.strip()) if data else git


def _user_folder(environment: Mapping[str, str]) -> Path | None:
    if configured := environment.get("XDG_CONFIG_HOME"):
        return Path(configured)
    return Path(environment["HOME"]) / ".config" if environment.get("HOME") else None


def _user_settings(environment: Mapping[str, str]) -> Iterator[Path]:
    """Yields the files with git's settings for the system and the user, in git's order."""
    if not environment.get("GIT_CONFIG_NOSYSTEM"):
        yield Path("/etc/gitconfig")
    if "GIT_CONFIG_GLOBAL" in environment:
        yield Path(environment["GIT_CONFIG_GLOBAL"])
        return
    if (folder := _user_folder(environment)) is not None:
        yield folder / "git" / "config"
    if home := environment.get("HOME"):
        yield Path(home) / ".gitconfig"


def _text(path: Path) -> str:
    """The text of an ignore file; "" if it cannot be read or is too large."""
    try:
        data = read_small(path, IGNORE_FILE_BYTES)
    except OSError:
        return ""
    return (data or b"").decode("utf-8", "surrogateescape")


def _expand(value: str, environment: Mapping[str, str]) -> str:
    if value.startswith("~/") and environment.get("HOME"):
        return environment["HOME"] + value[1:]
    return value


def _excludes_files(place: Path, environment: Mapping[str, str]) -> list[str]:
    """The values of `core.excludesFile` in the settings file `place` and the files that it includes."""
    values: list[str] = []
    budget = [_INCLUDES]

    def read(file: Path) -> None:
        if budget[0] == 0:
            return
        budget[0] -= 1
        try:
            data = read_small(file, MIB)
        except OSError:
            return
        for section, key, value in _settings((data or b"").decode("utf-8", "surrogateescape")):
            if (section, key) == ("core", "excludesfile"):
                values.append(value)
            elif (section, key) == ("include", "path") and value:
                read(file.parent / _expand(value, environment))

    read(place)
    return values


def _settings(text: str) -> Iterator[tuple[str, str, str]]:
    """Yields (section, key, value) of each setting in the text of a settings file. If the setting is in a
    subsection, `section` ends with a dot."""
    section = ""
    for line in text.replace("\r\n", "\n").replace("\\\n", "").split("\n"):
        rest = line.strip()
        if (head := _SECTION.match(rest)) is not None:
            section = head[1].lower() + ("." if head[2] is not None else "")
            rest = rest[head.end() :]
        if (match := _SETTING.fullmatch(rest)) is not None:
            yield section, match[1].lower(), _value(match[2] or "")


def _value(written: str) -> str:
    """The value of a setting as git reads it: with quotes and escapes resolved, without comments and trailing
    spaces."""
    value, length, quoted, at = "", 0, False, 0
    while at < len(written):
        char = written[at]
        if char == "\\" and at + 1 < len(written):
            at += 1
            value += _ESCAPES.get(written[at], written[at])
            length = len(value)
        elif char == '"':
            quoted = not quoted
        elif char in "#;" and not quoted:
            break
        else:
            value += char
            length = len(value) if quoted or not char.isspace() else length
        at += 1
    return value[:length]
