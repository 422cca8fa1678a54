"""The parsed rules of one ignore file, indexed so that most names need no pattern match."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from localstore.core.errors import TooLarge
from localstore.core.ignore.wildmatch import SPECIAL, expression, literal_length, octets
from localstore.core.model.limits import IGNORE_FILE_BYTES, in_words

Matcher = Callable[[str], object]


class Rule:
    """One line of an ignore file: `pattern` as written, without its `!`; `line` counts from 1. `any_case`:
    ASCII letters match in any case."""

    __slots__ = (
        "_match",
        "any_case",
        "base",
        "body",
        "directories_only",
        "line",
        "negated",
        "pattern",
        "source",
    )

    def __init__(
        self, pattern: str, *, negated: bool, line: int, source: str, base: str, any_case: bool = False
    ) -> None:
        self.pattern, self.negated, self.line, self.source, self.base = pattern, negated, line, source, base
        self.any_case = any_case
        self.directories_only = pattern.endswith("/")
        self.body = octets(pattern.removesuffix("/"))
        self._match: Matcher | None = None

    @property
    def by_name(self) -> bool:
        """Whether the pattern has no slash and matches names at any depth."""
        return "/" not in self.body

    def matches(self, text: str) -> object:
        """A true value if the rule matches `text`, else a false one. `text`: a name, or a path relative to
        the rule's folder, in the form of `octets`."""
        if self._match is None:
            source = expression(self.body.removeprefix("/"), pathname=not self.by_name)
            # Octets stand for the bytes of UTF-8: other case of bytes above 127 would be other letters.
            case = re.IGNORECASE | re.ASCII if self.any_case else re.NOFLAG
            self._match = re.compile(source, re.DOTALL | case).fullmatch
        return self._match(text)


class SlashRule:
    """A rule whose pattern contains a slash. It can match only below the folders with which the pattern
    begins, and only at one depth unless it has `**`."""

    __slots__ = ("depth", "folders", "position", "rule")

    def __init__(self, rule: Rule, position: int) -> None:
        body = rule.body.removeprefix("/")
        self.rule, self.position = rule, position
        self.folders = () if rule.any_case else tuple(body[: literal_length(body)].split("/")[:-1])
        # `**` crosses folders; without it a pattern meets paths of one depth only.
        self.depth = None if "**" in body else body.count("/")

    def reaches(self, folders: tuple[str, ...]) -> bool:
        """Whether the rule can match something in or below this folder. `folders`: the folder's path,
        relative to the folder of the rule."""
        if self.depth is not None and len(folders) > self.depth:
            return False
        shared = min(len(folders), len(self.folders))
        return folders[:shared] == self.folders[:shared]


class _NameTable:
    """The rules of an ignore file that have no slash, indexed by the names that they match. Files and
    directories have separate tables."""

    __slots__ = ("_globs", "_literals", "_suffix_text", "_suffixes")

    def __init__(self, rules: Iterable[tuple[int, Rule]]) -> None:
        self._literals: dict[str, int] = {}
        self._suffixes: list[tuple[int, str]] = []
        self._globs: list[tuple[int, Rule]] = []
        for position, rule in rules:
            if rule.any_case:
                self._globs.append((position, rule))
            elif SPECIAL.isdisjoint(rule.body):
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
        self.paths = [SlashRule(rule, at) for at, rule in reversed(numbered) if not rule.by_name]

    @classmethod
    def parse(cls, text: str, source: str, base: str = "") -> Rules:
        """Parse the text of an ignore file; invalid lines are ignored, as in git. Raises TooLarge above
        IGNORE_FILE_BYTES characters."""
        if len(text) > IGNORE_FILE_BYTES:
            most = in_words(IGNORE_FILE_BYTES)
            raise TooLarge(f"{base + '/' if base else ''}{source} is larger than {most}; shorten it")
        dialect = _stignore_line if source == ".stignore" else _same
        rules: list[Rule] = []
        for number, raw in enumerate(text.removeprefix("\ufeff").split("\n"), start=1):
            text_of_line = _trim(raw.removesuffix("\r").partition("\0")[0])
            line, any_case = dialect(text_of_line) if raw[:1] != "#" else ("", False)
            negated = line.startswith("!")
            pattern = line[negated:]
            if pattern and pattern != "/":
                rules.append(
                    Rule(pattern, negated=negated, line=number, source=source, base=base, any_case=any_case)
                )
        return cls(rules, base)

    def last(self, name: str, path: str, is_dir: bool, reachable: list[SlashRule]) -> Rule | None:
        """The last line of the file that matches an entry; None if no line does. `name`: name of the entry;
        `path`: its path from the folder of the file; both as `octets` returns them. `reachable`: the rules
        with a slash that can match in the entry's folder."""
        best = self._tables[is_dir].last(name)
        for candidate in reachable:
            if candidate.position < best:
                break
            if (is_dir or not candidate.rule.directories_only) and candidate.rule.matches(path):
                return candidate.rule
        return self.rules[best] if best >= 0 else None


class Screen:
    """A quick test that excludes most names which no rule can match. It looks only at the last segment of
    each rule's pattern, so it also passes some names that no rule matches."""

    __slots__ = ("_globs", "_literals", "_suffixes")

    def __init__(self, rules: Iterable[Rule]) -> None:
        literals, suffixes, globs = set[str](), set[str](), set[str]()
        for rule in rules:
            last = _name_part(rule)
            if rule.any_case:
                globs.add(f"(?ai:{expression(last, pathname=False)})")
            elif SPECIAL.isdisjoint(last):
                literals.add(last)
            elif last[0] == "*" and SPECIAL.isdisjoint(last[1:]):
                suffixes.add(last[1:])
            else:
                globs.add(expression(last, pathname=False))
        self._literals, self._suffixes = frozenset(literals), tuple(suffixes)
        self._globs = re.compile("|".join(sorted(globs)), re.DOTALL).fullmatch if globs else None

    def passes(self, name: str) -> object:
        """A true value if some rule may match the name. Names with a leading dot or with non-ASCII characters
        always pass."""
        return (
            name in self._literals
            or name.endswith(self._suffixes)
            or name[:1] == "."
            or not name.isascii()
            or (self._globs and self._globs(name))
        )


def _name_part(rule: Rule) -> str:
    """A pattern that matches at least all names that the rule can match: its last segment, or `*`."""
    *folders, last = rule.body.split("/")
    if not folders:
        return last
    spans = "**" in last or any("**" in folder and folder != "**" for folder in folders)
    return "*" if spans or "[" in rule.body or "\\" in rule.body else last


def _same(line: str) -> tuple[str, bool]:
    return line, False


def _stignore_line(line: str) -> tuple[str, bool]:
    """Converts a line of a Syncthing ignore file. Returns (the line in the syntax of .gitignore, whether it
    ignores case). `(?i)` at the start ignores case, `//` starts a comment, and `(?d)` is dropped."""
    if line.startswith("//"):
        return "", False
    prefixes, pattern = re.fullmatch(r"((?:!|\(\?[id]\))*)(.*)", line, re.DOTALL).groups()  # type: ignore[union-attr]
    return ("!" if "!" in prefixes else "") + pattern, "(?i)" in prefixes


def _trim(line: str) -> str:
    """The line without trailing spaces. A space after a backslash stays."""
    end = len(line.rstrip(" "))
    backslashes = end - len(line[:end].rstrip("\\"))
    return line[: end + 1] if backslashes % 2 and end < len(line) else line[:end]
