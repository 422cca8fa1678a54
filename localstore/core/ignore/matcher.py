r"""Decides which files of a working copy are ignored, and by which line of which file.

The lines come from four sources; an earlier one has precedence: `.svcignore`, `.stignore`, `.gitignore` (each
in any folder, relative to it), then the built-in defaults. Within one source git's rules apply: deeper files
come first, the last matching line of a file wins, and nothing below an ignored directory is included again. A
line that matches a directory decides about everything below, until another line of its source decides.

The first source that decides about a path wins. So `.svcignore` can include paths below a directory that only
`.gitignore` ignores. Therefore a walk asks `prune` before it skips a directory.

Nothing is read here: a walk enters directories and passes the text of their ignore files.

    scope = root({".gitignore": "*.log\n"})
    scope.is_ignored("a.log", is_dir=False)        # True
    if not scope.prune("src"):
        inner = scope.enter("src", {".gitignore": "!keep.log\n"})"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache

import msgspec

from localstore.core.ignore.rules import Rule, Rules, Screen, SlashRule
from localstore.core.ignore.wildmatch import octets
from localstore.core.paths import RESERVED, TEMPORARY

SOURCES = (".svcignore", ".stignore", ".gitignore")  # file names, highest precedence first
OVER_GIT = SOURCES[:2]  # these leave out what git tracks too; `.gitignore` and the defaults do not, as in git
BUILT_IN = "built-in"
GIT_EXCLUDE, GIT_EVERYWHERE = ".git/info/exclude", "core.excludesFile"  # sources of `git_root`
ALWAYS = "always"  # the source of the verdict on metadata and temporary files: nothing re-includes them
DEFAULTS = (
    ".DS_Store",
    "Thumbs.db",
    "desktop.ini",
    "$RECYCLE.BIN/",
    "*.swp",
    "*.swo",
    "*.tmp",
    "*~",
    ".git/",
    ".hg/",
    ".svn/",
    ".idea/",
    ".vscode/",
    "node_modules/",
    ".npm/",
    ".yarn/",
    ".pnpm-store/",
    "dist/",
    "build/",
    "target/",
    ".venv/",
    "venv/",
    "__pycache__/",
    "*.pyc",
    ".pytest_cache/",
    ".mypy_cache/",
    ".ruff_cache/",
    "*.egg-info/",
    ".tox/",
    ".svc/",
    ".oxen/",
)


class Reason(msgspec.Struct, frozen=True):
    """The reason why an entry is ignored or included: the line of an ignore file that decided, and the path
    that the line matched. That path is the entry itself or a folder above it."""

    ignored: bool
    source: str  # a file name of SOURCES, BUILT_IN or ALWAYS
    base: str  # folder of that file
    line: int  # from 1; for BUILT_IN the place in DEFAULTS
    pattern: str  # as written, with its `!`
    path: str  # the entry that the line matched


class _Verdict(msgspec.Struct, frozen=True):
    rule: Rule
    path: str


class _Layer(msgspec.Struct, frozen=True):
    """The rules of one ignore file, seen from a folder. `reachable`: the rules with a slash that can still
    match something below this folder."""

    rules: Rules
    reachable: list[SlashRule]


_Layers = tuple[tuple[_Layer, ...], ...]  # for each source its files, deepest first
_Verdicts = tuple[_Verdict | None, ...]  # for each source what it says of the folder


class Scope:
    """The rules that apply inside one folder. `path`: the folder, `""` for the root."""

    __slots__ = ("_closed", "_deeper", "_inherited", "_layers", "_screen", "_silent", "_verdicts", "path")

    def __init__(
        self,
        path: str,
        layers: _Layers,
        verdicts: _Verdicts,
        closed: Reason | None,
        screen: Screen,
        deeper: bool,
    ) -> None:
        """Use `root`, `git_root` or `enter` to make a scope. `layers`: for each source of rules, its ignore
        files, the deepest first. `verdicts`: for each source, the line that decides about the folder itself,
        None if there is none. `closed`: the reason why everything in the folder is ignored, None if it is
        not. `screen`: a quick test of whether any rule may match a name. `deeper`: whether a rule with a
        slash can still match something below this folder."""
        self.path, self._layers, self._verdicts, self._closed = path, layers, verdicts, closed
        self._screen, self._deeper = screen, deeper
        decided = next(filter(None, verdicts), None)
        self._silent = closed is None and decided is None  # no rule speaks of the folder itself
        self._inherited = closed is not None or (decided is not None and not decided.rule.negated)

    def is_ignored(self, name: str, is_dir: bool) -> bool:
        """Whether an entry of this folder is ignored. A symlink counts as a file."""
        if not self._screen.passes(name):
            return self._inherited
        if self._closed or _is_reserved(name):
            return True
        text = octets(name)
        for at, inherited in enumerate(self._verdicts):
            rule = self._rule(at, inherited, text, is_dir)
            if rule is not None:
                return not rule.negated
        return False

    def prune(self, name: str) -> bool:
        """Whether a directory can be skipped: it is ignored, and no rule re-includes anything below it."""
        if self._silent and not self._screen.passes(name):
            return False
        if self._closed or _is_reserved(name):
            return True
        verdicts = self._all_verdicts(name, is_dir=True)
        if not any(verdicts):
            return False
        for layers, verdict in zip(self._layers, verdicts, strict=True):
            if verdict is not None:
                return not verdict.rule.negated
            if any(_may_reinclude(layer, _join(self.path, name)) for layer in layers):
                return False
        return False

    def enter(self, name: str, files: Mapping[str, str] | None = None) -> Scope:
        """The scope of the directory `name` of this folder. `files`: the text of each ignore file in that
        directory, by file name; they have no effect if the directory is ignored."""
        path = _join(self.path, name)
        if self._silent and not files and not self._deeper and not self._screen.passes(name):
            return Scope(path, self._layers, self._verdicts, None, self._screen, False)
        closed = self._closed or (_always(name, path) if _is_reserved(name) else None)
        verdicts = self._all_verdicts(name, is_dir=True)
        decided = next(filter(None, verdicts), None)
        added = {} if closed or not files or (decided and not decided.rule.negated) else files
        if not added and not self._deeper:
            return Scope(path, self._layers, verdicts, closed, self._screen, False)
        layers = tuple(
            _own_layer(added, source, path) + tuple(_narrow(layer, path) for layer in inherited)
            for source, inherited in zip((*SOURCES, BUILT_IN), self._layers, strict=True)
        )
        screen = _screen(layers) if added else self._screen
        return Scope(path, layers, verdicts, closed, screen, _deeper(layers))

    def explain(self, name: str, is_dir: bool) -> Reason | None:
        """The line of an ignore file that decides about an entry of this folder; None if no line matches."""
        path = _join(self.path, name)
        if self._closed or _is_reserved(name):
            return self._closed or _always(name, path)
        verdict = next(filter(None, self._all_verdicts(name, is_dir)), None)
        if verdict is None:
            return None
        rule = verdict.rule
        pattern = ("!" if rule.negated else "") + rule.pattern
        return Reason(not rule.negated, rule.source, rule.base, rule.line, pattern, verdict.path)

    def _all_verdicts(self, name: str, is_dir: bool) -> _Verdicts:
        if not self._screen.passes(name):
            return self._verdicts
        text, path = octets(name), _join(self.path, name)
        return tuple(
            inherited
            if (rule := self._rule(at, inherited, text, is_dir)) is None
            or (inherited and inherited.rule is rule)
            else _Verdict(rule, path)
            for at, inherited in enumerate(self._verdicts)
        )

    def _rule(self, at: int, inherited: _Verdict | None, name: str, is_dir: bool) -> Rule | None:
        """The line by which one source of rules decides about the entry `name` of this folder; None if it has
        no such line. `at`: the number of the source. `inherited`: the line of the source that decided about
        the folder. If that line ignores the folder, it also decides here. Otherwise the nearest ignore file
        with a matching line decides, and without one `inherited`."""
        if inherited is not None and not inherited.rule.negated:
            return inherited.rule
        for layer in self._layers[at]:
            path = _relative(self.path, layer.rules.base, name) if layer.reachable else name
            rule = layer.rules.last(name, path, is_dir, layer.reachable)
            if rule is not None:
                return rule
        return inherited.rule if inherited is not None else None


def root(files: Mapping[str, str] | None = None, built_in: bool = True) -> Scope:
    """The scope of the top folder of a working copy. `files`: the text of each ignore file in that folder, by
    file name. `built_in`: whether the built-in defaults apply."""
    defaults = (_layer(_defaults()),) if built_in else ()
    layers = (*(_own_layer(files or {}, source, "") for source in SOURCES), defaults)
    return Scope("", layers, (None,) * len(layers), None, _screen(layers), _deeper(layers))


def git_root(files: Mapping[str, str], exclude: str, everywhere: str) -> Scope:
    """The scope of the top folder as git sees it for one person: first the text of `.gitignore` in `files`
    (text by file name), then `exclude` (text of `.git/info/exclude`), then `everywhere` (text of the file of
    `core.excludesFile`)."""
    own = (_layer(Rules.parse(exclude, GIT_EXCLUDE)), _layer(Rules.parse(everywhere, GIT_EVERYWHERE)))
    layers: _Layers = ((), (), _own_layer(files, ".gitignore", ""), own)
    return Scope("", layers, (None,) * len(layers), None, _screen(layers), _deeper(layers))


def scope_of(folder: str, read: Callable[[str], Mapping[str, str]]) -> Scope:
    """The scope of any folder (`""` is the root). `read`: returns the text of each ignore file of a folder,
    by file name."""
    scope = root(read(""))
    for name in filter(None, folder.split("/")):
        scope = scope.enter(name, read(_join(scope.path, name)))
    return scope


def explain(path: str, is_dir: bool, read: Callable[[str], Mapping[str, str]]) -> Reason | None:
    """The line of an ignore file that decides about a path; None if no line matches, so that the path is
    included. `read`: as for `scope_of`."""
    folder, _, name = path.rpartition("/")
    return scope_of(folder, read).explain(name, is_dir)


@lru_cache(maxsize=1)
def _defaults() -> Rules:
    return Rules.parse("\n".join(DEFAULTS), BUILT_IN)


def _screen(layers: _Layers) -> Screen:
    return Screen(rule for source in layers for layer in source for rule in layer.rules.rules)


def _deeper(layers: _Layers) -> bool:
    return any(layer.reachable for source in layers for layer in source)


def _layer(rules: Rules) -> _Layer:
    return _Layer(rules, rules.paths)


def _own_layer(files: Mapping[str, str], source: str, base: str) -> tuple[_Layer, ...]:
    return (_layer(Rules.parse(files[source], source, base)),) if source in files else ()


def _narrow(layer: _Layer, path: str) -> _Layer:
    if not layer.reachable:
        return layer
    folders = _folders(path, layer.rules.base)
    return _Layer(layer.rules, [rule for rule in layer.reachable if rule.reaches(folders)])


def _may_reinclude(layer: _Layer, path: str) -> bool:
    if layer.rules.negates_names:
        return True
    folders = _folders(path, layer.rules.base)
    return any(candidate.rule.negated and candidate.reaches(folders) for candidate in layer.reachable)


def _folders(path: str, base: str) -> tuple[str, ...]:
    return tuple(octets(path[len(base) :].strip("/")).split("/"))


def _relative(folder: str, base: str, name: str) -> str:
    inner = folder[len(base) + 1 :] if base else folder
    return octets(inner) + "/" + name if inner else name


def _join(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


def _is_reserved(name: str) -> bool:
    return name[:1] == "." and (name.casefold() in RESERVED or TEMPORARY.fullmatch(name) is not None)


def _always(name: str, path: str) -> Reason:
    return Reason(True, ALWAYS, "", 1, name.casefold(), path)
