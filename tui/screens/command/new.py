"""Opens the form of a new issue, proposal or release, if the command line lacks its title."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from typing import Any, cast

from localstore.core.errors import SvcError
from localstore.core.model.ref import Ref
from localstore.core.model.repo import Repo
from tui import contents
from tui.asked import AskedApp
from tui.client import sentence
from tui.screens.base import READING_SECONDS, Base

Values = Mapping[str, str]

# Command → what names the new thing, and its options that the form has → the form's names.
TITLES = {"issue create": "title", "pr create": "title", "repo release create": "version"}
KNOWN: dict[str, dict[str, str]] = {
    "issue create": {"body": "body", "label": "labels", "assignee": "assignees", "template": "template"},
    "pr create": {
        "body": "body",
        "label": "labels",
        "assignee": "assignees",
        "reviewer": "reviewers",
        "base": "base",
        "head": "head",
        "draft": "draft",
    },
    "repo release create": {"paths": "files", "ref": "ref", "notes": "notes", "sign": "sign"},
}
SEVERAL = ("labels", "assignees", "reviewers")


def opens_form(svc: AskedApp, path: str, values: Values) -> bool:
    """Open the form of a new issue, proposal or release with these values. Does nothing if the command line
    has a title, or an option that the form lacks. Returns whether the form was opened."""
    options = KNOWN.get(path)
    if options is None or values.get(TITLES[path]) or not set(values) <= {*options, "repo", "repository"}:
        return False
    repo = _repo_of(svc, values.get("repo", ""))
    if repo is None:
        return False
    begun: dict[str, Any] = {
        options[name]: _as_form(options[name], value)
        for name, value in values.items()
        if name in options and value
    }
    if path == "issue create":
        _with_refs(svc, repo, lambda refs: _issue(svc, repo, refs, begun))
    elif path == "pr create":
        _with_refs(svc, repo, lambda refs: _proposal(svc, repo, refs, begun))
    else:
        _with_refs(svc, repo, lambda refs: _release(svc, repo, refs, begun))
    return True


def _as_form(name: str, value: str) -> Any:
    if name in SEVERAL:
        return shlex.split(value)
    return True if name in ("draft", "sign") else value


def _repo_of(svc: AskedApp, full_name: str) -> Repo | None:
    """Returns the repository with this name or, if the name is "", the one that the screen shows. Returns
    None if the repository is not known here."""
    screen = svc.screen
    current = screen.subject()[0] if isinstance(screen, Base) else None
    if not full_name or (current is not None and current.full_name == full_name):
        return current
    listed = svc.client.read_cached(svc.repos)
    return next((repo for repo in listed[0] if repo.full_name == full_name), None) if listed else None


def _with_refs(svc: AskedApp, repo: Repo, then: Callable[[list[Ref]], None]) -> None:
    """Request the branches and tags of the repository, and call `then` with them. If the server cannot be
    reached, call it with the cached ones."""
    screen, client, read = cast("Base", svc.screen), svc.client, contents.refs(repo.id)

    def open_with(refs: list[Ref]) -> None:
        if svc.screen is screen:
            then(refs)

    def refuse(words: str) -> None:
        screen.drop_keys()
        screen.say(words, "warn")

    def work() -> None:
        try:
            refs, _ = client.fetch(read)
        except SvcError as error:
            cached, words = client.read_cached(read), sentence(error)
            svc.later(lambda: open_with(cached[0]) if cached is not None else refuse(words))
        else:
            svc.later(lambda: open_with(refs))

    screen.hold_keys(READING_SECONDS)
    # Not with `load`: the screen reads the same, and a newer reading would replace this one.
    svc.run_worker(work, thread=True, group="new", exclusive=True, exit_on_error=False)


def _issue(svc: AskedApp, repo: Repo, refs: list[Ref], begun: dict[str, Any]) -> None:
    from tui.screens.talk.new_issue import NewIssue

    head = next((ref.head for ref in refs if ref.name == repo.default_branch), None)
    template = begun.pop("template", "")
    svc.push_screen(NewIssue(repo, head, (), begun, template))


def _proposal(svc: AskedApp, repo: Repo, refs: list[Ref], begun: dict[str, Any]) -> None:
    from tui.screens.talk.choose_head import ChooseHead
    from tui.screens.talk.new_proposal import NewProposal

    base, head = repo.default_branch, begun.pop("head", "")

    def open_form(name: str, taken: Mapping[str, int]) -> None:
        svc.push_screen(NewProposal(repo, name, refs, (), begun, taken))

    if head:
        open_form(head, {})
    elif any(ref.type == "branch" and ref.name != base for ref in refs):
        svc.push_screen(ChooseHead(repo, refs, open_form))
    elif isinstance(svc.screen, Base):
        svc.screen.drop_keys()
        svc.screen.say(f"there is no branch besides {base}; make one with :repo branch NAME", "warn")


def _release(svc: AskedApp, repo: Repo, refs: list[Ref], begun: dict[str, Any]) -> None:
    from tui.screens.lists.new_release import NewRelease

    listed = svc.client.read_cached(contents.releases(repo.id))
    taken = [release.version for release in listed[0]] if listed is not None else []
    svc.push_screen(NewRelease(repo, refs, taken, begun))
