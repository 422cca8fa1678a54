"""What the command line offers for an argument of a command: only what the command can act on, such as open
issues for `issue close`.

    offered = Offered(svc, repo_id, changed)
    offered.values("issue close", "number")  # {"12": "Leak in the pool"}

The names come from the server, for the repository that the app shows. `changed` is called when they have
arrived."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from localstore.core.model.check import Check
from localstore.core.model.issue import IssueQuery
from localstore.core.model.proposal import ProposalQuery
from localstore.core.model.ref import Ref
from localstore.core.model.run import Run
from localstore.core.words import state_of_proposal
from tui import contents
from tui.commands import Parameter

if TYPE_CHECKING:
    from tui.asked import AskedApp
    from tui.listed import ListedIssue, ListedProposal
    from tui.reads import Read

SHORT = 12  # characters of the id of a run
ISSUES: Mapping[str, tuple[str, ...]] = {"issue close": ("open",), "issue reopen": ("closed",)}
"""States of the issues that a command can act on; other commands take every issue."""
PROPOSALS: Mapping[str, tuple[str, ...]] = {
    "pr close": ("open", "draft"),
    "pr reopen": ("closed",),
    "pr merge": ("open",),
    "pr ready": ("open", "draft"),
    "pr review": ("open", "draft"),
    "pr update-branch": ("open", "draft"),
}
RUNNING = ("repo run cancel", "repo run update", "repo run watch")  # commands for a run that has not ended
ENDED = ("repo run rerun",)
LABELS = {
    ("issue label add", "labels"),
    ("issue label remove", "labels"),
    ("pr label add", "labels"),
    ("pr label remove", "labels"),
    ("label edit", "name"),
    ("label delete", "name"),
}
CHECKS = {"repo checks enable": False, "repo checks disable": True}  # whether the check is required before
RULES = ("repo protect set", "repo protect clear")


def argument_at(fields: Sequence[Parameter], words: Sequence[str]) -> Parameter | None:
    """Returns the parameter that the next word of a command line gives a value to. Returns None if the
    command takes no further word. `words`: those after the command that are complete."""
    options = {spelled: field for field in fields for spelled in field.spelled}
    arguments = [field for field in fields if not field.spelled]
    waiting: Parameter | None = None
    for word in words:
        if waiting is not None:
            waiting = None
        elif word.startswith("-") and len(word) > 1:
            option = options.get(word)
            waiting = option if option is not None and not option.flag else None
        elif arguments and not arguments[0].many:
            arguments.pop(0)
    return waiting or (arguments[0] if arguments else None)


class Offered:
    """Offers the values of arguments. `repo_id`: the repository that is shown."""

    def __init__(self, svc: AskedApp, repo_id: str, changed: Callable[[], None]) -> None:
        self._svc, self.repo_id, self._changed = svc, repo_id, changed
        self._known: dict[str, Any] = {}

    def values(self, path: str, name: str) -> dict[str, str] | None:
        """Returns the values for a parameter of a command, each with its meaning. Returns None if the app
        has no list of them."""
        first, repo = path.partition(" ")[0], self.repo_id
        if name == "number" and first == "issue":
            return _numbers(self._read(contents.issues(repo, IssueQuery(state="all"))), ISSUES.get(path))
        if name == "number" and first == "pr":
            read = contents.proposals(repo, ProposalQuery(state="all"))
            return _numbers(self._read(read), PROPOSALS.get(path))
        if name == "run" and path.startswith("repo run "):
            return _runs(path, self._read(contents.runs(repo)))
        if name == "version" and path.startswith("repo release ") and path != "repo release create":
            return {
                release.version: f"at {release.seal_id[:8]}"
                for release in self._read(contents.releases(repo))
            }
        if (path, name) in LABELS:
            return {label.name: label.description or "" for label in self._read(contents.labels(repo))}
        return self._rules(path, name)

    def refs(self, kinds: Collection[str]) -> dict[str, str]:
        """Returns the branches and tags, each with its kind. `kinds`: only those."""
        refs: list[Ref] = self._read(contents.refs(self.repo_id))
        return {ref.name: ref.type for ref in refs if ref.type in kinds}

    def _rules(self, path: str, name: str) -> dict[str, str] | None:
        """Returns the same for checks and for patterns of branches."""
        if path in CHECKS and name == "name":
            checks: list[Check] = self._read(contents.checks(self.repo_id))
            words = "required" if CHECKS[path] else "not required yet"
            return {check.name: words for check in checks if check.enabled is CHECKS[path]}
        if path in RULES and name == "branch":
            rules = self._read(contents.protections(self.repo_id))
            return {rule.pattern: "has a rule" for rule in rules} or None
        return None

    def _read(self, read: Read[list[Any]]) -> list[Any]:
        """Returns what is known of a list, and requests it once."""
        if read.key not in self._known:
            self._known[read.key] = []
            arrives = [False]

            def take(items: list[Any], at: float) -> None:
                self._known[read.key] = items
                if arrives[0]:
                    self._changed()

            self._svc.load(read, take)
            arrives[0] = True
        items: list[Any] = self._known[read.key]
        return items


def _numbers(
    items: Sequence[ListedIssue] | Sequence[ListedProposal], states: Sequence[str] | None
) -> dict[str, str]:
    """Returns the numbers of issues or proposals with their titles, the open ones first. `states`: only
    those."""
    listed: list[tuple[bool, int, str]] = []
    for item in items:
        state = state_of_proposal(item.state, getattr(item, "draft", False))
        if states is None or state in states:
            is_open = state in ("open", "draft")
            title = item.title if is_open or states is not None else f"{item.title}  ({state})"
            listed.append((not is_open, -item.number, title))
    return {str(-number): title for _, number, title in sorted(listed)}


def _runs(path: str, runs: Sequence[Run]) -> dict[str, str]:
    ended = {True: path not in RUNNING, False: path not in ENDED}
    return {
        run.id[:SHORT]: f"{run.name} at {run.seal_id[:8]}, {run.conclusion or run.status}"
        for run in runs
        if ended[run.status == "completed"]
    }
