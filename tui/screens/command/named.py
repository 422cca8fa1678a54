"""Opens what a row of a command's output names: an issue, a proposal, a run, a release, a seal, a branch or a
repository."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

from localstore.core.model.proposal import Proposal
from localstore.core.model.ref import Ref
from localstore.core.model.repo import Repo
from localstore.core.model.thread import Thread
from tui import contents, reads
from tui.commands import Values
from tui.reads import Read
from tui.screens.base import READING_SECONDS, Base
from tui.screens.command.printed import is_head

T = TypeVar("T")
U = TypeVar("U")
_NUMBER, _ID, _WORD, _NAME = r"[0-9]{1,9}", r"[0-9a-f]{8,64}", r"\S+", r"[^\s/#]+/[^\s/#]+"
# By the path of a command: the first column of its table, and what a value in it names.
_TABLES = {
    "issue list": ("NUMBER", "issue"),
    "issue status": ("NUMBER", "issue"),
    "pr list": ("NUMBER", "proposal"),
    "pr status": ("NUMBER", "proposal"),
    "pr threads": ("ID", "thread"),
    "repo run list": ("ID", "run"),
    "repo release list": ("VERSION", "release"),
    "repo branch": ("NAME", "branch"),
    "repo tag list": ("NAME", "tag"),
    "log": ("ID", "seal"),
    "repo list": ("FULL NAME", "repo"),
    "repo search": ("FULL NAME", "repo"),
    "repo forks": ("FULL NAME", "repo"),
    "inbox": ("ITEM", "item"),
}
_VALUES = {
    **dict.fromkeys(("issue", "proposal"), _NUMBER),
    **dict.fromkeys(("thread", "run", "seal"), _ID),
    **dict.fromkeys(("release", "branch", "tag"), _WORD),
    "repo": _NAME,
    "item": rf"{_NAME}(#{_NUMBER})?",
}


class RowName(NamedTuple):
    """What a row names. `kind`: what it is, such as `issue`. `value`: how the row names it."""

    kind: str
    value: str


def names_in(path: str, lines: Sequence[str]) -> list[RowName | None]:
    """Returns what each line of a command's output names, None for a line that names nothing that the app can
    open. `path`: the command."""
    first, kind = _TABLES.get(path, ("", ""))
    named: list[RowName | None] = []
    below_head = False
    for line in lines:
        below_head |= bool(first) and is_head(line) and line.startswith(f"{first} ")
        value = line.split("  ")[0].rstrip()
        is_value = below_head and not is_head(line) and not value.endswith("…")
        is_value = is_value and re.fullmatch(_VALUES[kind], value) is not None
        named.append(RowName(kind, value) if is_value else None)
    return named


def open_named(screen: Base, named: RowName, values: Values) -> None:
    """Open what a row of the output on `screen` names. `values`: those of the parameters of the command that
    printed it, by name."""
    if named.kind in ("repo", "item"):
        full_name, _, number = named.value.partition("#")
        _with_repo(screen, full_name, lambda repo: _open_item(screen, repo, number))
    else:
        opening = Opening(screen, named, values.get("number", ""))
        _with_repo(screen, values.get("repo", ""), opening.open)


def _with_repo(screen: Base, full_name: str, then: Callable[[Repo], None]) -> None:
    """Call `then` with the repository of this name. Without a name it is the one that is shown or, where none
    is, that of the linked folder."""
    repo, linked = screen.subject()[0], screen.svc.place.repo_id
    if repo is not None and full_name in ("", repo.full_name):
        then(repo)
    elif full_name:
        missing = f"you may not see {full_name}; an invitation to it is answered in the inbox: i"
        read = reads.visible_repos()
        _once(
            screen,
            read,
            lambda repos: _first(repo for repo in repos if repo.full_name == full_name),
            then,
            missing,
        )
    elif linked:
        _once(screen, reads.repo(linked), lambda repo: repo, then, "the linked folder has no repository")
    else:
        screen.say("open a repository first: w lists them", "warn")


def _open_item(screen: Base, repo: Repo, number: str) -> None:
    """Open an issue or a proposal with this number or, without a number, the repository."""
    from tui.screens.following import open_number
    from tui.screens.repo import RepoScreen

    if number:
        open_number(screen, repo, int(number))
    else:
        screen.app.push_screen(RepoScreen(repo))


class Opening:
    """Opens what a row of the output on `screen` names in a repository. `number`: that of the proposal which
    the command is about, "" if it is about none."""

    def __init__(self, screen: Base, named: RowName, number: str) -> None:
        self._screen, self._kind, self._value, self._number = screen, named.kind, named.value, number

    def open(self, repo: Repo) -> None:
        getattr(self, f"_open_{self._kind}")(repo)

    def _open_issue(self, repo: Repo) -> None:
        from tui.screens.talk.issue import IssueScreen

        self._screen.app.push_screen(IssueScreen(repo, int(self._value)))

    def _open_proposal(self, repo: Repo) -> None:
        from tui.screens.proposal.screen import ProposalScreen

        self._screen.app.push_screen(ProposalScreen(repo, int(self._value)))

    def _open_run(self, repo: Repo) -> None:
        from tui.screens.lists.runs import RunScreen

        self._open_found(contents.runs(repo.id), self._has_id, lambda run: RunScreen(repo, run.id, run))

    def _open_release(self, repo: Repo) -> None:
        from tui.screens.lists.releases import ReleaseScreen

        read = contents.releases(repo.id)
        self._open_found(read, lambda it: it.version == self._value, lambda it: ReleaseScreen(repo, it))

    def _open_seal(self, repo: Repo) -> None:
        from tui.screens.code.seal import SealScreen

        read = contents.seals_beginning(repo.id, self._value)
        self._open_found(read, self._has_id, lambda seal: SealScreen(repo, seal.id))

    def _open_branch(self, repo: Repo) -> None:
        from tui.screens.repo import RepoScreen

        def is_it(ref: Ref) -> bool:
            return (ref.type, ref.name) == (self._kind, self._value)

        self._open_found(contents.refs(repo.id), is_it, lambda ref: RepoScreen(repo, ref=ref))

    _open_tag = _open_branch

    def _open_thread(self, repo: Repo) -> None:
        from tui.screens.proposal.files import Files

        def show(proposal: Proposal) -> None:
            def files(thread: Thread) -> Files:
                return Files(repo, proposal, thread.place.path if thread.place else "", thread.id)

            self._open_found(contents.threads(repo.id, proposal.number), self._has_id, files)

        read = contents.proposal(repo.id, int(self._number))
        _once(self._screen, read, lambda proposal: proposal, show, self._missing)

    @property
    def _missing(self) -> str:
        return f"{self._kind} {self._value} is not there any more"

    def _has_id(self, item: Any) -> bool:
        return str(item.id).startswith(self._value)

    def _open_found(self, read: Read[list[T]], is_it: Callable[[T], bool], make: Callable[[T], Base]) -> None:
        """Read a list, and open the screen that `make` returns for the item which the row names."""

        def find(items: list[T]) -> T | None:
            return _first(item for item in items if is_it(item))

        _once(self._screen, read, find, lambda item: self._screen.app.push_screen(make(item)), self._missing)


def _first(items: Iterable[T]) -> T | None:
    return next(iter(items), None)


def _once(
    screen: Base, read: Read[T], find: Callable[[T], U | None], then: Callable[[U], object], missing: str
) -> None:
    """Call `then` once with what `find` returns for an answer: for the one that is known or, if it is not in
    that, for the one of the server. Say `missing` if it is in neither. Keys wait meanwhile."""
    is_over, is_newest = False, False  # a known answer is painted before `load` returns

    def paint(answer: T, at: float) -> None:
        nonlocal is_over
        if is_over or not screen.in_front:
            return
        item = find(answer)
        if item is not None:
            is_over = True
            screen.say("")
            then(item)
        elif is_newest:
            is_over = True
            screen.drop_keys()
            screen.say(missing, "warn")

    screen.hold_keys(READING_SECONDS)
    screen.say("◐ asking the server", "dim")
    screen.svc.load(read, paint, lambda error: screen.drop_keys())
    is_newest = True
