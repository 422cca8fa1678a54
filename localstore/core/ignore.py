"""Which files of a working copy stay out of the repository, and why.

Four sources, highest precedence first: `.svcignore`, `.stignore`, `.gitignore` (each in any folder, relative
to it), then the built-in defaults. Inside one source git's rules hold: deeper files first, the last matching
line of a file wins, and nothing below an ignored directory comes back. A verdict on a directory holds for
everything below until the same source says otherwise. The first source with a verdict decides. So a higher
source can re-include below a directory that only a lower source ignores, which is why `prune` asks first.

Pure: a walker enters directories and hands in the text of their ignore files.

    scope = root({".gitignore": "*.log\\n"})
    scope.ignored("a.log", is_dir=False)        # True
    if not scope.prune("src"):
        inner = scope.enter("src", {".gitignore": "!keep.log\\n"})
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple

from localstore.core.errors import TooLarge
from localstore.core.limits import IGNORE_FILE_BYTES
from localstore.core.paths import RESERVED
from localstore.core.wildmatch import SPECIAL, expression, literal_length, octets

SOURCES = (".svcignore", ".stignore", ".gitignore")  # file names, highest precedence first
BUILT_IN = "built-in"
ALWAYS = "always"  # the source of the verdict on metadata folders, which nothing re-includes
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

Matcher = Callable[[str], object]


class Rule:
    """One line of an ignore file: `pattern` as written, without its `!`; `line` counts from 1."""

    __slots__ = ("_match", "base", "body", "directories_only", "line", "negated", "pattern", "source")

    def __init__(self, pattern: str, *, negated: bool, line: int, source: str, base: str) -> None:
        self.pattern, self.negated, self.line, self.source, self.base = pattern, negated, line, source, base
        self.directories_only = pattern.endswith("/")
        self.body = octets(pattern.removesuffix("/"))
        self._match: Matcher | None = None

    @property
    def by_name(self) -> bool:
        """Whether the pattern has no slash and so meets names at any depth."""
        return "/" not in self.body

    def matches(self, text: str) -> object:
        """Truthy if the octets of a name, or of a path below the rule's folder, match."""
        if self._match is None:
            source = expression(self.body.removeprefix("/"), pathname=not self.by_name)
            self._match = re.compile(source, re.DOTALL).fullmatch
        return self._match(text)


class _PathRule:
    """A rule with a slash, and where it can still apply: its literal leading folders, its depth."""

    __slots__ = ("depth", "folders", "position", "rule")

    def __init__(self, rule: Rule, position: int) -> None:
        body = rule.body.removeprefix("/")
        self.rule, self.position = rule, position
        self.folders = tuple(body[: literal_length(body)].split("/")[:-1])
        # `**` crosses folders; without it a pattern meets paths of one depth only.
        self.depth = None if "**" in body else body.count("/")

    def reaches(self, folders: tuple[str, ...]) -> bool:
        """Whether something in this folder (relative to the rule's own), or below it, may match."""
        if self.depth is not None and len(folders) > self.depth:
            return False
        shared = min(len(folders), len(self.folders))
        return folders[:shared] == self.folders[:shared]


class _NameTable:
    """The rules without a slash that can meet one kind of entry, by how they are looked up."""

    __slots__ = ("_globs", "_literals", "_suffix_text", "_suffixes")

    def __init__(self, rules: Iterable[tuple[int, Rule]]) -> None:
        self._literals: dict[str, int] = {}
        self._suffixes: list[tuple[int, str]] = []
        self._globs: list[tuple[int, Rule]] = []
        for position, rule in rules:
            if SPECIAL.isdisjoint(rule.body):
                self._literals[rule.body] = position
            elif rule.body[0] == "*" and SPECIAL.isdisjoint(rule.body[1:]):
                self._suffixes.append((position, rule.body[1:]))
            else:
                self._globs.append((position, rule))
        self._suffixes.reverse()
        self._globs.reverse()
        self._suffix_text = tuple(suffix for _, suffix in self._suffixes)

    def last(self, name: str) -> int:
        """Position of the last rule that matches the name, or −1."""
        best = self._literals.get(name, -1)
        if name.endswith(self._suffix_text):
            best = max(best, next(at for at, suffix in self._suffixes if name.endswith(suffix)))
        for position, rule in self._globs:
            if position < best:
                break
            if rule.matches(name):
                return position
        return best


