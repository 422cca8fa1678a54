"""The tab Security of a repository: confidential reports, advisories about the repository and its
dependencies, and the protection rules of its branches. The tab also says that this version of svc has no
franking evidence (proof that a reported message was really sent)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

from localstore.core.errors import ServerUnreachable
from localstore.core.model.advisory import Advisory, Affected
from localstore.core.model.audit import AuditEntry
from localstore.core.model.check import Check
from localstore.core.model.dependency import Dependencies, Dependency
from localstore.core.model.proposal import ProposalQuery
from localstore.core.model.protection import Protection, ProtectionSet, matching, refusal
from localstore.core.model.report import Report
from localstore.core.words import count
from tui import contents
from tui.actions import Action
from tui.blocks import CARD, Block, draw_card, lay_blocks
from tui.charts import bar
from tui.listed import ListedProposal
from tui.screens.proposal.words import last_run, waits_for
from tui.screens.settings.rule_words import FLAGS, NO_CHECK, approvals_of, demands, sentences
from tui.screens.split import CUT, LINES, PANE, SIZE, SPLIT_ACTIONS, Split
from tui.text import Part, ago, brief, fold, fold_after, safe
from tui.widgets.lines import Item, Lines, heading, sequence
from tui.wording import UNSEEN

if TYPE_CHECKING:
    from tui.markdown.words import Row
    from tui.screens.repo_page import RepoPage

LOCKED = FLAGS["lock_writes"]
WRITERS, RULERS = ("owner", "admin", "write"), ("owner",)  # roles
SET = "protection.set"  # in the audit
Line = tuple[Part, ...]
BLANK: Line = (("", "text"),)
BAR, PATTERN = 24, 20  # columns of a bar, and of the name of a branch
BRANCHES, VERSIONS = 50, 4  # that are listed
BRANCH_ROWS, AUDITED = 8, 5  # branches and changes of rules in a preview
SUMMARY = 46  # columns of a list that has room for the whole summary
FRANKING = "not in this version of svc"
_ROLES = {"critical": "bad", "high": "bad", "medium": "warn", "low": "accent"}
_DECISIONS = {
    "--triaged": "it is being worked on",
    "--published": "an advisory tells everybody, where the server has them",
    "--dismissed": "there is nothing in it",
}
_SIGNS = {"critical": "▲", "high": "▲", "medium": "●", "low": "○"}
SIDE_BY_SIDE = 36  # columns that a block has at least where two stand beside each other
CARD_MOST = 96  # columns of a card with a text


class Security(Split):
    LIST = "security"
    RULED = True
    WAITING = "asking the server"
    ACTIONS = (
        Action("open", ("enter",), "open", "svc advisories {advisory}", footer=True),
        Action("report", ("a",), "report a fault", "", "signed_in", True, "report.create"),
        Action("rules", ("e",), "rules in Settings", footer=True),
        PANE,
        *SPLIT_ACTIONS,
    )

    def __init__(self, of: RepoPage) -> None:
        super().__init__(of)
        self._advisories: list[Advisory] | None = None
        self._reports: list[Report] | None = None
        self._rules: list[Protection] | None = None
        self._dependencies: Dependencies | None = None
        self._checks: list[Check] | None = None
        self._proposals: list[ListedProposal] | None = None
        self._unread = ""  # why something was not read, "" while everything was
        self._set_by: list[AuditEntry] = []  # who set and cleared rules, the newest first

    def make_title(self) -> tuple[Part, ...]:
        return (("Security", "title"),)

    def count(self) -> str | None:
        return None if self._advisories is None else str(len(self._advisories) or "")

    def label_of(self, action: Action) -> str:
        """Returns the label of an action in the line of keys. Enter opens reports and advisories. The preview
        shows everything about other rows."""
        if action.id == "pane":
            return self.pane_label()
        if action.id == "open":
            return "open" if self._opened else self._rule_label
        return action.label

    @property
    def _opened(self) -> list[str]:
        """The command that shows the report or advisory under the cursor, or the advisory about the
        dependency under the cursor. Empty for other rows."""
        key = str(self.listed.key)
        if key.startswith("report "):
            return ["repo", "reports", "view", key.partition(" ")[2], "-R", self.of.repo.full_name]
        hits = [
            hit.id
            for dependency in self._affected
            if _key_of(dependency) == key
            for hit in dependency.advisories
        ]
        ids = [advisory.id for advisory in self._advisories or () if advisory.id == key] or hits
        return ["advisories", ids[0]] if ids else []

    def facts(self) -> dict[str, str]:
        opened = self._opened
        return {"advisory": opened[1]} if opened[:1] == ["advisories"] else {}

    @property
    def _rule_label(self) -> str:
        """What enter does on a branch or a rule. "" on other rows."""
        rule = self._rule_here
        return "" if rule is None else "open the rule" if isinstance(rule[1], Protection) else "begin a rule"

    @property
    def _rule_here(self) -> tuple[str, ProtectionSet] | None:
        """The pattern and the rule of the row under the cursor. On a branch without a rule, the rule is one
        that asks for nothing. None on other rows."""
        kind, _, name = str(self.listed.key).partition(" ")
        rules = self._rules or []
        if kind == "branch":
            covering = matching(rules, name)
        else:
            covering = [rule for rule in rules if kind == "rule" and rule.pattern == name]
        if covering:
            return covering[0].pattern, covering[0]
        return (name, ProtectionSet()) if kind == "branch" else None

    def do_report(self) -> None:
        self.svc.open_form("repo reports create")

    def do_rules(self) -> None:
        """Open the settings, in which the rules are changed. On a branch without a rule, begin one for it."""
        kind, _, name = str(self.listed.key).partition(" ")
        rules = matching(self._rules or (), name) if kind == "branch" else []
        if kind == "rule" or rules:
            self.of.open_rule(rules[0].pattern if rules else name, exists=True)
        elif kind == "branch":
            self.of.open_rule(name, exists=False)
        else:
            self.of.lead_to_tab(8)

    def open_tab(self) -> None:
        self.do_refresh()

    def load_seal(self) -> None:
        self.do_refresh()

    def do_refresh(self) -> None:
        self.renew()
        repo = self.of.repo
        self.svc.load(contents.advisories(repo.full_name), self._take_advisories, self._miss)
        self.svc.load(contents.protections(repo.id), self._take_rules, self._miss)
        if repo.viewer is not None and repo.viewer.role is not None:  # guests may not ask for reports
            self.svc.load(contents.reports(repo.id), self._take_reports)
        if self.of.seal is not None:
            self.svc.load(contents.dependencies(repo.id, self.of.seal), self._take_dependencies, self._miss)
        if self.previews:
            self._ask_for_more()

    def _ask_for_more(self) -> None:
        """Request what only the previews show: checks, open proposals and, for the owner, changes of
        rules."""
        repo = self.of.repo
        self.svc.load(contents.checks(repo.id), self._take_checks)
        self.svc.load(contents.proposals(repo.id, ProposalQuery(state="open")), self._take_proposals)
        if self._owns:
            self.svc.load(contents.rule_changes(repo.id), self._take_rule_changes)

    def _take_checks(self, checks: list[Check], at: float) -> None:
        self._checks = checks
        self.renew()

    def _take_proposals(self, proposals: list[ListedProposal], at: float) -> None:
        self._proposals = proposals
        self.renew()

    def _take_rule_changes(self, entries: list[AuditEntry], at: float) -> None:
        self._set_by = entries
        self.renew()

    def _take_advisories(self, advisories: list[Advisory], at: float) -> None:
        self._advisories = advisories
        self._paint_answer()
        self.of.show_frame()

    def _miss(self, error: BaseException) -> None:
        if isinstance(error, ServerUnreachable):
            self._unread = UNSEEN
            self._paint_answer()

    def _take_reports(self, reports: list[Report], at: float) -> None:
        self._reports = reports
        self._paint_answer()

    def _take_rules(self, rules: list[Protection], at: float) -> None:
        self._rules = rules
        self._paint_answer()

    def _take_dependencies(self, dependencies: Dependencies, at: float) -> None:
        if dependencies.seal_id == self.of.seal:
            self._dependencies = dependencies
            self._paint_answer()

    def _paint_answer(self) -> None:
        """Paint the list and the preview again after an answer has arrived, because both may show it."""
        self.renew()
        self.paint()

    def paint(self) -> None:
        if self._advisories is None and self._rules is None:
            return
        rows = [Item("summary", self._summary(), text="summary"), Item(None, BLANK)]
        if self._reports:
            waits = "wait for a decision " if self._undecided else ""
            rows.append(heading("Reports in confidence", len(self._undecided) or None, waits))
            rows += [self._report(report) for report in self._undecided]
            if not self._undecided:
                rows.append(Item(None, (("  ✓ ", "good"), ("all are decided", "dim"))))
            rows.append(Item(None, BLANK))
        if self._advisories is not None:
            rows.append(heading("Advisories", len(self._advisories)))
            rows += [self._advisory(advisory) for advisory in self._advisories]
            if not self._advisories:
                rows.append(Item(None, (("  ✓ ", "good"), ("none about this repository", "dim"))))
            rows.append(Item(None, BLANK))
        affected = self._affected
        if affected:
            rows.append(heading("Dependencies with advisories", len(affected)))
            rows += [_dependency(dependency) for dependency in affected]
            rows.append(Item(None, BLANK))
        if self._rules is not None:
            protected = len(self._branches) - len(self._find_unprotected())
            rows.append(heading("Branches", len(self._branches), f"{protected} protected "))
            rows += [self._branch(name) for name in self._branches]
            rows += [Item(None, BLANK), heading("Protection rules", len(self._rules))]
            rows += [self._rule(rule) for rule in self._rules]
            if not self._rules:
                rows.append(Item(None, (("  none; enter on a branch begins one", "dim"),)))
            rows.append(Item(None, BLANK))
        rows.append(Item(None, (("Franking evidence", "dim"), (f"  – {FRANKING}", "dim"))))
        self.listed.show(sequence(rows))
        self.rest()

    # --- what is known together

    @property
    def _affected(self) -> list[Dependency]:
        """Returns those dependencies of the shown seal about which there are advisories."""
        items = self._dependencies.items if self._dependencies is not None else ()
        return [dependency for dependency in items if dependency.advisories]

    @property
    def _undecided(self) -> list[Report]:
        """Returns the reports that wait for a decision of the owner, the most severe first."""
        waiting = [report for report in self._reports or () if report.state in ("new", "triaged")]
        return sorted(waiting, key=lambda report: _rank(report.severity))

    @property
    def _branches(self) -> list[str]:
        """Returns the names of the branches, with the default branch first."""
        names = [ref.name for ref in self.of.refs if ref.type == "branch"]
        return sorted(names, key=lambda name: (name != self.of.repo.default_branch, name))[:BRANCHES]

    def _severities(self) -> dict[str, int]:
        """Returns the number of advisories of each severity, by severity."""
        counts: Counter[str] = Counter(
            advisory.database_specific.severity for advisory in self._advisories or ()
        )
        return {severity: counts[severity] for severity in _ROLES}

    def _find_unprotected(self) -> list[str]:
        return [name for name in self._branches if not matching(self._rules or (), name)]

    def _summary(self) -> Line:
        """Returns a row that sums up the tab: reports that wait, advisories by severity, and so on."""
        parts: list[Part] = []
        if undecided := self._undecided:
            parts.append((f"! {count(len(undecided), 'report')}  ", "warn"))
        for severity, number in self._severities().items():
            if number:
                parts.append((f"{_SIGNS[severity]} {number} {severity}  ", _ROLES[severity]))
        if affected := self._affected:
            parts.append((f"✗ {count(len(affected), 'dependency', 'dependencies')}  ", "bad"))
        if not parts and self._lacks:
            parts = [("not all was read  ", "dim")]
        parts = parts or [("✓ nothing known  ", "good")]
        if self._rules is not None and self._branches:
            protected = len(self._branches) - len(self._find_unprotected())
            of = (
                str(len(self._branches))
                if self.list_width < SUMMARY
                else count(len(self._branches), "branch", "branches")
            )
            parts.append((f"{protected} of {of} protected", "dim"))
        return tuple(parts)

    def _summary_rows(self) -> list[Line]:
        """Returns the rows of the preview of the whole tab, in blocks: advisories by severity, dependencies,
        the protection of the default branch, checks, who set the rules, and what the user can do next."""
        branch = self.of.repo.default_branch
        blocks = [
            Block("What needs you", self._needed_rows),
            Block("Advisories about this repository", self._severity_rows),
            Block("Dependencies", self._dependency_share),
            Block(f"{safe(branch)} is the default branch", lambda wide: self._protection_rows(branch)),
            Block("What you may do", lambda wide: self._allowed_rows(branch, wide)),
            Block("Required checks", lambda wide: self._check_rows(self._rules or (), wide)),
            Block("Who set the rules", self._audit_rows),
            Block("Next", self._help_rows),
        ]
        return lay_blocks(blocks, self.preview_width, SIDE_BY_SIDE)

    def _needed_rows(self, width: int) -> list[Line]:
        """Returns rows with what waits for somebody: reports, dependencies with advisories, and a default
        branch without rules."""
        rows: list[Line] = []
        for report in self._undecided:
            rows.append((_severity(report.severity), (safe(report.title), "text")))
        for dependency in self._affected:
            rows.append((("✗ ", "bad"), (f"{safe(dependency.name)} ", "text"), ("has an advisory", "dim")))
        if self._rules is not None and self.of.repo.default_branch in self._find_unprotected():
            branch = safe(self.of.repo.default_branch)
            rows.append((("○ ", "warn"), (f"{branch} ", "accent"), ("has no protection rule", "text")))
        if not rows and self._lacks:
            return list(fold([(self._unread, "dim")], width))
        return rows or [(("✓ ", "good"), ("nothing", "text"))]

    @property
    def _lacks(self) -> bool:
        """Whether advisories, rules or dependencies were not read, because the server is away."""
        return bool(self._unread) and None in (self._advisories, self._rules, self._dependencies)

    def _severity_rows(self, width: int) -> list[Line]:
        counts = self._severities()
        if not any(counts.values()):
            return [(("✓ ", "good"), ("none", "text"))] if self._advisories is not None else []
        most, room = max(counts.values(), default=0), max(8, min(BAR, width - 14))
        return [
            (
                (f"{_SIGNS[severity]} {severity:<9}", _ROLES[severity]),
                *bar(count, most, room, _ROLES[severity]),
                (f" {count}", "text"),
            )
            for severity, count in counts.items()
        ]

    def _dependency_share(self, width: int) -> list[Line]:
        """Returns rows that say how many dependencies have advisories, and how many dependencies there
        are."""
        if self._dependencies is None and self._unread:
            return list(fold([(self._unread, "dim")], width))
        affected = self._affected
        all_of_them = self._dependencies.items if self._dependencies is not None else []
        if not affected:
            words = f"none of {len(all_of_them)} has an advisory" if all_of_them else "none in this seal"
            return [(("✓ ", "good"), (words, "text"))]
        words = f" {len(affected)} of {len(all_of_them)} with advisories"
        room = max(8, min(BAR, width - len(words)))
        rows: list[Line] = [(*bar(len(affected), len(all_of_them), room, "bad"), (words, "text"))]
        return [*rows, *(_dependency(dependency).left for dependency in affected)]

    @property
    def _required(self) -> list[str] | None:
        """The names of the required checks. None until they are read."""
        return None if self._checks is None else [check.name for check in self._checks if check.enabled]

    def _demands(self, rule: Protection) -> list[str]:
        return demands(rule, self._required)

    def _check_rows(self, rules: Sequence[Protection], width: int) -> list[Line]:
        """Returns a row for each required check, with its newest run, if one of the rules asks for the
        required checks. Otherwise the rows say that no merge waits for a check."""
        asking = [safe(rule.pattern) for rule in rules if rule.require_checks]
        if self._checks is None or self._rules is None:
            return []
        required = [check for check in self._checks if check.enabled]
        if not asking:
            return fold([("○ ", "dim"), ("no rule here asks for them: no merge waits for one", "dim")], width)
        rows: list[Line] = fold([("asked for by ", "dim"), (", ".join(asking), "accent")], width)
        if not required:
            return [*rows, *fold([("! ", "warn"), (NO_CHECK, "warn")], width)]
        now = self.svc.clock()
        return [*rows, *((*last_run(check, now), (f"  {safe(check.name)}", "text")) for check in required)]

    def _audit_rows(self, width: int) -> list[Line]:
        """Returns a row for each of the last changes of protection rules, with the person who made it. Only
        the owner gets rows, because others may not read these changes."""
        now = self.svc.clock()
        return [
            (
                (f"{safe(entry.subject or '')}  ", "accent"),
                ("set by " if entry.action == SET else "removed by ", "text"),
                (f"@{safe((entry.actor and entry.actor.handle) or '?')}", "person"),
                (f" {ago(entry.at, now)}", "dim"),
            )
            for entry in self._set_by[:AUDITED]
        ]

    def _help_rows(self, width: int) -> list[Line]:
        rows: list[Line] = []
        if self.of.repo.default_branch in self._find_unprotected():
            rows += fold([("8 ", "accent"), ("opens Settings, where Branch rules makes one", "dim")], width)
        words = "repo reports create  tells the owner of a fault in confidence"
        if self._undecided and self._owns:
            words = "repo reports decide  decides a report"
        return [*rows, *fold([(": ", "accent"), (words, "dim")], width)]

    def _allowed_rows(self, branch: str, width: int) -> list[Line]:
        """Returns rows of sentences that say what the rules of a branch mean for the user."""
        rules = matching(self._rules or (), branch)
        viewer = self.of.repo.viewer
        role = viewer.role if viewer is not None else None
        may_write = role in WRITERS
        needs = list(
            dict.fromkeys(words for rule in rules for words in self._demands(rule) if words != LOCKED)
        )
        merges = f"merge a proposal: {', '.join(needs)}" if needs else "merge a proposal"
        acts = [
            (may_write and refusal(branch, rules, "write") is None, "push to it without a proposal"),
            (may_write and not any(rule.lock_writes for rule in rules), merges),
            (may_write and not rules and branch != self.of.repo.default_branch, "delete it"),
            (role in RULERS, "change its rules"),
        ]
        rows: list[Line] = [(("as  ", "dim"), (role or "a reader", "accent"))]
        for allowed, words in acts:
            sign: Part = ("✓ ", "good") if allowed else ("✗ ", "bad")
            rows += fold_after([sign], [(words, "text" if allowed else "dim")], width)
        return rows

    def _proposal_rows(self, branch: str, width: int) -> list[Line]:
        """Returns rows with the open proposals for a branch, and with what each of them still lacks."""
        rows: list[Line] = []
        for proposal in self._proposals or ():
            if proposal.base == branch:
                rows += fold([(f"#{proposal.number} ", "accent"), (safe(proposal.title), "text")], width)
                states = waits_for(proposal, self.svc.client.account)
                lacking = [part for state in states for part in (("  ", "text"), state)]
                rows += fold(lacking, width) if lacking else []
        return rows

    def _protection_rows(self, branch: str) -> list[Line]:
        """Returns rows with what the rules of a branch require, and with the recommended requirements that
        they lack."""
        rules = matching(self._rules or (), branch)
        if not rules:
            ends = "" if branch == self.of.repo.default_branch else " and deletes"
            return [(("○ ", "warn"), (f"no rule: whoever may write pushes{ends}", "text"))]
        rows: list[Line] = []
        for rule in rules:
            rows.append((("rule  ", "dim"), (safe(rule.pattern), "accent")))
            rows.append((("✓ ", "good"), ("kept from deletion", "text")))
            rows += [(("✓ ", "good"), (words, "text")) for words in self._demands(rule)]
        lacking = [] if any(map(approvals_of, rules)) else ["approvals"]
        lacking += [] if any(rule.require_checks for rule in rules) else [FLAGS["require_checks"]]
        return [*rows, *((("○ ", "dim"), (f"{words}: not asked for", "dim")) for words in lacking)]

    # --- rows

    def preview_of(self, key: Hashable) -> None:
        if key == "summary":
            self.show_preview(key, "summary", self._summary_rows())
        for report in self._undecided:
            if f"report {report.id}" == key:
                self.show_preview(key, f"report {safe(report.id[:8])}", self._report_rows(report))
        for advisory in self._advisories or ():
            if advisory.id == key:
                self.show_preview(key, safe(advisory.id), self._advisory_rows(advisory))
        for dependency in self._affected:
            if _key_of(dependency) == key:
                self.show_preview(key, safe(dependency.name), self._dependency_rows(dependency))
        for name in self._branches:
            if f"branch {name}" == key:
                self.show_preview(key, safe(name), self._rows_of_branch(name))
        for rule in self._rules or ():
            if f"rule {rule.pattern}" == key:
                self.show_preview(key, safe(rule.pattern), self._rule_rows(rule))

    @property
    def _owns(self) -> bool:
        """Whether the user owns the repository. Only the owner decides about reports."""
        viewer = self.of.repo.viewer
        return viewer is not None and viewer.role == "owner"

    def _report(self, report: Report) -> Item:
        parts: Line = (("  ", "text"), _severity(report.severity), (safe(report.title), "text"))
        state: Part = ("new  " if report.state == "new" else "in work  ", "warn")
        when = (brief if self.narrow else ago)(report.created_at, self.svc.clock())
        return Item(f"report {report.id}", parts, (state, (f"{when} ", "dim")), report.title)

    def _report_rows(self, report: Report) -> list[Row | tuple[Part, ...]]:
        """Returns rows about a report: its title, severity, state, reporter and text, and how to decide about
        it."""
        now = self.svc.clock()
        when: Part = (f"  {ago(report.created_at, now)}", "dim")
        state: Part = ("● new" if report.state == "new" else "◐ in work", "warn")
        who: Part = (f"@{safe(report.reporter.handle or '?')}", "person")
        words = (
            "only the owner and you read this"
            if not self._owns
            else "only the owner and the reporter read it"
        )
        rows: list[Row | tuple[Part, ...]] = list(fold([(safe(report.title), "title")], self.preview_width))
        rows += [(_severity(report.severity), state, when), ((words, "dim"),), BLANK]
        rows += self._card((who, when), report.body)
        if not self._owns:
            return rows
        blocks = [Block("Decide it", lambda wide: _decisions(report, wide))]
        return [*rows, BLANK, *lay_blocks(blocks, self._card_width)]

    @property
    def _card_width(self) -> int:
        return min(CARD_MOST, self.preview_width)

    def _card(self, head: Line, text: str | None) -> list[Row | tuple[Part, ...]]:
        """Returns the rows of a text in a card. `head`: the parts in the upper line of its frame."""
        from tui.texts import beginning

        texts, width = self.texts, self._card_width
        written = texts.rows(beginning(text, LINES, SIZE), width - CARD) if texts is not None and text else []
        cut: list[Line] = [CUT] if text and len(beginning(text, LINES, SIZE)) < len(text) else []
        rows: list[Row | Line] = [*written] if written else [(("no text", "dim"),)]
        return draw_card(head, [*rows, *cut], width)

    def _advisory_rows(self, advisory: Advisory) -> list[Row | tuple[Part, ...]]:
        """Returns rows about an advisory: its summary, severity, other names, packages and text, and the
        dependencies of the repository that it is about."""
        severity, now = advisory.database_specific.severity, self.svc.clock()
        rows: list[Row | tuple[Part, ...]] = list(
            fold([(safe(advisory.summary), "title")], self.preview_width)
        )
        rows.append((_severity(severity), (ago(advisory.published, now), "dim")))
        if advisory.aliases:
            rows.append((("also      ", "dim"), (safe(", ".join(advisory.aliases)), "text")))
        for affected in advisory.affected:
            name = f"{affected.package.name} ({affected.package.ecosystem})"
            rows.append((("package   ", "dim"), (safe(name), "text"), (_versions(affected), "warn")))
        for dependency in self._affected:
            if any(hit.id == advisory.id for hit in dependency.advisories):
                named = (f"{safe(dependency.name)} ", "text"), (safe(dependency.requirement), "dim")
                rows.append((("here      ", "dim"), ("✗ ", "bad"), *named))
        return [*rows, BLANK, *self._card(((safe(advisory.id), "accent"),), advisory.details)]

    def _dependency_rows(self, dependency: Dependency) -> list[Line]:
        """Returns rows about a dependency and the advisories about it."""
        rows: list[Line] = [
            ((safe(dependency.name), "title"), (f"  {safe(dependency.requirement)}", "text")),
            ((f"declared in {safe(dependency.path)}", "dim"),),
            BLANK,
        ]
        for hit in dependency.advisories:
            sure: Part = ("✗ ", "bad") if hit.certain else ("? ", "warn")
            rows += [
                (sure, (safe(hit.id), "accent")),
                *fold([(safe(hit.summary), "text")], self.preview_width),
            ]
            if not hit.certain:
                rows.append((("perhaps: several versions are allowed", "dim"),))
            rows.append(BLANK)
        return rows

    def _advisory(self, advisory: Advisory) -> Item:
        severity = advisory.database_specific.severity
        parts: Line = (("  ", "text"), _severity(severity), (safe(advisory.summary), "text"))
        when = (brief if self.narrow else ago)(advisory.published, self.svc.clock())
        return Item(advisory.id, parts, ((f"{when} ", "dim"),), f"{advisory.id} {advisory.summary}")

    def _branch(self, name: str) -> Item:
        rules = matching(self._rules or (), name)
        needs = list(dict.fromkeys(words for rule in rules for words in self._demands(rule)))
        sign: Part = ("  ✓ ", "good") if rules else ("  ○ ", "dim")
        words = ", ".join(needs) or ("kept from deletion" if rules else "no rule")
        return Item(
            f"branch {name}",
            (sign, (f"{safe(name):<{self._name_width}} ", "text"), (words, "dim")),
            text=name,
        )

    @property
    def _name_width(self) -> int:
        """The width of the column with the names of branches and rules, in columns of the terminal."""
        names = [*self._branches, *(rule.pattern for rule in self._rules or ())]
        return min(PATTERN, max((len(safe(name)) for name in names), default=0))

    def _rule(self, rule: Protection) -> Item:
        parts: Line = (
            (f"  {safe(rule.pattern):<{self._name_width + 2}} ", "accent"),
            (", ".join(self._demands(rule)) or "kept from deletion", "text"),
        )
        return Item(f"rule {rule.pattern}", parts, (), rule.pattern)

    def _rows_of_branch(self, name: str) -> list[Line]:
        """Returns rows about a branch: the rules that protect it, what they mean for the user, and the
        proposals for it."""
        rules = matching(self._rules or (), name)
        opens = f"opens the rule {safe(rules[0].pattern)} " if rules else "begins a rule for it"
        blocks = [
            Block("Protection", lambda wide: self._protection_rows(name)),
            Block("What you may do", lambda wide: self._allowed_rows(name, wide)),
            Block("Open proposals", lambda wide: self._proposal_rows(name, wide)),
            Block("Required checks", lambda wide: self._check_rows(rules, wide)),
            Block("Next", lambda wide: fold([("enter ", "accent"), (opens, "dim")], wide)),
        ]
        default = "  the default branch" if name == self.of.repo.default_branch else ""
        sign: Part = ("✓ protected", "good") if rules else ("○ not protected", "warn")
        head: Line = ((safe(name), "title"), ("  ", "text"), sign, (default, "dim"))
        return [head, BLANK, *lay_blocks(blocks, self.preview_width, SIDE_BY_SIDE)]

    def _rule_rows(self, rule: Protection) -> list[Line]:
        """Returns rows about a protection rule: its requirements, the branches that it applies to, and who
        set it."""
        covered = [name for name in self._branches if rule in matching([rule], name)]
        head: Line = (("branches  ", "dim"), (safe(rule.pattern), "accent"))
        names = ", ".join(map(safe, covered)) or "no branch now"
        meant: list[Line] = [(("✓ ", "good"), ("kept from deletion", "text"))]
        meant += [(("✓ ", "good"), (words, "text")) for words in self._demands(rule)]

        def meaning(width: int) -> list[Line]:
            return [
                row
                for words in sentences(rule, self._required)
                for row in fold_after([("• ", "dim")], [(words, "text")], width)
            ]

        blocks = [
            Block("Rule", lambda wide: meant),
            Block("What it means", meaning),
            Block(
                "What you may do",
                lambda wide: self._allowed_rows(covered[0] if covered else rule.pattern, wide),
            ),
            Block("Required checks", lambda wide: self._check_rows([rule], wide)),
            Block(
                "Who set it",
                lambda wide: [
                    row for row in self._audit_rows(wide) if row[0][0].strip() == safe(rule.pattern)
                ],
            ),
            Block(
                "Next",
                lambda wide: fold([("enter ", "accent"), ("opens it", "dim")], wide),
            ),
        ]
        return [
            head,
            *fold([("now       ", "dim"), (names, "text")], self.preview_width),
            BLANK,
            *lay_blocks(blocks, self.preview_width, SIDE_BY_SIDE),
        ]

    def on_lines_chosen(self, event: Lines.Chosen) -> None:
        if self._opened:
            self.svc.run_words(self._opened)
        elif (rule := self._rule_here) is not None:
            from tui.screens.settings.rule import RuleScreen

            self.app.push_screen(RuleScreen(self.of.repo, *rule))


def _severity(severity: str) -> Part:
    """Returns a severity as a part with a sign and a word."""
    return f"{_SIGNS.get(severity, '●')} {severity:<9}", _ROLES.get(severity, "text")


def _rank(severity: str) -> int:
    """Returns the place of a severity among all of them, with 0 for the worst."""
    return [*_ROLES].index(severity) if severity in _ROLES else len(_ROLES)


def _decisions(report: Report, width: int) -> list[Line]:
    """Returns rows with the commands by which the owner decides a report."""
    rows: list[Line] = fold([("enter ", "accent"), ("shows the whole report", "dim")], width)
    rows.append(((f":repo reports decide {safe(report.id[:8])} …", "accent"),))
    for option, words in _DECISIONS.items():
        rows += fold([("   ", "text"), (f"{option:<13}", "accent"), (words, "dim")], width)
    return rows


def _dependency(dependency: Dependency) -> Item:
    sure = any(hit.certain for hit in dependency.advisories)
    sign: Part = ("  ✗ ", "bad") if sure else ("  ? ", "warn")
    many = count(len(dependency.advisories), "advisory", "advisories")
    left: Line = (sign, (f"{safe(dependency.name)} ", "text"), (safe(dependency.requirement), "dim"))
    right: Line = ((f"{many if sure else f'perhaps {many}'} ", sign[1]),)
    return Item(_key_of(dependency), left, right, dependency.name)


def _key_of(dependency: Dependency) -> str:
    return f"dependency {dependency.path} {dependency.name}"


def _versions(affected: Affected) -> str:
    """Returns in a few words which versions of a package an advisory affects."""
    for span in affected.ranges:
        fixed = next((event.fixed for event in span.events if event.fixed), None)
        if fixed is not None:
            return f"  fixed in {safe(fixed)}"
    return f"  {safe(', '.join(affected.versions[:VERSIONS]))}" if affected.versions else ""
