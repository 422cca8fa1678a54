"""The Security tab: advisories about a repository and about what it depends on, and the protection of its
branches; and a note that this version of svc has no franking evidence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from typing import TYPE_CHECKING

from localstore.core.model.advisory import Advisory, Affected
from localstore.core.model.dependency import Dependencies, Dependency
from localstore.core.model.protection import Protection, matching
from tui import contents
from tui.actions import Action
from tui.charts import bar
from tui.screens.split import SPLIT_ACTIONS, Split
from tui.text import Part, ago, brief, folded, safe
from tui.widgets.lines import Item, Lines, heading, sequence

if TYPE_CHECKING:
    from tui.markdown.words import Row
    from tui.screens.repo_page import RepoPage

_FLAGS = (
    ("require_review", "review"),
    ("require_checks", "checks"),
    ("require_resolution", "resolved threads"),
    ("fresh_approvals", "fresh approvals"),
    ("lock_writes", "no writes"),
    ("lock_deletions", "no deletion"),
)
_WISHED = ("require_review", "require_checks")  # flags whose lack is said
Line = tuple[Part, ...]
BLANK: Line = (("", "text"),)
BAR, PATTERN = 24, 20  # columns of a bar, and of the name of a branch
BRANCHES, VERSIONS = 50, 4  # that are listed
FRANKING = "not in this version of svc"
_ROLES = {"critical": "bad", "high": "bad", "medium": "warn", "low": "accent"}


class Security(Split):
    LIST = "security"
    WAITING = "asking the server"
    ACTIONS = (
        Action("open", ("enter",), "open", "svc advisories {advisory}", footer=True),
        *SPLIT_ACTIONS,
    )

    def __init__(self, of: RepoPage) -> None:
        super().__init__(of)
        self._advisories: list[Advisory] | None = None
        self._rules: list[Protection] | None = None
        self._dependencies: Dependencies | None = None

    def titled(self) -> tuple[Part, ...]:
        return (("Security", "title"),)

    def count(self) -> str | None:
        return None if self._advisories is None else str(len(self._advisories) or "")

    def shown(self) -> None:
        self.do_refresh()

    def moved(self) -> None:
        self.do_refresh()

    def do_refresh(self) -> None:
        self.renew()
        repo = self.of.repo
        self.svc.load(contents.advisories(repo.full_name), self._advised)
        self.svc.load(contents.protections(repo.id), self._protected)
        if self.of.seal is not None:
            self.svc.load(contents.dependencies(repo.id, self.of.seal), self._depends)

    def _advised(self, advisories: list[Advisory], at: float) -> None:
        self._advisories = advisories
        self._changed()
        self.of.show_frame()

    def _protected(self, rules: list[Protection], at: float) -> None:
        self._rules = rules
        self._changed()

    def _depends(self, dependencies: Dependencies, at: float) -> None:
        if dependencies.seal_id == self.of.seal:
            self._dependencies = dependencies
            self._changed()

    def _changed(self) -> None:
        """Paint an answer that has arrived, and request the preview again, which may depend on it."""
        self.renew()
        self.paint()

    def paint(self) -> None:
        if self._advisories is None and self._rules is None:
            return
        rows = [Item("summary", self._summary(), text="summary"), Item(None, BLANK)]
        if self._advisories is not None:
            rows.append(heading("Advisories", len(self._advisories)))
            rows += [self._advisory(advisory) for advisory in self._advisories]
            if not self._advisories:
                rows.append(Item(None, (("  ✓ ", "good"), ("no advisories about this repository", "dim"))))
            rows.append(Item(None, BLANK))
        affected = self._affected
        if affected:
            rows.append(heading("Dependencies with advisories", len(affected)))
            rows += [_dependency(dependency) for dependency in affected]
            rows.append(Item(None, BLANK))
        if self._rules is not None:
            rows.append(heading("Branches", len(self._branches)))
            rows += [self._branch(name) for name in self._branches]
            rows += [Item(None, BLANK), heading("Protection rules", len(self._rules))]
            rows += [_rule(rule) for rule in self._rules]
            if not self._rules:
                rows.append(Item(None, (("  no rules; 8 opens Settings, where Checks makes one", "dim"),)))
            rows.append(Item(None, BLANK))
        rows += [Item(None, (("Franking evidence", "title"),)), Item(None, ((f"  {FRANKING}", "dim"),))]
        self.listed.show(sequence(rows))
        self.rest()

    # --- what is known together

    @property
    def _affected(self) -> list[Dependency]:
        """The dependencies of the shown seal that advisories are about."""
        items = self._dependencies.items if self._dependencies is not None else ()
        return [dependency for dependency in items if dependency.advisories]

    @property
    def _branches(self) -> list[str]:
        """The branches, the default one first."""
        names = [ref.name for ref in self.of.refs if ref.type == "branch"]
        return sorted(names, key=lambda name: (name != self.of.repo.default_branch, name))[:BRANCHES]

    def _severities(self) -> dict[str, int]:
        """Severity → the number of advisories."""
        counts: Counter[str] = Counter(
            advisory.database_specific.severity for advisory in self._advisories or ()
        )
        return {severity: counts[severity] for severity in _ROLES}

    def _unprotected(self) -> list[str]:
        return [name for name in self._branches if not matching(self._rules or (), name)]

    def _summary(self) -> Line:
        """The state in one row."""
        parts: list[Part] = []
        for severity, count in self._severities().items():
            if count:
                parts.append((f"● {count} {severity}  ", _ROLES[severity]))
        if affected := self._affected:
            parts.append((f"✗ {_counted(len(affected), 'dependency', 'dependencies')}  ", "bad"))
        parts = parts or [("✓ nothing known  ", "good")]
        if self._rules is not None and self._branches:
            protected = len(self._branches) - len(self._unprotected())
            parts.append(
                (f"{protected} of {_counted(len(self._branches), 'branch', 'branches')} protected", "dim")
            )
        return tuple(parts)

    def _summary_rows(self) -> list[Line]:
        """Bars of the severities, the protection of the default branch, and what helps next."""
        counts = self._severities()
        most = max(counts.values(), default=0)
        rows: list[Line] = [(("Advisories about this repository", "title"),), BLANK]
        for severity, count in counts.items():
            drawn = bar(count, most, BAR, _ROLES[severity])
            rows.append(((f"{severity:<10}", _ROLES[severity]), *drawn, (f" {count}", "text")))
        affected = self._affected
        all_of_them = self._dependencies.items if self._dependencies is not None else []
        rows += [BLANK, (("Dependencies", "title"),), BLANK]
        if affected:
            words = f" {len(affected)} of {len(all_of_them)} with advisories"
            rows.append((*bar(len(affected), len(all_of_them), BAR, "bad"), (words, "text")))
        else:
            words = f"none of {len(all_of_them)} has an advisory" if all_of_them else "none in this seal"
            rows.append((("✓ ", "good"), (words, "text")))
        branch = self.of.repo.default_branch
        rows += [BLANK, ((f"{safe(branch)} is the default branch", "title"),), BLANK]
        rows += self._protection_rows(branch)
        helps: list[Line] = []
        if branch in self._unprotected():
            helps.append((("8 ", "accent"), ("opens Settings, where Checks makes a rule", "dim")))
        helps.append(
            ((": ", "accent"), ("repo reports list  lists faults that people reported in private", "dim"))
        )
        return [*rows, BLANK, (("Next", "title"),), BLANK, *helps]

    def _protection_rows(self, branch: str) -> list[Line]:
        """The requirements of the rules of a branch, and the recommended requirements that they lack."""
        rules = matching(self._rules or (), branch)
        if not rules:
            return [(("○ ", "warn"), ("no rule: whoever may write pushes and deletes", "text"))]
        rows: list[Line] = []
        for rule in rules:
            rows.append((("rule  ", "dim"), (safe(rule.pattern), "accent")))
            rows.append((("✓ ", "good"), ("kept from deletion", "text")))
            rows += [(("✓ ", "good"), (words, "text")) for words in _demands(rule)]
        lacking = [
            words
            for flag, words in _FLAGS
            if not any(getattr(rule, flag) for rule in rules) and flag in _WISHED
        ]
        return [*rows, *((("○ ", "dim"), (f"{words}: not asked for", "dim")) for words in lacking)]

    # --- rows

    def preview_of(self, key: Hashable) -> None:
        if key == "summary":
            self.show_preview(key, "summary", self._summary_rows())
        for advisory in self._advisories or ():
            if advisory.id == key:
                self.show_preview(key, safe(advisory.id), self._advisory_rows(advisory))
        for dependency in self._affected:
            if _key_of(dependency) == key:
                self.show_preview(key, safe(dependency.name), self._dependency_rows(dependency))
        for name in self._branches:
            if f"branch {name}" == key:
                head: Line = ((safe(name), "title"),)
                help_row: Line = (("8 opens Settings, where Checks changes it", "dim"),)
                rows = [head, BLANK, *self._protection_rows(name), BLANK, help_row]
                self.show_preview(key, safe(name), rows)
        for rule in self._rules or ():
            if f"rule {rule.pattern}" == key:
                self.show_preview(key, safe(rule.pattern), self._rule_rows(rule))

    def _advisory_rows(self, advisory: Advisory) -> list[Row | tuple[Part, ...]]:
        """Summary, severity, other names, packages and text of an advisory."""
        severity, now = advisory.database_specific.severity, self.svc.clock()
        rows: list[Row | tuple[Part, ...]] = list(
            folded([(safe(advisory.summary), "title")], self.preview_width)
        )
        when = f"  {ago(advisory.published, now)}"
        rows.append(((f"● {severity}", _ROLES.get(severity, "text")), (when, "dim")))
        if advisory.aliases:
            rows.append((("also      ", "dim"), (safe(", ".join(advisory.aliases)), "text")))
        for affected in advisory.affected:
            name = f"{affected.package.name} ({affected.package.ecosystem})"
            rows.append((("package   ", "dim"), (safe(name), "text"), (_versions(affected), "warn")))
        return [*rows, BLANK, *self.text_rows(advisory.details or "no text")]

    def _dependency_rows(self, dependency: Dependency) -> list[Line]:
        """A dependency, and the advisories about it."""
        rows: list[Line] = [
            ((safe(dependency.name), "title"), (f"  {safe(dependency.requirement)}", "text")),
            ((f"declared in {safe(dependency.path)}", "dim"),),
            BLANK,
        ]
        for hit in dependency.advisories:
            sure: Part = ("✗ ", "bad") if hit.certain else ("? ", "warn")
            rows += [
                (sure, (safe(hit.id), "accent")),
                *folded([(safe(hit.summary), "text")], self.preview_width),
            ]
            if not hit.certain:
                rows.append((("perhaps: several versions are allowed", "dim"),))
            rows.append(BLANK)
        return rows

    def _advisory(self, advisory: Advisory) -> Item:
        severity = advisory.database_specific.severity
        parts: Line = (
            (f"  ● {severity:<9}", _ROLES.get(severity, "text")),
            (safe(advisory.summary), "text"),
        )
        when = (brief if self.narrow else ago)(advisory.published, self.svc.clock())
        return Item(advisory.id, parts, ((f"{when} ", "dim"),), f"{advisory.id} {advisory.summary}")

    def _branch(self, name: str) -> Item:
        rules = matching(self._rules or (), name)
        demands = list(dict.fromkeys(words for rule in rules for words in _demands(rule)))
        sign: Part = ("  ✓ ", "good") if rules else ("  ○ ", "dim")
        words = ", ".join(demands) or ("kept from deletion" if rules else "no rule")
        return Item(
            f"branch {name}",
            (sign, (f"{safe(name):<{PATTERN}} ", "text"), (words, "dim")),
            text=name,
        )

    def _rule_rows(self, rule: Protection) -> list[Line]:
        """What a rule asks for, a row each, and the branches that it is about."""
        head: Line = (("branches  ", "dim"), (safe(rule.pattern), "accent"))
        demands: list[Line] = [(("✓ ", "good"), (words, "text")) for words in _demands(rule)]
        covered = [name for name in self._branches if rule in matching([rule], name)]
        names = ", ".join(map(safe, covered)) or "no branch now"
        return [
            head,
            (("now       ", "dim"), (names, "text")),
            BLANK,
            (("✓ ", "good"), ("kept from deletion", "text")),
            *demands,
            BLANK,
            (("8 opens Settings, where it is changed", "dim"),),
        ]

    def on_lines_chosen(self, event: Lines.Chosen) -> None:
        if any(advisory.id == event.key for advisory in self._advisories or ()):
            self.svc.run_words(["advisories", str(event.key)])


def _demands(rule: Protection) -> list[str]:
    """The requirements of a rule, in words."""
    demands = [words for flag, words in _FLAGS if getattr(rule, flag)]
    if rule.required_approvals:
        demands.append(_counted(rule.required_approvals, "approval", "approvals"))
    return demands


def _rule(rule: Protection) -> Item:
    parts: Line = (
        (f"  {safe(rule.pattern):<{PATTERN + 2}} ", "accent"),
        (", ".join(_demands(rule)) or "kept from deletion", "text"),
    )
    return Item(f"rule {rule.pattern}", parts, (), rule.pattern)


def _dependency(dependency: Dependency) -> Item:
    sure = any(hit.certain for hit in dependency.advisories)
    sign: Part = ("  ✗ ", "bad") if sure else ("  ? ", "warn")
    count = _counted(len(dependency.advisories), "advisory", "advisories")
    left: Line = (sign, (f"{safe(dependency.name)} ", "text"), (safe(dependency.requirement), "dim"))
    right: Line = ((f"{count if sure else f'perhaps {count}'} ", sign[1]),)
    return Item(_key_of(dependency), left, right, dependency.name)


def _key_of(dependency: Dependency) -> str:
    return f"dependency {dependency.path} {dependency.name}"


def _versions(affected: Affected) -> str:
    """The versions of a package that an advisory is about, in a few words."""
    for span in affected.ranges:
        fixed = next((event.fixed for event in span.events if event.fixed), None)
        if fixed is not None:
            return f"  fixed in {safe(fixed)}"
    return f"  {safe(', '.join(affected.versions[:VERSIONS]))}" if affected.versions else ""


def _counted(count: int, noun: str, nouns: str) -> str:
    return f"{count} {noun if count == 1 else nouns}"