class Rules:
    """The parsed lines of one ignore file in the folder `base` (`""` is the root)."""

    __slots__ = ("_tables", "base", "negates_names", "paths", "rules")

    def __init__(self, rules: list[Rule], base: str) -> None:
        self.rules, self.base = rules, base
        numbered = list(enumerate(rules))
        names = [(at, rule) for at, rule in numbered if rule.by_name]
        self._tables = (
            _NameTable((at, rule) for at, rule in names if not rule.directories_only),
            _NameTable(names),
        )
        self.negates_names = any(rule.negated for _, rule in names)
        self.paths = [_PathRule(rule, at) for at, rule in reversed(numbered) if not rule.by_name]

    @classmethod
    def parse(cls, text: str, source: str, base: str = "") -> Rules:
        """Read the text of an ignore file: every line is a rule or, as in git, means nothing. TooLarge when
        the text has more than IGNORE_FILE_BYTES characters."""
        if len(text) > IGNORE_FILE_BYTES:
            raise TooLarge(f"{_join(base, source)} is larger than {IGNORE_FILE_BYTES} bytes; shorten it")
        dialect = _stignore_line if source == ".stignore" else _same
        rules: list[Rule] = []
        for number, raw in enumerate(text.removeprefix("\ufeff").split("\n"), start=1):
            line = dialect(_trimmed(raw.removesuffix("\r").partition("\0")[0])) if raw[:1] != "#" else ""
            negated = line.startswith("!")
            pattern = line[negated:]
            if pattern and pattern != "/":
                rules.append(Rule(pattern, negated=negated, line=number, source=source, base=base))
        return cls(rules, base)

    def last(self, name: str, path: str, is_dir: bool, reachable: list[_PathRule]) -> Rule | None:
        """The last line that matches an entry: `name`, and `path` from the base, as octets."""
        best = self._tables[is_dir].last(name)
        for candidate in reachable:
            if candidate.position < best:
                break
            if (is_dir or not candidate.rule.directories_only) and candidate.rule.matches(path):
                return candidate.rule
        return self.rules[best] if best >= 0 else None


class _Screen:
    """A quick test over all rules in effect: a name that no rule's last segment can meet needs no more."""

    __slots__ = ("_globs", "_literals", "_suffixes")

    def __init__(self, rules: Iterable[Rule]) -> None:
        literals, suffixes, globs = set[str](), set[str](), set[str]()
        for rule in rules:
            last = _name_part(rule)
            if SPECIAL.isdisjoint(last):
                literals.add(last)
            elif last[0] == "*" and SPECIAL.isdisjoint(last[1:]):
                suffixes.add(last[1:])
            else:
                globs.add(expression(last, pathname=False))
        self._literals, self._suffixes = frozenset(literals), tuple(suffixes)
        self._globs = re.compile("|".join(sorted(globs)), re.DOTALL).fullmatch if globs else None

    def passes(self, name: str) -> object:
        """Truthy if a rule may match the name; names with a leading dot or beyond ASCII always pass."""
        return (
            name in self._literals
            or name.endswith(self._suffixes)
            or name[:1] == "."
            or not name.isascii()
            or (self._globs and self._globs(name))
        )


class Reason(NamedTuple):
    """Why an entry is ignored or kept: the line that decided, and the entry it met (itself or a parent)."""

    ignored: bool
    source: str  # a file name of SOURCES, BUILT_IN or ALWAYS
    base: str  # folder of that file
    line: int  # from 1; for BUILT_IN the place in DEFAULTS
    pattern: str  # as written, with its `!`
    path: str  # the entry that the line matched


class _Verdict(NamedTuple):
    rule: Rule
    path: str


class _Layer(NamedTuple):
    """One ignore file in effect, with its rules that have a slash and can still apply."""

    rules: Rules
    reachable: list[_PathRule]


_Layers = tuple[tuple[_Layer, ...], ...]  # for each source its files, deepest first
_Verdicts = tuple[_Verdict | None, ...]  # for each source what it says of the folder


