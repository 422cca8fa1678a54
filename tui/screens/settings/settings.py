"""Settings of a repository: one list of panels; enter changes the row under the cursor."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, get_args

from textual.app import ComposeResult

from localstore.core.endpoint import Endpoint
from localstore.core.model import repo as repos
from localstore.core.model.collaboration import access, check
from localstore.core.model.collaboration.access import (
    AccessGrant,
    AccessRequest,
    Collaborator,
    Granted,
    Invite,
    InviteCreate,
    RoleChange,
)
from localstore.core.model.collaboration.check import Check
from localstore.core.model.repo import Repo, RepoPatch
from tui import reads
from tui.actions import Action
from tui.rights import refusal
from tui.screens.view import View
from tui.text import Part, safe
from tui.widgets.lines import Item, Lines, sequence

if TYPE_CHECKING:
    from tui.screens.repo import RepoScreen

ABSENT = ("Listing", "Upstream source", "Marketplace", "Automation")  # panels without routes here
ROLES: tuple[Granted, ...] = get_args(Granted)
RIGHTS = {
    "general": "repo.update",
    "lifecycle": "repo.update",
    "delete": "repo.delete",
    "person": "collaborator.role",
    "invite": "invite.create",
    "invited": "invite.cancel",
    "request": "invite.create",
    "check": "check.enable",
}


class Settings(View):
    ACTIONS = (
        Action("open", ("enter",), "change", "svc repo edit", "signed_in", footer=True),
        Action(
            "add", ("a",), "invite", "svc repo collaborator add {handle}", "signed_in", True, "invite.create"
        ),
        Action(
            "check",
            ("c",),
            "ask for a check",
            "svc repo checks enable {name}",
            "signed_in",
            True,
            "check.enable",
        ),
    )

    def __init__(self, of: RepoScreen) -> None:
        super().__init__(of)
        self._people: list[Collaborator] = []
        self._invites: list[Invite] = []
        self._requests: list[AccessRequest] = []
        self._checks: list[Check] = []

    @property
    def repo(self) -> Repo:
        return self.of.repo

    def compose(self) -> ComposeResult:
        yield Lines(id="settings")

    def shown(self) -> None:
        self.paint()
        self.do_refresh()

    def do_refresh(self) -> None:
        repo = self.repo
        self.svc.load(reads.repo(repo.id), self._paint_repo)
        self.svc.load(reads.checks(repo.id), self._paint_checks)
        if not refusal("collaborator.list", repo):
            self.svc.load(reads.collaborators(repo.id), self._paint_people)
        if not refusal("invite.list", repo):
            self.svc.load(reads.invites(repo.id), self._paint_invites)
            self.svc.load(reads.access_requests(repo.id), self._paint_requests)

    def _paint_repo(self, repo: Repo, at: float) -> None:
        self.of.repo = repo
        self.paint()

    def _paint_checks(self, found: list[Check], at: float) -> None:
        self._checks = found
        self.paint()

    def _paint_people(self, found: list[Collaborator], at: float) -> None:
        self._people = [one for one in found if one.state == "active"]
        self.paint()

    def _paint_invites(self, found: list[Invite], at: float) -> None:
        self._invites = [one for one in found if one.state == "pending"]
        self.paint()

    def _paint_requests(self, found: list[AccessRequest], at: float) -> None:
        self._requests = [one for one in found if one.state == "pending"]
        self.paint()

    def queue_changed(self) -> None:
        self.paint()

    # --- rows

    def paint(self) -> None:
        repo = self.repo
        rows = [
            _heading("General"),
            _row(("general", "description"), "description", repo.description or "none"),
            _row(("general", "default_branch"), "default branch", repo.default_branch),
            _row(("general", "name"), "name", repo.name),
            _heading("Access"),
            *self._access(),
            _heading("Checks"),
            *(
                _row(("check", one.name), one.name, "✓ has to pass" if one.enabled else "- not asked for")
                for one in self._checks
            ),
            _row(("check", ""), "ask for a check", "press c"),
            _heading("Lifecycle"),
            _row(("lifecycle", "visibility"), "visibility", repo.visibility),
            _row(("lifecycle", "archive"), "archived", "yes: it takes no writes" if repo.archived else "no"),
            _row(("delete", ""), "delete", "type its name; it can be restored for 30 days", "bad"),
        ]
        for name in ABSENT:
            rows += [_heading(name), Item(None, (("  not in this version", "dim"),))]
        waiting = self.svc.queued(f"/repos/{repo.id}")
        rows += [Item(None, ((f"⋯ queued  {safe(words)}", "warn"),)) for words in waiting]
        self.query_one("#settings", Lines).show(sequence(rows))

    def _access(self) -> list[Item]:
        why = refusal("collaborator.list", self.repo)
        if why:
            return [Item(None, ((f"  {why}", "dim"),))]
        rows = [_row(("person", _handle(one)), f"@{_handle(one)}", one.role) for one in self._people]
        rows += [
            _row(("invited", one.id), f"@{_handle(one)}", f"{one.role}  * invited") for one in self._invites
        ]
        rows += [
            _row(("request", one.id), f"@{_handle(one)}", f"asks for {one.role}  {one.note}", "warn")
            for one in self._requests
        ]
        return [*rows, _row(("invite", ""), "invite somebody", "press a")]

    # --- changes

    def on_lines_chosen(self, event: Lines.Chosen) -> None:
        if not isinstance(event.key, tuple):
            return
        kind, name = event.key
        why = refusal(RIGHTS[kind], self.repo)
        if why:
            self.of.say(why, "warn")
            return
        changes: dict[str, Callable[[str], None]] = {
            "general": self._general,
            "person": self._person,
            "invited": self._invited,
            "request": self._request,
            "invite": lambda _: self.do_add(),
            "check": self._check,
            "lifecycle": self._lifecycle,
            "delete": lambda _: self._delete(),
        }
        changes[kind](name)

    def _general(self, name: str) -> None:
        repo = self.repo
        if name == "description":
            self.of.ask(
                "description", lambda text: self._update(description=text.strip()), value=repo.description
            )
        elif name == "name":
            self.of.ask("new name; the old one leads here for 90 days", self._rename, value=repo.name)
        else:
            branches = [ref.name for ref in self.of.refs if ref.type == "branch"]
            self._choose("default branch", branches, lambda branch: self._update(default_branch=branch))

    def _rename(self, text: str) -> None:
        name = text.strip()
        if name and name != self.repo.name:
            self.svc.run_line(shlex.join(["repo", "rename", self.repo.full_name, name]))

    def do_add(self) -> None:
        def invited(typed: str) -> None:
            handle = typed.strip().removeprefix("@").lower()
            if handle:
                self._choose(
                    f"role of {handle}",
                    ROLES[::-1],
                    lambda role: self._act(access.INVITE, InviteCreate(handle=handle, role=role)),
                )

        self.of.ask("handle of whom to invite", invited)

    def _person(self, handle: str) -> None:
        def chosen(role: Any) -> None:
            if role == "remove":
                self._act(access.REMOVE, handle=handle)
            else:
                self._act(access.SET_ROLE, RoleChange(role=role), handle=handle)

        self._choose(f"role of {handle}", [*ROLES[::-1], "remove"], chosen)

    def _invited(self, invite: str) -> None:
        self._confirm("take the invitation back? y", lambda: self._act(access.CANCEL_INVITE, invite=invite))

    def _request(self, request: str) -> None:
        def chosen(answer: str) -> None:
            if answer == "grant":
                self._act(access.GRANT, AccessGrant(), request_id=request)
            else:
                self._act(access.DECLINE_REQUEST, request_id=request)

        self._choose("request for access", ["grant", "decline"], chosen)

    def do_check(self) -> None:
        def done(typed: str) -> None:
            if typed.strip():
                self._act(check.ENABLE, name=typed.strip())

        self.of.ask("name of a check that has to pass, such as test", done)

    def _check(self, name: str) -> None:
        if not name:
            self.do_check()
            return
        enabled = any(one.name == name and one.enabled for one in self._checks)
        self._act(check.DISABLE if enabled else check.ENABLE, name=name)

    def _lifecycle(self, name: str) -> None:
        repo = self.repo
        if name == "archive":
            words = "accept writes again? y" if repo.archived else "refuse every write until unarchived? y"
            self._confirm(words, lambda: self._update(archived=not repo.archived))
        elif repo.visibility == "public":
            self._confirm("make it private? y", lambda: self._update(visibility="private"))
        else:
            self._confirm("show its whole history to everybody? y", lambda: self._update(visibility="public"))

    def _delete(self) -> None:
        def done(typed: str) -> None:
            if typed.strip() == self.repo.full_name:
                self.svc.run_line(shlex.join(["repo", "delete", self.repo.full_name, "--yes"]))
            else:
                self.of.say("that is not its name; nothing was deleted", "warn")

        self.of.ask(f"type {self.repo.full_name} to delete it", done)

    def _confirm(self, words: str, then: Callable[[], None]) -> None:
        def done(typed: str) -> None:
            if typed.strip().lower() in ("y", "yes"):
                then()

        self.of.ask(words, done)

    def _choose(self, what: str, names: Any, chosen: Callable[[Any], None]) -> None:
        from tui.screens.choose import Choose

        items = [Item(name, ((safe(name), "text"),)) for name in names]
        self.app.push_screen(Choose(what, items, chosen))

    def _update(self, **changes: Any) -> None:
        self._act(repos.UPDATE, RepoPatch(**changes))

    def _act(self, endpoint: Endpoint[Any], body: Any = None, **path: str) -> None:
        self.svc.act(endpoint, body, about=self.repo.full_name, id=self.repo.id, **path)


def _handle(one: Collaborator | Invite | AccessRequest) -> str:
    return one.account.handle or "?"


def _heading(text: str) -> Item:
    return Item(None, ((text, "title"),))


def _row(key: tuple[str, str], name: str, value: str, role: str = "text") -> Item:
    parts: tuple[Part, ...] = ((f"  {safe(name):<18} ", "dim"), (safe(value), role))
    return Item(key, parts, text=f"{name} {value}")
