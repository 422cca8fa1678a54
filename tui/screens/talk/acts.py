"""The actions that the user can do with an issue or a proposal, both on its screen and on its row in a
list."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from localstore.core.endpoint import Endpoint
from localstore.core.model import issue as issues
from localstore.core.model import proposal as proposals
from localstore.core.model.access import Collaborator
from localstore.core.model.issue import CommentBody, Issue, IssuePatch
from localstore.core.model.label import Label
from localstore.core.model.proposal import Proposal, ProposalPatch
from localstore.core.model.repo import Repo
from svc.flows.place.rights import refusal
from tui import contents
from tui.actions import Action
from tui.drafts import name_draft
from tui.listed import ListedIssue, ListedProposal
from tui.screens.base import READING_SECONDS, Base, Undo
from tui.screens.talk.previews import colours_of, first_left, label_parts
from tui.text import Part, safe

if TYPE_CHECKING:
    from textual.widget import Widget

    from tui.asked import AskedApp

    Mixed = Widget
else:
    Mixed = object

Noun = Literal["issue", "proposal"]
_UPDATES: dict[Noun, tuple[Endpoint[Any], type[IssuePatch] | type[ProposalPatch]]] = {
    "issue": (issues.UPDATE, IssuePatch),
    "proposal": (proposals.UPDATE, ProposalPatch),
}
_KINDS: dict[Noun, str] = {"issue": "issues", "proposal": "proposals"}  # in paths of the API
DRAFTED: Part = ("✎ draft comment", "warn")
_LABELS: dict[Noun, tuple[Endpoint[Any], Endpoint[Any]]] = {
    "issue": (issues.ADD_LABEL, issues.REMOVE_LABEL),
    "proposal": (proposals.ADD_LABEL, proposals.REMOVE_LABEL),
}

ABOUT_ONE = ("open", "comment", "label", "close", "assign", "people", "title", "edit", "write")
"""Actions that need an issue or a proposal under the cursor."""


class About(NamedTuple):
    """The issue or proposal that actions are about. `item`: its content, None until that has arrived."""

    noun: Noun
    repo: Repo
    number: int
    item: Issue | Proposal | ListedIssue | ListedProposal | None


def waiting_state(svc: AskedApp, repo_id: str, noun: Noun, number: int) -> str:
    """Returns the state (open or closed) that an issue or a proposal gets from what waits in the outbox.
    Returns "" if nothing there changes its state."""
    path, sending = f"/repos/{repo_id}/{_KINDS[noun]}/{number}", svc.outbox.sending
    states = [
        str(entry.value.get("state") or "")
        for entry in svc.outbox.entries
        if entry.path == path
        and entry.state != "refused"
        and isinstance(entry.value, dict)
        and sending is not None
        and sending.is_mine(entry)
    ]
    return next((state for state in reversed(states) if state), "")


def waiting_part(svc: AskedApp, repo_id: str, noun: Noun, number: int) -> Part:
    """Returns what waits in the outbox for an issue or a proposal as a part, such as `⋯ closing`. Its text is
    "" if nothing waits."""
    state = waiting_state(svc, repo_id, noun, number)
    if state:
        return ("⋯ closing" if state == "closed" else "⋯ opening", "warn")
    count = len(svc.outbox.describe(f"/repos/{repo_id}/{_KINDS[noun]}/{number}")) if svc.outbox.entries else 0
    return (f"⋯ {count} queued" if count else "", "warn")


def has_draft(svc: AskedApp, repo_id: str, number: int) -> bool:
    """Returns whether the account has begun a comment on an issue or a proposal and not sent it."""
    return svc.drafts is not None and svc.drafts.exists(name_draft(repo_id, number))


class Acts(Mixed):
    """The actions about an issue or a proposal, for a screen or a tab. Subclasses define `chosen` and
    `front`."""

    @property
    def front(self) -> Base:
        """The screen that shows the issue or proposal."""
        raise NotImplementedError

    @property
    def chosen(self) -> About | None:
        """The issue or proposal that the actions are about, None if the cursor is on neither."""
        raise NotImplementedError

    def act_label(self, action: Action) -> str:
        """Returns the label of an action on the issue or proposal under the cursor, for the line of keys.
        Returns "" if the action can do nothing there."""
        about = self.chosen
        if action.id not in ABOUT_ONE:
            return action.label
        if about is None:
            return ""
        item = about.item
        if item is not None and action.id == "close":
            return {"open": "close", "closed": "reopen"}.get(self._state_of_one(about, item.state), "")
        if action.id == "comment" and has_draft(self.front.svc, about.repo.id, about.number):
            return "go on writing"
        if item is not None and action.id == "assign":
            mine = any(person.handle == self.front.svc.client.account for person in item.assignees)
            return "unassign me" if mine else "assign me"
        return action.label

    def act_command(self, action: Action) -> str:
        """Returns the command that does what an action does with the issue or proposal under the cursor as it
        is now."""
        about = self.chosen
        item = about.item if about is not None else None
        if action.id == "close" and about is not None and item is not None:
            closed = action.command.replace(" close ", " reopen ")
            state = self._state_of_one(about, item.state)
            return {"open": action.command, "closed": closed}.get(state, "")
        if action.id == "assign" and item is not None:
            mine = any(person.handle == self.front.svc.client.account for person in item.assignees)
            return action.command.replace("--add-", "--remove-") if mine else action.command
        return action.command

    def about_one(self) -> About | None:
        """Returns the issue or proposal that the actions are about. If there is none, shows a message and
        returns None."""
        if self.chosen is None:
            self.front.say("there is nothing under the cursor", "warn")
        return self.chosen

    def do_comment(self) -> None:
        about = self.about_one()
        if about is not None:
            draft = name_draft(about.repo.id, about.number)
            self.front.write(f"comment on #{about.number}", lambda text: self._post(about, text), draft)

    def do_write(self) -> None:
        about = self.about_one()
        if about is not None:
            self.front.svc.compose_text(
                name_draft(about.repo.id, about.number), lambda text: self._post(about, text)
            )

    def _post(self, about: About, text: str) -> None:
        if text.strip():
            self.change(about, issues.COMMENT, CommentBody(body=text.strip()))

    def _state_of_one(self, about: About, state: str) -> str:
        """Returns the state that an issue or a proposal has once the outbox is sent. `state`: its state on
        the server."""
        if state == "merged":
            return state
        return waiting_state(self.front.svc, about.repo.id, about.noun, about.number) or state

    def do_close(self) -> None:
        about, item = self._read()
        if about is None or item is None:
            return
        if item.state == "merged":
            self.front.say(f"#{about.number} is merged, and cannot be opened again", "warn")
        else:
            now = self._state_of_one(about, item.state)
            state, doing = ("open", "opening") if now == "closed" else ("closed", "closing")
            self.patch_one(about, state=state)
            self.state_changed(about, state, f"{doing} #{about.number} {safe(item.title)}")

    def state_changed(self, about: About, state: str, words: str) -> None:
        """Called when the user closes or reopens an issue or a proposal. `state`: the state that it gets.
        `words`: a text that says so and names it."""

    def do_title(self) -> None:
        about, item = self._read()
        if about is None or item is None:
            return

        def entitle(text: str) -> None:
            if not text.strip():
                self.front.say(f"a title has words; #{about.number} keeps the one it has", "warn")
            elif text.strip() != item.title:
                self.patch_one(about, title=text.strip())
                undo = Undo("takes it back", lambda: self.patch_one(about, title=item.title))
                self.front.say("title changed", "good", undo)

        self.front.ask(f"title of #{about.number}", entitle, value=item.title)

    def do_assign(self) -> None:
        about, item = self._read()
        if about is None or item is None:
            return
        mine = any(person.handle == self.front.svc.client.account for person in item.assignees)
        self.patch_one(about, **{"remove_assignees" if mine else "add_assignees": ["@me"]})

    def do_people(self) -> None:
        """Let the user choose the people to whom an issue or a proposal is assigned. Those with a role in the
        repository are offered, as far as the account may know them, and those who take part. Others are
        assigned by their typed handle."""
        about, item = self._read()
        if about is None or item is None:
            return
        from tui.screens.choose import ChooseSeveral

        front, on = self.front, [person.handle for person in item.assignees if person.handle]
        waits = [True]

        def apply(added: list[str], removed: list[str]) -> None:
            self.patch_one(about, add_assignees=added, remove_assignees=removed)

        def choose(collaborators: list[Collaborator]) -> None:
            if front.app.screen is not front or not waits:
                return
            waits.clear()
            roles = {them.account.handle: them.role for them in collaborators if them.state == "active"}
            if "owner" not in roles.values():  # else it is an organisation
                roles = {about.repo.owner: "owner", **roles}
            handles = dict.fromkeys([front.svc.client.account, *on, *roles, *self.known_people(about)])
            offered: dict[str, list[Part]] = {
                handle: [(f"@{safe(handle)}", "person"), (f"  {roles.get(handle, '')}", "dim")]
                for handle in handles
                if handle
            }

            def add(typed: str) -> None:
                apply([typed.removeprefix("@")], [])

            card = ChooseSeveral(f"people on #{about.number}", offered, on, apply, add)
            front.app.push_screen(card)

        if refusal("collaborator.list", about.repo):
            choose([])
            return
        front.hold_keys(READING_SECONDS)
        front.svc.load(
            contents.collaborators(about.repo.id), lambda people, at: choose(people), lambda error: choose([])
        )

    def known_people(self, about: About) -> list[str]:
        """Returns the handles of people who take part, as far as they are known: the author and the assignees
        of what is shown."""
        item = about.item
        people = [item.author, *item.assignees] if item is not None else []
        return [person.handle for person in people if person.handle]

    def do_label(self) -> None:
        about, item = self._read()
        if about is None or item is None:
            return
        from tui.screens.choose import ChooseSeveral

        front, on = self.front, [label.name for label in item.labels]
        add, remove = _LABELS[about.noun]
        waits = [True]

        def apply(added: list[str], removed: list[str]) -> None:
            for name in added:
                self.change(about, add, name=name)
            for name in removed:
                self.change(about, remove, name=name)

        def choose(labels: list[Label], at: float) -> None:
            if front.app.screen is front and waits:
                waits.clear()
                colours = colours_of(labels)
                offered = {label.name: first_left(label_parts([label.name], colours)) for label in labels}
                front.app.push_screen(ChooseSeveral(f"labels of #{about.number}", offered, on, apply))

        front.hold_keys(READING_SECONDS)
        front.svc.load(contents.labels(about.repo.id), choose, lambda error: front.drop_keys())

    def _read(self) -> tuple[About | None, Issue | Proposal | ListedIssue | ListedProposal | None]:
        """Returns the issue or proposal that the actions are about, and its content. Each is None if it is
        missing, and a message then says why."""
        about = self.about_one()
        if about is not None and about.item is None:
            self.front.say(f"#{about.number} is not here yet; r asks again", "warn")
        return about, about.item if about is not None else None

    def patch_one(self, about: About, **changes: Any) -> None:
        """Change fields of an issue or a proposal, such as its title. The change is put into the outbox and
        sent."""
        endpoint, patch = _UPDATES[about.noun]
        self.change(about, endpoint, patch(**changes))

    def change(self, about: About, endpoint: Endpoint[Any], body: Any = None, **path: str) -> None:
        """Change an issue or a proposal through this endpoint. The change is put into the outbox and sent.
        `path`: the parameters of the endpoint's path other than repository and number."""
        self.front.svc.outbox.act(
            endpoint, body, about=about.repo.full_name, id=about.repo.id, n=str(about.number), **path
        )
