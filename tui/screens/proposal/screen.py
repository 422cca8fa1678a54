"""The screen of one proposal: its state, text and comments, and what can be done with it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.cells import cell_len
from textual.app import ComposeResult

from localstore.core.model.access import Collaborator
from localstore.core.model.check import Rollup, SealChecks
from localstore.core.model.history import ChangedFile, Compare
from localstore.core.model.issue import Comment
from localstore.core.model.proposal import Proposal, Version
from localstore.core.model.repo import Repo
from localstore.core.model.review import Review
from localstore.core.model.rights import RANK
from localstore.core.model.thread import Thread
from svc.flows.happened import list_happened
from svc.flows.place.rights import refusal
from tui import contents
from tui.actions import Action, find_key, remap
from tui.changed import counts_of, sign_of
from tui.listed import ListedProposal
from tui.screens.base import READING_SECONDS
from tui.screens.facts import beside_facts, fact_rows
from tui.screens.proposal.files import Files
from tui.screens.proposal.next_step import next_step
from tui.screens.proposal.review import VERDICTS, Reviewing, waiting
from tui.screens.proposal.words import (
    BLOCKS,
    checks_of,
    conflict_way_out,
    merges_when,
    must_pass,
    reasons,
    says_all_reasons,
    sign_of_check,
    signed_merge,
    state_of,
    verdicts_of,
)
from tui.screens.talk.previews import first_left, reviewer_line
from tui.screens.talk.reviewers import Written, reviewer_rows, roles_of, written_by
from tui.screens.talk.talk import SINCE, Listed, Talk, Timed
from tui.text import Part, ago, fold, safe
from tui.texts import first_words, item
from tui.widgets.hunks import SIGNS, texts
from tui.widgets.lines import Item, Lines, sequence

if TYPE_CHECKING:
    from tui.markdown.words import Row as TextRow

SAID: dict[str, Part] = {
    "approve": ("✓ approved", "good"),
    "request_changes": ("✗ requests changes", "bad"),
    "comment": ("says", "dim"),
}
Row = tuple[Part, ...]
PUSHED = "proposal.push"  # the kind of event of a new version
NEW = "new"  # the name of the fact that says what is new, and the key of its row
NAME = 10  # columns of the name of a fact
QUOTED_MAX = 256 * 1024  # characters of the changes of a file in which quoted lines are looked for


def _action(id: str, key: str, label: str, command: str, right: str, footer: bool = False) -> Action:
    return Action(id, tuple(key.split()), label, f"svc pr {command}", "signed_in", footer, right)


class ProposalScreen(Reviewing, Talk):
    NOUN = "proposal"
    ACTIONS = (
        Action("open", ("enter",), "files", "svc pr diff {n}", footer=True),
        _action("comment", "c", "comment", "comment {n} -b TEXT", "comment.create", True),
        _action("write", "E", "comment in $EDITOR", "comment {n}", "comment.create"),
        *VERDICTS,
        Action("machine", (), "this machine: models, apps", "svc llm status"),
        _action("merge", "M", "merge", "merge {n}", "proposal.merge_prepare", True),
        Action("changed_since", ("V",), "what changed since", "svc pr range-diff {n}", footer=True),
        Action("checkout", ("o",), "check out", "svc pr checkout {n}"),
        _action("close", "z", "close or reopen", "close {n}", "proposal.close", True),
        _action("draft", "d", "ready or draft", "ready {n}", "proposal.ready", True),
        _action("edit", "T", "edit the text", "edit {n} -b TEXT", "proposal.edit"),
        _action("edit_comment", "C", "edit the comment", "comment {n} --edit-last -b TEXT", "", True),
        _action("title", "t", "change the title", "edit {n} -t TEXT", "proposal.edit"),
        _action("label", "l", "labels", "label add {n} NAME", "issue.label"),
        _action("assign", "u", "assign or unassign me", "edit {n} --add-assignee @me", "issue.assign"),
        _action("people", "U", "assign people", "edit {n} --add-assignee NAME", "issue.assign"),
        _action("reviewer", "v", "ask for a review", "edit {n} --add-reviewer NAME", "proposal.reviewers"),
        _action("react", "e", "react", "react {n} REACTION", "reaction.add"),
    )
    one: Proposal | None

    def __init__(self, repo: Repo, number: int, row: Listed | None = None) -> None:
        super().__init__(repo, number, row)
        self._reviews: list[Review] = []
        self._versions: list[Version] = []
        self._checks: SealChecks | None = None
        self._files: list[ChangedFile] = []
        self._threads: list[Thread] = []
        self._quoted: dict[str, Row] = {}  # the lines that threads are about, by the id of the thread

    def label_of(self, action: Action) -> str:
        label, proposal = super().label_of(action), self.one
        if label and action.id == "open":
            key = self.lines.key if self.lines is not None else None
            if key == NEW:
                return "what is new"
            if self._pushed_here(key):
                return "what changed"
            is_event = isinstance(key, tuple) and key[0] == "event" and bool(key[1])
            return "its thread" if is_event else label
        if proposal is None or not label:
            return label
        if action.id == "changed_since":
            two = self._since
            if two is None:
                return ""
            return "changed since your review" if self._reviewed else f"what version {two[1].n} changed"
        if action.id in ("approve", "changes", "merge", "draft") and proposal.state != "open":
            return ""
        if action.id == "approve" and self.mine(proposal):
            return ""
        if action.id == "merge" and proposal.draft:
            return ""
        if action.id == "merge" and merges_when(proposal) and proposal.blocked_by:
            return "cancel the merge"
        return ("ready" if proposal.draft else "") if action.id == "draft" else label

    @property
    def _reviewed(self) -> int:
        """The newest version on which the account has given a review, 0 if it has given none."""
        account = self.svc.client.account
        mine = (review.version for review in self._reviews if account and review.reviewer.handle == account)
        return max(mine, default=0)

    @property
    def _since(self) -> tuple[Version, Version] | None:
        """The two versions that V compares: the reviewed one and the newest one. Without a review, these are
        the last two. None if there are no two."""
        if not self._versions:
            return None
        newest = max(version.n for version in self._versions)
        return self._two(self._reviewed or newest - 1, newest)

    def _two(self, old: int, new: int) -> tuple[Version, Version] | None:
        """Returns the versions with these numbers, None if they are the same or not known."""
        by_number = {version.n: version for version in self._versions}
        is_known = old < new and old in by_number and new in by_number
        return (by_number[old], by_number[new]) if is_known else None

    def _pushed_here(self, key: object) -> tuple[Version, Version] | None:
        """Returns the version that the row with this key is about, and the one before it. Returns None if
        the row is not about a version that changes another."""
        number = 0
        if isinstance(key, tuple) and key[0] == "version":
            number = int(key[1])
        elif isinstance(key, tuple) and key[0] == "event":
            pushed = next((it for it in self.timeline if (it.id, it.kind) == (key[2], PUSHED)), None)
            number = int(str(pushed.data.get("version", 0))) if pushed is not None else 0
        return self._two(number - 1, number)

    def _compare(self, two: tuple[Version, Version]) -> None:
        """Show what differs between two versions."""
        from tui.screens.code.comparison import ComparedRef, Comparison

        old, new = (ComparedRef(version.head[:8], "seal", version.head) for version in two)
        self.app.push_screen(Comparison(self.repo, old, new))

    def do_changed_since(self) -> None:
        two = self._since
        if two is not None:
            self._compare(two)
        else:
            self.say("nothing was pushed since", "dim")

    @property
    def _approves(self) -> bool:
        """Whether an approval of the account counts, because it has write access."""
        viewer = self.repo.viewer
        return viewer is not None and RANK[viewer.role] >= RANK["write"]

    def command_of(self, action: Action) -> str:
        proposal = self.one
        if action.id == "draft" and proposal is not None:
            return "svc pr ready {n}" if proposal.draft else "svc pr ready {n} --undo"
        if action.id == "merge" and self.label_of(action) == "cancel the merge":
            return "svc pr merge {n} --disable-auto"
        if action.id == "changed_since" and self._since is not None:
            old, new = self._since
            return f"svc pr range-diff {{n}} {old.n}..{new.n}"
        return super().command_of(action)

    def facts(self) -> dict[str, str]:
        seal = {"seal": self.one.head_seal} if self.one is not None else {}
        return {"pr": str(self.number), **seal}

    def content(self) -> ComposeResult:
        yield from beside_facts(Lines(searches=True, linked=True, waiting="asking the server", id="proposal"))

    def title_parts(self) -> Sequence[Part]:
        return ((f" {safe(self.repo.full_name)} #{self.number}", "title"), (f"  {self.known_title}", "text"))

    def on_mount(self) -> None:
        super().on_mount()
        self.paint()
        self.do_refresh()

    def on_screen_suspend(self) -> None:
        self.stale = True  # a command may merge it

    def on_resize(self) -> None:
        self.paint()

    def do_refresh(self) -> None:
        self.svc.load(contents.proposal(self.repo.id, self.number), self._paint_one)
        self.svc.load(contents.comments(self.repo.id, self.number), self._paint_comments)
        self.svc.load(contents.reviews(self.repo.id, self.number), self._paint_reviews)
        self.svc.load(contents.versions(self.repo.id, self.number), self._paint_versions)
        self.svc.load(contents.threads(self.repo.id, self.number), self._paint_threads)
        self.load_timeline()

    def _paint_one(self, proposal: Proposal, at: float) -> None:
        self.one = proposal
        self.paint()
        self.show_frame()
        if self.app.screen is self:
            self.svc.load(contents.seal_checks(self.repo.id, proposal.head_seal), self._paint_checks)
            self.svc.load(
                contents.changes(self.repo.id, proposal.base_seal, proposal.head_seal), self._paint_files
            )

    def _paint_comments(self, comments: list[Comment], at: float) -> None:
        self.comments = comments
        self.paint()

    def _paint_reviews(self, reviews: list[Review], at: float) -> None:
        self._reviews = reviews
        self.paint()

    def _paint_versions(self, versions: list[Version], at: float) -> None:
        self._versions = versions
        self.paint()

    def _paint_threads(self, threads: list[Thread], at: float) -> None:
        self._threads = threads
        self._quoted.clear()
        self.paint()

    def _paint_checks(self, checks: SealChecks, at: float) -> None:
        self._checks = checks
        self.paint()

    def _paint_files(self, comparison: Compare, at: float) -> None:
        self._files = comparison.files
        self._quoted.clear()
        self.paint()

    def queue_changed(self) -> None:
        self.paint()

    # --- rows

    def paint(self) -> None:
        proposal = self.one
        if proposal is None:
            self._paint_unread()
            return
        talk = self._talk(proposal)
        new = self.find_new(talk)
        title = self.title_rows(proposal.title)
        standing = self._standing(proposal, self.new_words(new))
        of_new = next((at for at, row in enumerate(standing, len(title)) if row[0][0].strip() == NEW), -1)
        rows: list[TextRow | Row] = [
            *title,
            *standing,
            *self._conflict_rows(proposal),
            (("", "text"),),
        ]
        rows += self.text_rows(proposal.body) if proposal.body.strip() else [(("no text", "dim"),)]
        rows += self.reaction_rows(proposal.reactions)
        facts = [*self._check_rows(proposal)]
        if not self.has_facts:
            rows += facts
        items = [item(NEW if place == of_new else place, row) for place, row in enumerate(rows)]
        items += [] if self.has_facts else self._file_items()
        versions = [] if self.has_facts else self._version_items()
        items += versions
        items += self.in_order(talk, new)
        items += [item(("queued", place), row) for place, row in enumerate(self.queued_rows())]
        self.show_talk(self.query_one("#proposal", Lines), items)
        self.lead_to(NEW, bool(new))
        self.show_facts(
            [
                *self.people_rows(proposal),
                *fact_rows("reviewers", *(reviewer_line(reviewer) for reviewer in proposal.reviewers)),
                *(Item(None, row) for row in facts[1:]),
                *self._file_items(),
                *self._version_items(),
            ]
        )

    def _paint_unread(self) -> None:
        row = self._row
        if row is not None or self.queued_rows():
            state = state_of(row) if isinstance(row, ListedProposal) else None
            self.query_one("#proposal", Lines).show(sequence(self.unread_items(state)))
            self.place_frames()

    def _standing(self, proposal: Proposal, new: str) -> list[Row]:
        """Returns rows about the state of a proposal. `new`: what is new since it was read last."""
        named = self._checks if self._checks and self._checks.seal_id == proposal.head_seal else None
        rollup: Rollup = named.rollup if named else proposal.checks
        head = (
            proposal.head
            if proposal.head_repo is None or proposal.head_repo.id == self.repo.id
            else (f"{proposal.head_repo.full_name}:{proposal.head}")
        )
        check, verdict = checks_of(rollup, named.items if named else ()), verdicts_of(proposal)
        chips: list[Part] = [
            state_of(proposal),
            (f"  {safe(proposal.base)} ← {safe(head)}", "accent"),
            (f"  @{safe(proposal.author.handle or '?')}", "person"),
            (f" {ago(proposal.created_at, self.svc.clock())}", "dim"),
            (f"  {check[0]}" if check[0] else "", check[1]),
            (f"  {verdict[0]}" if verdict[0] else "", verdict[1]),
        ]
        is_open = proposal.state == "open"
        is_blocked = is_open and not says_all_reasons(proposal)
        people = " ".join(f"@{person.handle or '?'}" for person in proposal.assignees)
        merges = not refusal("proposal.merge_prepare", self.repo, self.mine(proposal))
        facts: list[tuple[str, list[Part]]] = [
            (NEW, _said(f"{new}; enter goes there" if new else "", "accent")),
            (
                "next",
                next_step(
                    proposal,
                    self.svc.client.account,
                    self._key_of,
                    merges=merges,
                    approves=self._approves,
                    shows_since=self._reviewed > 0 and self._since is not None,
                ),
            ),
            ("merge", self._signed_parts(proposal)),
            (
                "pending",
                _said(f"{self.pending()} of your comments wait for A, X or S" if self.pending() else ""),
            ),
            ("threads", _said(f"{proposal.threads.open} open" if proposal.threads.open else "")),
            ("labels", [] if self.has_facts else first_left(self.label_parts(proposal))),
            ("assigned", [] if self.has_facts else _said(people, "person")),
            ("reviewers", [] if self.has_facts else _reviewers(proposal)),
            ("state", _said(BLOCKS.get(proposal.merge_state, "") if is_open else "", "warn")),
            ("blocked", _said("; ".join(reasons(proposal)) if is_blocked else "", "warn")),
            ("closes", _said(" ".join(f"#{number}" for number in proposal.closes), "accent")),
            ("before it", _said(" ".join(f"#{number}" for number in proposal.depends_on), "accent")),
        ]
        rows = fold(chips, self.text_width)
        for name, parts in facts:
            lines = fold(parts, self.text_width - NAME) if parts else []
            rows += [
                ((f"{name if place == 0 else '':<{NAME}}", "dim"), *line) for place, line in enumerate(lines)
            ]
        return rows

    def _signed_parts(self, proposal: Proposal) -> list[Part]:
        """Returns parts that say what a merge that is signed in advance waits for, who signed it, and which
        key cancels it. Returns [] if none is signed."""
        when = merges_when(proposal)
        if not when:
            return []
        key = self._key_of("merge")
        ways: list[Part] = [("  ", "text"), (key, "accent"), (" to cancel it", "dim")] if key else []
        return [(f"{when}  ", "warn"), *signed_merge(proposal, self.svc.clock()), *ways]

    def _key_of(self, action: str) -> str:
        """Returns the key of an action of this screen as people write it, "" if it has none. A card may be in
        front of the screen."""
        return find_key(action, remap(self.actions(), self.svc.keys))

    def _conflict_rows(self, proposal: Proposal) -> list[Row]:
        """Returns rows with the files in which a merge has conflicts, and how to resolve them. Returns [] if
        there are no conflicts."""
        if not proposal.conflicts:
            return []
        rows: list[Row] = [
            (("", "text"),),
            (("Conflicts", "title"), (f"  with {safe(proposal.base)}", "dim")),
        ]
        rows += [(("✗ ", "bad"), (safe(path), "text")) for path in proposal.conflicts]
        return [*rows, ((conflict_way_out(proposal), "dim"),)]

    def _check_rows(self, proposal: Proposal) -> list[Row]:
        checks = self._checks
        if checks is None or not checks.items:
            return []
        at: Part = (f"  at {checks.seal_id[:8]}", "dim")
        rows: list[Row] = [
            (("", "text"),),
            (("Checks ", "title"), checks_of(checks.rollup, checks.items), at),
        ]
        for check in sorted(checks.items, key=lambda check: not check.required):
            words = first_words(check.summary) if check.summary else ""
            if check.run_id is None:
                words = "no run for this seal yet"
            summary: Part = (f"  {safe(words)}" if words else "", "dim")
            rows.append(
                (sign_of_check(check), (f" {safe(check.name)}", "text"), must_pass(check, proposal), summary)
            )
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
            counts, path, key = counts_of(file), safe(file.path), ("file", file.path)
            if not self.has_facts:
                kind: Part = (f"{file.status:<9}", "dim")
                items.append(Item(key, (kind, (f"{path}  ", "text"), *counts)))
                continue
            room = self.facts_room - 3 - sum(len(text) for text, _ in counts)
            path = path if cell_len(path) <= room else "…" + path[1 - room :]
            items.append(Item(key, (sign_of(file), (f" {path}", "text")), counts))
        return items

    def _version_items(self) -> list[Item]:
        """Returns a row for each version. Enter on it shows what it changed of the one before."""
        if not self._versions:
            return []
        title: Row = (("Versions ", "title"), (str(len(self._versions)), "dim"))
        items = [Item(("versions", place), row) for place, row in enumerate(((("", "text"),), title))]
        for version in self._versions:
            who = f"@{safe(version.by.handle or '?')} " if version.by else ""
            when = f"  {who}{ago(version.at, self.svc.clock())}"
            row: Row = ((f"{version.n:>3}  ", "dim"), (version.head[:8], "accent"), (when, "dim"))
            items.append(Item(("version", version.n), row))
        return items

    def _talk(self, proposal: Proposal) -> list[Timed]:
        """Returns the comments, the reviews, and what else happened."""
        talk = [
            *self.timed_comments(),
            *self.timed_lines(list_happened(self.timeline, proposal, self._threads)),
        ]
        for review in self._reviews:
            who = f"@{safe(review.reviewer.handle or '?')} "
            stale = " · stale" if review.stale else " · dismissed" if review.dismissed_at else ""
            advice = "" if review.counts or review.verdict == "comment" else " · advice"
            when = f" · {ago(review.created_at, self.svc.clock())} · version {review.version}"
            head: Row = ((who, "person"), SAID[review.verdict], (f"{stale}{advice}{when}", "dim"))
            rows = self.card_rows(head, review.body)
            is_line = not review.body.strip()
            rows = rows[1:] if is_line else rows  # its blank row
            items = [item(("review", review.id, place), row) for place, row in enumerate(rows)]
            talk.append(Timed(review.created_at, items, is_line, review.reviewer.handle or ""))
        return talk

    def line_of(self, thread: Thread) -> Row:
        row = self._quoted.get(thread.id)
        if row is None:
            row = self._quoted[thread.id] = self._find_line(thread)
        return row

    def _find_line(self, thread: Thread) -> Row:
        """Returns the first line with text that a thread is about, from the changes of its file. Returns ()
        if they do not have it, or if they are large."""
        at = thread.place
        patch = next((file for file in self._files if at is not None and file.path == at.path), None)
        if at is None or patch is None or len(patch.patch or "") > QUOTED_MAX:
            return ()
        for line in texts(patch):
            number = line.old if thread.side == "old" else line.new
            if at.start <= number <= at.end and line.text.strip():
                mark = "text" if line.kind == "text" else f"{line.kind}_mark"
                return (
                    (f"{number:>4} ", "gutter"),
                    (f"{SIGNS[line.kind]} ", mark),
                    (safe(line.text.strip()), "dim"),
                )
        return ()

    # --- what one can do

    def on_lines_chosen(self, event: Lines.Chosen) -> None:
        if self.one is None:
            return
        key, path, thread = event.key, "", ""
        two = self._pushed_here(key)
        if two is not None:
            self._compare(two)
            return
        if key == NEW:
            event.lines.go_to(SINCE)
            return
        if isinstance(key, tuple) and key[0] in ("file", "event"):
            path = str(key[1])
            thread = self._thread_of(key[2]) if key[0] == "event" else ""
        self.app.push_screen(Files(self.repo, self.one, path, thread))

    def _thread_of(self, event: int) -> str:
        """Returns the id of the thread that an event of the talk is about. Returns "" if it is about none."""
        happened = list_happened(self.timeline, self.one, self._threads)
        return next((it.thread.id for it in happened if it.id == event and it.thread is not None), "")

    def get_proposal(self) -> Proposal | None:
        return self.one

    def pending(self) -> int:
        return waiting(self._threads)

    def do_merge(self) -> None:
        from tui.screens.proposal.merge import Merge

        proposal = self.one
        if proposal is None:
            return
        if proposal.state != "open" or proposal.draft:
            state = "a draft; d says it is ready" if proposal.draft else proposal.state
            self.say(f"#{proposal.number} is {state}", "warn")
            return
        checks = self._checks if self._checks and self._checks.seal_id == proposal.head_seal else None
        self.app.push_screen(Merge(proposal, checks, self.repo))

    def do_checkout(self) -> None:
        if self.svc.place.repo_id != self.repo.id:
            self.say(f"svc was not started in a folder of {self.repo.full_name}; cd there first", "warn")
            return
        words = ["pr", "checkout", str(self.number), "-R", self.repo.full_name]
        self.svc.run_here(words, f"checking out #{self.number}")

    def do_draft(self) -> None:
        if self.one is not None:
            self.patch(draft=not self.one.draft)

    def do_reviewer(self) -> None:
        if self.one is None:
            return
        if refusal("collaborator.list", self.repo):
            self._choose_reviewers(None)
            return
        waits = [True]

        def choose(collaborators: list[Collaborator], at: float) -> None:
            if self.in_front and waits:
                waits.clear()
                self._choose_reviewers(collaborators)

        self.hold_keys(READING_SECONDS)
        read = contents.collaborators(self.repo.id)
        self.svc.load(read, choose, lambda error: self._choose_reviewers(None))

    def _choose_reviewers(self, collaborators: Sequence[Collaborator] | None) -> None:
        """Let the user mark who is asked for a review, among the people with a role in the repository. If
        these are unknown (None), among those who took part in the talk. A typed handle that is not among them
        is asked too."""
        from tui.screens.choose import ChooseSeveral

        proposal = self.one
        if proposal is None:
            return
        requested = [reviewer.who.handle for reviewer in proposal.reviewers if reviewer.state == "requested"]
        talk = [comment.author.handle for comment in self.comments]
        owner, viewer = self.repo.full_name.partition("/")[0], self.repo.viewer
        people = [
            *(person.account.handle for person in collaborators or () if person.state == "active"),
            *(reviewer.who.handle for reviewer in proposal.reviewers),
            *([self.svc.client.account] if viewer is not None and viewer.role else []),
            *(handle for handle in talk if collaborators is None or handle == owner),
        ]
        author = proposal.author.handle  # nobody reviews a proposal of their own
        handles = dict.fromkeys(handle for handle in people if handle and handle != author)
        roles = roles_of(collaborators or ())
        offered = reviewer_rows(handles, roles, None, 0)

        def apply(added: list[str], removed: list[str]) -> None:
            changes = {"add_reviewers": added, "remove_reviewers": removed}
            self.patch(**{name: chosen for name, chosen in changes.items() if chosen})
            self.say(
                "  ".join([*(f"asking @{name}" for name in added), *(f"not @{name}" for name in removed)])
            )

        def ask_other(typed: str) -> None:
            handle = typed.strip().removeprefix("@").lower()
            if handle == author:
                self.say("nobody reviews a proposal of their own", "warn")
            else:
                apply([handle], [])

        on = [handle for handle in requested if handle]
        title = f"who reviews #{self.number}; or type a handle"
        card = ChooseSeveral(title, offered, on, apply, ask_other)
        self.app.push_screen(card)
        paths = [file.old_path or file.path for file in self._files if file.status != "added"]

        def paint(written: Written, at: float) -> None:
            if card.remains:
                card.offer(reviewer_rows(handles, roles, written, len(self._files)))

        read = written_by(self.repo.id, proposal.base_seal, paths)
        self.svc.load(read, paint)


def _said(words: str, role: str = "text") -> list[Part]:
    """Returns the words as a list with one part. Returns [] for ""."""
    return [(safe(words), role)] if words else []


def _reviewers(proposal: Proposal) -> list[Part]:
    """Returns the reviewers with their verdicts, as parts of one row."""
    parts: list[Part] = []
    for reviewer in proposal.reviewers:
        parts += [("   " if parts else "", "text"), *reviewer_line(reviewer)]
    return parts