class Scope:
    """The rules in effect inside one folder of the tree; `path` is the folder, `""` the root."""

    __slots__ = ("_closed", "_inherited", "_layers", "_screen", "_verdicts", "path")

    def __init__(
        self, path: str, layers: _Layers, verdicts: _Verdicts, closed: Reason | None, screen: _Screen
    ) -> None:
        self.path, self._layers, self._verdicts, self._closed = path, layers, verdicts, closed
        self._screen = screen
        decided = next(filter(None, verdicts), None)
        self._inherited = closed is not None or (decided is not None and not decided.rule.negated)

    def ignored(self, name: str, is_dir: bool) -> bool:
        """Whether the entry of this folder stays out. A symlink counts as a file, whatever it points to."""
        if not self._screen.passes(name):
            return self._inherited
        if self._closed or _reserved(name):
            return True
        text = octets(name)
        for at, inherited in enumerate(self._verdicts):
            rule = self._rule(at, inherited, text, is_dir)
            if rule is not None:
                return not rule.negated
        return False

    def prune(self, name: str) -> bool:
        """Whether the directory need not be entered: it is ignored and no line brings back what it holds."""
        if self._closed or _reserved(name):
            return True
        verdicts = self._all_verdicts(name, is_dir=True)
        for layers, verdict in zip(self._layers, verdicts, strict=True):
            if verdict is not None:
                return not verdict.rule.negated
            if any(_may_reinclude(layer, _join(self.path, name)) for layer in layers):
                return False
        return False

    def enter(self, name: str, files: Mapping[str, str] | None = None) -> Scope:
        """The scope of a directory of this folder. `files` maps names of SOURCES to their text; those of an
        ignored directory have no say."""
        path = _join(self.path, name)
        closed = self._closed or (_always(name, path) if _reserved(name) else None)
        verdicts = self._all_verdicts(name, is_dir=True)
        decided = next(filter(None, verdicts), None)
        added = {} if closed or not files or (decided and not decided.rule.negated) else files
        layers = tuple(
            _own_layer(added, source, path) + tuple(_narrowed(layer, path) for layer in inherited)
            for source, inherited in zip((*SOURCES, BUILT_IN), self._layers, strict=True)
        )
        return Scope(path, layers, verdicts, closed, _screen(layers) if added else self._screen)

    def explain(self, name: str, is_dir: bool) -> Reason | None:
        """The line that decides about an entry of this folder; None when no line speaks of it."""
        path = _join(self.path, name)
        if self._closed or _reserved(name):
            return self._closed or _always(name, path)
        found = next(filter(None, self._all_verdicts(name, is_dir)), None)
        if found is None:
            return None
        rule = found.rule
        shown = ("!" if rule.negated else "") + rule.pattern
        return Reason(not rule.negated, rule.source, rule.base, rule.line, shown, found.path)

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
        """The line of one source holding for an entry: of the nearest file that matches, or inherited."""
        if inherited is not None and not inherited.rule.negated:
            return inherited.rule
        for rules, reachable in self._layers[at]:
            path = _relative(self.path, rules.base, name) if reachable else name
            rule = rules.last(name, path, is_dir, reachable)
            if rule is not None:
                return rule
        return inherited.rule if inherited is not None else None


def root(files: Mapping[str, str] | None = None) -> Scope:
    """The scope of a working copy's top folder, whose ignore files are given as name → text."""
    layers = (*(_own_layer(files or {}, source, "") for source in SOURCES), (_layer(_defaults()),))
    return Scope("", layers, (None,) * len(layers), None, _screen(layers))


def scope_of(folder: str, read: Callable[[str], Mapping[str, str]]) -> Scope:
    """The scope of any folder (`""` is the root); `read` gives the ignore files of each folder on the way."""
    scope = root(read(""))
    for name in filter(None, folder.split("/")):
        scope = scope.enter(name, read(_join(scope.path, name)))
    return scope


def explain(path: str, is_dir: bool, read: Callable[[str], Mapping[str, str]]) -> Reason | None:
    """Which line decides about a path; None when no line speaks of it, so that it is kept."""
    folder, _, name = path.rpartition("/")
    return scope_of(folder, read).explain(name, is_dir)


@lru_cache(maxsize=1)
def _defaults() -> Rules:
    return Rules.parse("\n".join(DEFAULTS), BUILT_IN)


def _name_part(rule: Rule) -> str:
    """A pattern that every name which the rule can match also matches: its last segment, or `*` where
    sets, escapes and `**` may span the slashes."""
    *folders, last = rule.body.split("/")
    if not folders:
        return last
    spans = "**" in last or any("**" in folder and folder != "**" for folder in folders)
    return "*" if spans or "[" in rule.body or "\\" in rule.body else last


def _screen(layers: _Layers) -> _Screen:
    return _Screen(rule for source in layers for layer in source for rule in layer.rules.rules)


def _layer(rules: Rules) -> _Layer:
    return _Layer(rules, rules.paths)


def _own_layer(files: Mapping[str, str], source: str, base: str) -> tuple[_Layer, ...]:
    return (_layer(Rules.parse(files[source], source, base)),) if source in files else ()


def _narrowed(layer: _Layer, path: str) -> _Layer:
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


def _reserved(name: str) -> bool:
    return name[:1] == "." and name.casefold() in RESERVED


def _always(name: str, path: str) -> Reason:
    return Reason(True, ALWAYS, "", 1, name.casefold(), path)


def _same(line: str) -> str:
    return line


def _stignore_line(line: str) -> str:
    """Syncthing's line as gitignore reads it: `//` starts a comment, `(?i)` and `(?d)` mean nothing."""
    if line.startswith("//"):
        return ""
    prefixes, pattern = re.fullmatch(r"((?:!|\(\?[id]\))*)(.*)", line, re.DOTALL).groups()  # type: ignore[union-attr]
    return ("!" if "!" in prefixes else "") + pattern


def _trimmed(line: str) -> str:
    """The line without trailing spaces, except those behind a backslash."""
    end = len(line.rstrip(" "))
    backslashes = end - len(line[:end].rstrip("\\"))
    return line[: end + 1] if backslashes % 2 and end < len(line) else line[:end]
