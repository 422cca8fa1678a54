"""Finds lines of `.stignore` (Syncthing's ignore file) that Syncthing and svc read differently."""

from __future__ import annotations

from collections.abc import Iterator

from localstore.core.ignore.rules import Rule, Rules
from localstore.core.ignore.wildmatch import SPECIAL, octets
from localstore.core.model.limits import IGNORE_FILE_BYTES
from localstore.core.paths import terminal_safe
from localstore.sync.working_copy import WorkingCopy

FILE = ".stignore"  # in the top folder, the only one that Syncthing reads
INCLUDE = "#include"


def read_otherwise(copy: WorkingCopy) -> list[str]:
    """Return the warnings about `.stignore`. There is one for each `#include`, and one for each line with `!`
    whose effect depends on its position among the other lines."""
    data = copy.files.read_up_to(FILE, IGNORE_FILE_BYTES)
    if data is None:
        return []
    text = data.decode("utf-8", "surrogateescape")
    return [f"warning: {FILE}:{line}: {terminal_safe(why)}" for line, why in sorted(_faults(text))]


def _faults(text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.split("\n"), start=1):
        if line.startswith(INCLUDE):
            named = line.removeprefix(INCLUDE).strip()
            yield (
                number,
                f"svc does not follow #include; Syncthing leaves out what {named} names, svc sends it",
            )
    rules = Rules.parse(text, FILE).rules
    for at, rule in enumerate(rules):
        if not rule.negated:
            continue
        if any(_may_meet(rule, other) for other in rules[:at]):
            yield (
                rule.line,
                f"!{rule.pattern} brings files back that Syncthing leaves out: there the first line that "
                "matches decides, here the last",
            )
        elif any(_may_meet(rule, other) for other in rules[at + 1 :]):
            yield (
                rule.line,
                f"!{rule.pattern} does not bring back what a line below it names, as in Syncthing: there the "
                "first line that matches decides, here the last",
            )


def _may_meet(negated: Rule, other: Rule) -> bool:
    """Return whether a file may match both the rule `negated`, which begins with `!`, and the rule `other`.
    If wildcards make that impossible to compute, the result is True."""
    if other.negated:
        return False
    body = negated.pattern.strip("/")
    if not SPECIAL.isdisjoint(body) or (not SPECIAL.isdisjoint(other.pattern) and not other.by_name):
        return True
    parts = body.split("/")
    if other.by_name:
        return any(other.matches(octets(part)) for part in parts)
    return any(bool(other.matches(octets("/".join(parts[:at])))) for at in range(1, len(parts) + 1))
