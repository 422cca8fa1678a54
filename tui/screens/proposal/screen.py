"""One proposal: state, comments, files, and actions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual.app import ComposeResult

from localstore.core.model.collaboration import proposal as proposals
from localstore.core.model.collaboration.check import Rollup, SealChecks
from localstore.core.model.collaboration.issue import Comment
from localstore.core.model.collaboration.proposal import Proposal, ProposalPatch, Reviewer, Version
from localstore.core.model.collaboration.review import Review
from localstore.core.model.collaboration.thread import Thread
from localstore.core.model.history import ChangedFile, Compare
from localstore.core.model.repo import Repo
from localstore.core.words import reasons_to_wait
from tui import contents
from tui.actions import Action
from tui.screens.facts import beside_facts, fact_rows
from tui.screens.proposal.files import Files
from tui.screens.proposal.review import VERDICTS, Reviewing, waiting
from tui.screens.proposal.words import (
    BLOCKS,
    checks_of,
    conflict_way_out,
    refuses_merge,
    sign_of_check,
    state_of,
    verdicts_of,
)
from tui.screens.talk.talk import Talk
from tui.text import Part, ago, safe
from tui.texts import item
from tui.widgets.lines import Item, Lines, sequence

if TYPE_CHECKING:
    from tui.markdown.words import Row as TextRow

SAID: dict[str, Part] = {
    "approve": ("✓ approved", "good"),
    "request_changes": ("✗ requests changes", "bad"),
    "comment": ("says", "dim"),
}
Row = tuple[Part, ...]


def _action(id: str, key: str, label: str, command: str, right: str, footer: bool = False) -> Action:
    return Action(id, tuple(key.split()), label, f"svc pr {command}", "signed_in", footer, right)


class ProposalScreen(Reviewing, Talk):
    UPDATE, PATCH = proposals.UPDATE, ProposalPatch
    ADD_LABEL, REMOVE_LABEL = proposals.ADD_LABEL, proposals.REMOVE_LABEL
    ACTIONS = (
        Action("open", ("enter",), "files", "svc pr diff {n}", footer=True),
        _action("comment", "c", "comment", "comment {n} -b TEXT", "comment.create", True),
        _action("write", "E", "comment in $EDITOR", "comment {n}", "comment.create"),
        *VERDICTS,
        _action("merge", "M", "merge", "merge {n} --squash", "proposal.merge_prepare", True),
        Action("checkout", ("o",), "check out", "svc pr checkout {n}"),
        _action("close", "z", "close or reopen", "close {n}", "proposal.close"),
        _action("draft", "d", "ready or draft", "ready {n}", "proposal.ready"),
        _action("title", "t", "change the title", "edit {n} -t TEXT", "proposal.edit"),
        _action("label", "l", "add or remove a label", "label add {n} {name}", "issue.label"),
        _action("assign", "u", "assign or unassign me", "edit {n}", "issue.assign"),
        _action("reviewer", "v", "ask for a review", "edit {n}", "proposal.reviewers"),
        _action("react", "e", "react", "react {n} {reaction}", "reaction.add"),
    )
    one: Proposal | None

    def __init__(self, repo: Repo, number: int) -> None:
        super().__init__(repo, number)
        self._reviews: list[Review] = []
        self._versions: list[Version] = []
        self._checks: SealChecks | None = None
        self._files: list[ChangedFile] = []
        self._threads: list[Thread] = []
        self._left = False

    def facts(self) -> dict[str, str]:
        seal = {"seal": self.one.head_seal} if self.one is not None else {}
        return {"pr": str(self.number), **seal}

    def content(self) -> ComposeResult:
        yield from beside_facts(Lines(searches=True, linked=True, empty="…", id="proposal"))

    def title_parts(self) -> Sequence[Part]:
        title = safe(self.one.title) if self.one else ""
        return ((f" {safe(self.repo.full_name)} #{self.number}", "title"), (f"  {title}", "text"))

    def on_mount(self) -> None:
        super().on_mount()
        self.do_refresh()

    def on_screen_suspend(self) -> None:
        self._left = True

    def on_screen_resume(self) -> None:
        super().on_screen_resume()
        if self._left:  # a command may have merged it
            self.do_refresh()

    def on_resize(self) -> None:
        self.paint()

    def do_refresh(self) -> None:
        self.svc.load(contents.proposal(self.repo.id, self.number), self._paint_one)
        self.svc.load(contents.comments(self.repo.id, self.number), self._paint_comments)
        self.svc.load(contents.reviews(self.repo.id, self.number), self._paint_reviews)
        self.svc.load(contents.versions(self.repo.id, self.number), self._paint_versions)
        self.svc.load(contents.threads(self.repo.id, self.number), self._paint_threads)

    def _paint_one(self, one: Proposal, at: float) -> None:
        self.one = one
        self.paint()
        self.show_frame()
        if self.app.screen is self:
            self.svc.load(contents.seal_checks(self.repo.id, one.head_seal), self._paint_checks)
            self.svc.load(contents.changes(self.repo.id, one.base_seal, one.head_seal), self._paint_files)

    def _paint_comments(self, found: list[Comment], at: float) -> None:
        self.comments = found
        self.paint()

    def _paint_reviews(self, found: list[Review], at: float) -> None:
        self._reviews = found
        self.paint()

    def _paint_versions(self, found: list[Version], at: float) -> None:
        self._versions = found
        self.paint()

    def _paint_threads(self, found: list[Thread], at: float) -> None:
        self._threads = found
        self.paint()

    def _paint_checks(self, found: SealChecks, at: float) -> None:
        self._checks = found
        self.paint()

    def _paint_files(self, found: Compare, at: float) -> None:
        self._files = found.files
        self.paint()

    def queue_changed(self) -> None:
        self.paint()

    # --- rows

    def paint(self) -> None:
        one = self.one
        if one is None:
            return
        rows: list[TextRow | Row] = [*self._standing(one), *self._conflict_rows(one), (("", "text"),)]
        rows += self.text_rows(one.body) if one.body.strip() else [(("no text", "dim"),)]
        rows += self.reaction_rows(one.reactions)
        facts = [*self._check_rows()]
        if not self.has_facts:
            rows += facts
        items = [item(place, row) for place, row in enumerate(rows)]
        items += [] if self.has_facts else self._file_items()
        rest: list[TextRow | Row] = [] if self.has_facts else [*self._version_rows()]
        for _, said in sorted([*self._talk()], key=lambda timed: timed[0]):
            rest += said
        rest += self.queued_rows()
        items += [item(("rest", place), row) for place, row in enumerate(rest)]
        self.query_one("#proposal", Lines).show(sequence(items))
        reviewers = "  ".join(_standing_of(it) for it in one.reviewers)
        self.show_facts(
            [
                *self.people_rows(one),
                *fact_rows("reviewers", [(safe(reviewers), "text")]),
                *(Item(None, row) for row in facts[1:]),
                *self._file_items(),
                *(Item(None, row) for row in self._version_rows()),
            ]
        )

    def _standing(self, one: Proposal) -> list[Row]:
        named = self._checks if self._checks and self._checks.seal_id == one.head_seal else None
        rollup: Rollup = named.rollup if named else one.checks
        head = (
            one.head
            if one.head_repo is None or one.head_repo.id == self.repo.id
            else (f"{one.head_repo.full_name}:{one.head}")
        )
        opened = f"  @{safe(one.author.handle or '?')} {ago(one.created_at, self.svc.clock())}"
        check, verdict = checks_of(rollup, named.items if named else ()), verdicts_of(one)
        rows: list[Row] = [
            (
                state_of(one),
                (f"  {safe(one.base)} ← {safe(head)}", "accent"),
                (opened, "dim"),
                (f"  {check[0]}", check[1]),
                (f"  {verdict[0]}", verdict[1]),
            )
        ]
        facts = [
            ("pending   ", f"{self.pending()} of your comments wait for A, X or S" if self.pending() else ""),
            ("labels    ", " ".join(label.name for label in one.labels)),
            ("assigned  ", " ".join(f"@{person.handle or '?'}" for person in one.assignees)),
            ("reviewers ", " ".join(_standing_of(it) for it in one.reviewers)),
            ("state     ", BLOCKS.get(one.merge_state, "") if one.state == "open" else ""),
            ("blocked   ", "; ".join(reasons_to_wait(one.blocked_by)) if one.state == "open" else ""),
            ("closes    ", " ".join(f"#{number}" for number in one.closes)),
            ("before it ", " ".join(f"#{number}" for number in one.depends_on)),
        ]
        if self.has_facts:
            facts = [fact for fact in facts if fact[0].strip() not in ("labels", "assigned", "reviewers")]
        return rows + [((name, "dim"), (safe(value), "text")) for name, value in facts if value]

    def _conflict_rows(self, one: Proposal) -> list[Row]:
        """Rows with the conflicting files of a merge, and how to resolve them."""
        if not one.conflicts:
            return []
        rows: list[Row] = [(("", "text"),), (("Conflicts", "title"), (f"  with {safe(one.base)}", "dim"))]
        rows += [(("✗ ", "bad"), (safe(path), "text")) for path in one.conflicts]
        return [*rows, ((conflict_way_out(one), "dim"),)]

    def _check_rows(self) -> list[Row]:
        checks = self._checks
        if checks is None or not checks.items:
            return []
        rows: list[Row] = [(("", "text"),), (("Checks ", "title"), checks_of(checks.rollup, checks.items))]
        for check in checks.items:
            must = "  required" if check.required else ""
            summary = f"  {safe(check.summary)}" if check.summary else ""
            rows.append((sign_of_check(check), (f" {safe(check.name)}", "text"), (must + summary, "dim")))
        return rows

    def _file_items(self) -> list[Item]:
        if not self._files:
            return []
        items = [
            Item("files", (("", "text"),)),
            Item(
                "heading",
                (("Files ", "title"), (str(len(self._files)), "dim"), ("  enter shows them", "dim")),
            ),
        ]
        for file in self._files:
            counts = ((f"  +{file.additions}", "add_mark"), (f" −{file.deletions}", "delete_mark"))
            left = ((f"{file.status:<9}", "dim"), (safe(file.path), "text"), *counts)
            items.append(Item(("file", file.path), left))
        return items

    def _version_rows(self) -> list[Row]:
        rows: list[Row] = [(("", "text"),), (("Versions ", "title"), (str(len(self._versions)), "dim"))]
        for version in self._versions:
            who = f"@{safe(version.by.handle or '?')} " if version.by else ""
            when = f"  {who}{ago(version.at, self.svc.clock())}"
            rows.append(((f"{version.n:>3}  ", "dim"), (version.head[:8], "accent"), (when, "dim")))
        return rows if self._versions else []

    def _talk(self) -> list[tuple[str, Sequence[TextRow | Row]]]:
        """Comments and reviews with their times."""
        said: list[tuple[str, Sequence[TextRow | Row]]] = [
            (comment.created_at, self.comment_rows(comment)) for comment in self.comments
        ]
        for review in self._reviews:
            who = f"── @{safe(review.reviewer.handle or '?')} "
            stale = " · stale" if review.stale else " · dismissed" if review.dismissed_at else ""
            advice = "" if review.counts or review.verdict == "comment" else " · advice"
            when = f" · {ago(review.created_at, self.svc.clock())} · version {review.version}"
            head: Row = ((who, "person"), SAID[review.verdict], (f"{stale}{advice}{when}", "dim"))
            text = self.text_rows(review.body) if review.body.strip() else []
            said.append((review.created_at, [(("", "text"),), head, *text]))
        return said

    # --- what one can do

    def on_lines_chosen(self, event: Lines.Chosen) -> None:
        if self.one is not None:
            path = event.key[1] if isinstance(event.key, tuple) and event.key[0] == "file" else ""
            self.app.push_screen(Files(self.repo, self.one, str(path)))

    def reviewed(self) -> Proposal | None:
        return self.one

    def pending(self) -> int:
        return waiting(self._threads)

    def do_merge(self) -> None:
        from tui.screens.proposal.merge import Merge

        one = self.one
        if one is None:
            return
        if one.state != "open" or one.draft:
            self.say(f"#{one.number} is {'a draft; d says it is ready' if one.draft else one.state}", "warn")
            return
        why = refuses_merge(one)
        if why:
            self.say(f"#{one.number} cannot be merged: {why}", "warn")
            return
        checks = self._checks if self._checks and self._checks.seal_id == one.head_seal else None
        self.app.push_screen(Merge(one, checks, self._merge_by))

    def _merge_by(self, way: str, deletes: bool) -> None:
        from tui.screens.proposal.merge import REPLACING, lost_with

        one, words = self.one, ["pr", "merge", str(self.number), *([way] if way else [])]
        if not deletes or one is None:
            self._run(*words)
            return
        words += ["--delete-branch", "--yes"]
        if way in REPLACING and not one.cross_repository:
            # the command would ask, and it has no terminal to ask on
            self.confirm(lost_with(one), lambda: self._run(*words))
        else:
            self._run(*words)

    def do_checkout(self) -> None:
        if self.svc.place.repo_id != self.repo.id:
            self.say(f"svc was not started in a folder of {self.repo.full_name}; cd there first", "warn")
            return
        self._run("pr", "checkout", str(self.number))

    def _run(self, *words: str) -> None:
        self.svc.run_words([*words, "-R", self.repo.full_name])

    def do_draft(self) -> None:
        if self.one is not None:
            self.patch(draft=not self.one.draft)

    def do_reviewer(self) -> None:
        if self.one is None:
            return
        asked = {reviewer.who.handle for reviewer in self.one.reviewers if reviewer.state == "requested"}

        def done(typed: str) -> None:
            handle = typed.strip().removeprefix("@").lower()
            if handle:
                self.patch(**{"remove_reviewers" if handle in asked else "add_reviewers": [handle]})

        self.ask("handle of who is asked for a review; of one who is asked: no longer", done)


def _standing_of(one: Reviewer) -> str:
    """A reviewer and their verdict."""
    return f"@{one.who.handle or '?'} {one.state.replace('_', ' ')}{' (stale)' if one.stale else ''}"
