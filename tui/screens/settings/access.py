"""The panel Access of the settings: collaborators, invitations, requests for access, the members of the
owning organisation, and private paths."""

from __future__ import annotations

from typing import Any, ClassVar, get_args

from localstore.core.endpoint import Endpoint
from localstore.core.model import access, organisation
from localstore.core.model import path as paths
from localstore.core.model.access import (
    AccessGrant,
    AccessRequest,
    Collaborator,
    Granted,
    Invite,
    InviteCreate,
    RoleChange,
)
from localstore.core.model.organisation import (
    Member,
    MemberChange,
    MemberInvite,
    MemberInviteCreate,
    MemberRole,
    Organisation,
)
from localstore.core.model.path import PathRule, PathRuleSet
from localstore.core.tree.policy import Visibility
from tui import contents
from tui.screens.settings import reads
from tui.screens.settings.panel import Panel
from tui.text import safe
from tui.widgets.lines import Item

ROLES: tuple[Granted, ...] = get_args(Granted)
REMOVE = "remove"
MAY: dict[str, str] = {
    "read": "see everything, open issues, comment",
    "triage": "also label, close, reopen and assign",
    "write": "also push, seal, merge, release, record runs",
    "admin": "also change and delete what others wrote",
    REMOVE: "take the role away",
}
"""What a role may do, beyond the role before it."""
MAY_IN: dict[str, str] = {
    "member": "has the role that the organisation gives its members",
    "admin": "has the rights of the owner in all its repositories",
    REMOVE: "take the membership away",
}
SEEN_BY: dict[str, str] = {
    "public": "whoever reads the repository",
    "private": "only those with the role write",
    "open": "whoever reads the repository",
    REMOVE: "leave it to the rule above it",
}
"""Who sees a path."""


class Access(Panel):
    NAME = "Access"
    RIGHTS: ClassVar = {
        "person": "collaborator.role",
        "invited": "invite.cancel",
        "request": "invite.create",
        "invite": "invite.create",
        "member": "member.role",
        "join": "member.invite",
        "path": "path.set",
    }

    VERBS: ClassVar = {
        "person": "change the role",
        "invited": "take back",
        "request": "answer",
        "invite": "invite",
        "member": "change the role",
        "join": "invite",
    }

    _people: tuple[Collaborator, ...] = ()
    _invites: tuple[Invite, ...] = ()
    _requests: tuple[AccessRequest, ...] = ()
    _rules: tuple[PathRule, ...] = ()
    _organisation: Organisation | None = None
    _members: tuple[Member, ...] = ()
    _joining: tuple[MemberInvite, ...] = ()

    def load(self) -> None:
        repo, load = self.repo, self.svc.load
        if self.may_read("collaborator.list"):
            load(contents.collaborators(repo.id), self._paint_people)
        if self.may_read("invite.list"):
            load(contents.invites(repo.id), self._paint_invites)
            load(contents.access_requests(repo.id), self._paint_requests)
        if self.may_read("path.list"):
            load(reads.path_rules(repo.id), self._paint_rules)
        if self.svc.client.account and repo.owner != self.svc.client.account:
            load(reads.organisations(), self._paint_organisation)

    def _paint_people(self, collaborators: list[Collaborator], at: float) -> None:
        self._people = tuple(collaborator for collaborator in collaborators if collaborator.state == "active")
        self.paint()

    def _paint_invites(self, invites: list[Invite], at: float) -> None:
        self._invites = tuple(invite for invite in invites if invite.state == "pending")
        self.paint()

    def _paint_requests(self, requests: list[AccessRequest], at: float) -> None:
        self._requests = tuple(request for request in requests if request.state == "pending")
        self.paint()

    def _paint_rules(self, rules: list[PathRule], at: float) -> None:
        self._rules = tuple(rules)
        self.paint()

    def _paint_organisation(self, organisations: list[Organisation], at: float) -> None:
        owner = next(
            (organisation for organisation in organisations if organisation.handle == self.repo.owner), None
        )
        self._organisation = owner
        if owner is not None:
            self.svc.load(reads.members(owner.handle), self._paint_members)
            if owner.role == "admin":
                self.svc.load(reads.member_invites(owner.handle), self._paint_joining)
        self.paint()

    def _paint_members(self, members: list[Member], at: float) -> None:
        self._members = tuple(member for member in members if member.state == "active")
        self.paint()

    def _paint_joining(self, invites: list[MemberInvite], at: float) -> None:
        self._joining = tuple(invite for invite in invites if invite.state == "pending")
        self.paint()

    # --- rows

    def rows(self) -> list[Item]:
        return [*self._people_rows(), *self._organisation_rows(), *self._path_rows()]

    def _people_rows(self) -> list[Item]:
        if not self.may_read("collaborator.list"):
            return [self.note("who has a role is shown to those with the role triage")]
        rows = [
            self.row("person", handle_of(person), f"@{handle_of(person)}", person.role + _through(person))
            for person in self._people
        ]
        rows += [
            self.row("invited", invite.id, f"@{handle_of(invite)}", f"{invite.role}  * invited")
            for invite in self._invites
        ]
        rows += [
            self.row(
                "request",
                request.id,
                f"@{handle_of(request)}",
                f"asks for {request.role}  {request.note}",
                "warn",
            )
            for request in self._requests
        ]
        return [*rows, self.row("invite", "", "invite somebody", "press a", "dim")]

    def _organisation_rows(self) -> list[Item]:
        owner = self._organisation
        if owner is None:
            return []
        rows = [self.note(f"the organisation {owner.handle}, whose admins have the rights of the owner:")]
        rows += [
            self.row("member", handle_of(member), f"@{handle_of(member)}", f"{member.role} of {owner.handle}")
            for member in self._members
        ]
        rows += [
            self.row("member", handle_of(invite), f"@{handle_of(invite)}", f"{invite.role}  * invited")
            for invite in self._joining
        ]
        if owner.role == "admin":
            rows.append(self.row("join", "", "invite a member", f"into {owner.handle}", "dim"))
        return rows

    def _path_rows(self) -> list[Item]:
        if not self.may_read("path.list"):
            return []
        rows = [
            self.row("path", rule.path, rule.path or "(the whole tree)", rule.visibility)
            for rule in self._rules
        ]
        return [*rows, self.row("path", "+", "rule for a path", "who sees it and what is below it", "dim")]

    # --- changes

    def chosen(self, kind: str, name: str) -> None:
        {
            "person": self._person,
            "invited": self._cancel_invite,
            "request": self._request,
            "invite": lambda _: self.invite(),
            "member": self._member,
            "join": lambda _: self._join(),
            "path": self._path,
        }[kind](name)

    def invite(self) -> None:
        def choose_role(text: str) -> None:
            handle = _handle(text)
            if handle:
                self.choose(
                    f"role of {handle}",
                    ROLES[::-1],
                    lambda role: self.act(access.INVITE, InviteCreate(handle=handle, role=role)),
                    about=MAY,
                )

        self.ask("handle of whom to invite", choose_role)

    def _person(self, handle: str) -> None:
        now = next((person.role for person in self._people if handle_of(person) == handle), None)

        def chosen(role: Any) -> None:
            if role == REMOVE:
                self.type_name(handle, "removed", lambda: self.act(access.REMOVE, handle=handle))
            elif role != now:
                self.act(access.SET_ROLE, RoleChange(role=role), handle=handle)

        self.choose(f"role of {handle}", [*ROLES[::-1], REMOVE], chosen, now, MAY)

    def _cancel_invite(self, invite: str) -> None:
        self.confirm("Take the invitation back?", lambda: self.act(access.CANCEL_INVITE, invite=invite))

    def _request(self, request: str) -> None:
        def chosen(answer: str) -> None:
            if answer == "grant":
                self.act_elsewhere(access.GRANT, AccessGrant(), request_id=request)
            else:
                self.act_elsewhere(access.DECLINE_REQUEST, request_id=request)

        self.choose("request for access", ["grant", "decline"], chosen)

    def _member(self, handle: str) -> None:
        owner = self._organisation
        if owner is None or not self._is_admin():
            return
        org = owner.handle
        now = next((member.role for member in self._members if handle_of(member) == handle), None)

        def chosen(role: Any) -> None:
            if role == REMOVE:
                self.type_name(
                    handle,
                    f"removed from {org}",
                    lambda: self.act_elsewhere(organisation.REMOVE, org=org, handle=handle),
                )
            elif role != now:
                self.act_elsewhere(organisation.SET_ROLE, MemberChange(role=role), org=org, handle=handle)

        self.choose(f"role of {handle} in {org}", [*get_args(MemberRole)[::-1], REMOVE], chosen, now, MAY_IN)

    def _join(self) -> None:
        owner = self._organisation
        if owner is None or not self._is_admin():
            return
        org = owner.handle

        def choose_role(text: str) -> None:
            handle = _handle(text)
            if handle:
                self.choose(
                    f"role of {handle} in {org}",
                    get_args(MemberRole)[::-1],
                    lambda role: self.act_elsewhere(
                        organisation.INVITE, MemberInviteCreate(handle=handle, role=role), org=org
                    ),
                    about=MAY_IN,
                )

        self.ask(f"handle of whom to invite into {org}", choose_role)

    def _is_admin(self) -> bool:
        owner = self._organisation
        if owner is not None and owner.role != "admin":
            self.of.of.say(f"this needs an admin of {owner.handle}, and you are a member", "warn")
        return owner is not None and owner.role == "admin"

    def _path(self, path: str) -> None:
        if path == "+":
            self.ask("path, such as docs/internal; its rule is for all below it", self._new_path)
        else:
            self._rule(path, [*get_args(Visibility), REMOVE])

    def _new_path(self, text: str) -> None:
        if text.strip():
            self._rule(text.strip().strip("/"), list(get_args(Visibility)))

    def _rule(self, path: str, choices: list[str]) -> None:
        now = next((rule.visibility for rule in self._rules if rule.path == path), None)

        def chosen(what: Any) -> None:
            if what == REMOVE:
                self.type_name(
                    path or self.repo.full_name,
                    "left to the rules above it",
                    lambda: self.act(paths.REMOVE, None, {"path": path}),
                )
            elif what != now:
                self.act(paths.SET, PathRuleSet(path=path, visibility=what))

        self.choose(f"who sees {safe(path) or 'the whole tree'}", choices, chosen, now, SEEN_BY)

    def act_elsewhere(self, endpoint: Endpoint[Any], body: Any = None, **path: str) -> None:
        """Put a change into the outbox and send it. It belongs to this repository, although its URL does not
        contain the repository."""
        self.svc.outbox.act(endpoint, body, about=self.repo.full_name, **path)


def handle_of(entry: Collaborator | Invite | AccessRequest | Member | MemberInvite) -> str:
    return entry.account.handle or "?"


def _through(person: Collaborator) -> str:
    return f"  by {person.through}" if person.through else ""


def _handle(text: str) -> str:
    return text.strip().removeprefix("@").lower()
