"""The list of actions that can be queued. Each is an endpoint with a description in words."""

from __future__ import annotations

from typing import Any, NamedTuple

from localstore.core.endpoint import Endpoint
from localstore.core.model import (
    access,
    check,
    document,
    inbox,
    issue,
    label,
    listing,
    organisation,
    path,
    proposal,
    protection,
    repo,
    review,
    run,
    thread,
    webhook,
)


class Action(NamedTuple):
    """An endpoint whose requests can be queued. `words` describes the effect of a request. In it, `{name}` is
    replaced by a parameter of the path or query, or by a member of the body.

    `apart` is True if several queued requests with the same path must not be joined into one. `local` names
    members of the action's value that are not sent, because only this device uses them. `named` is True if
    the description ends with the names of the changed members."""

    endpoint: Endpoint[Any]
    words: str
    apart: bool = False
    local: tuple[str, ...] = ()
    named: bool = False


ACTIONS: tuple[Action, ...] = (
    Action(repo.UPDATE, "change settings"),
    Action(label.CREATE, "create label {name}"),
    Action(label.UPDATE, "change label {name}"),
    Action(label.DELETE, "delete label {name}"),
    Action(issue.CREATE, "open issue {title}"),
    Action(issue.UPDATE, "change #{n}", named=True),
    Action(issue.ADD_LABEL, "label #{n} {name}"),
    Action(issue.REMOVE_LABEL, "remove label {name} from #{n}"),
    Action(issue.COMMENT, "comment on #{n}"),
    Action(issue.EDIT_COMMENT, "change a comment on #{n}"),
    Action(issue.DELETE_COMMENT, "delete a comment on #{n}"),
    Action(issue.REACT, "react to #{n} with {reaction}"),
    Action(issue.UNREACT, "take back {reaction} on #{n}"),
    Action(issue.REACT_TO_COMMENT, "react to a comment on #{n} with {reaction}"),
    Action(issue.UNREACT_TO_COMMENT, "take back {reaction} on a comment on #{n}"),
    Action(proposal.CREATE, "propose {head}: {title}"),
    Action(proposal.UPDATE, "change proposal #{n}", named=True),
    Action(proposal.ADD_LABEL, "label proposal #{n} {name}"),
    Action(proposal.REMOVE_LABEL, "remove label {name} from proposal #{n}"),
    Action(review.CREATE, "review #{n}: {verdict}"),
    Action(thread.CREATE, "comment on {path} in #{n}"),
    Action(thread.COMMENT, "answer on lines of #{n}"),
    Action(thread.UPDATE, "mark a comment on lines of #{n} as {state}"),
    Action(inbox.UPDATE, "mark as {state} in the inbox"),
    Action(inbox.UPDATE_ALL, "mark rows of the inbox as {state}", apart=True),
    Action(run.RERUN, "run a check again"),
    Action(run.CANCEL, "cancel a run"),
    Action(check.ENABLE, "enable check {name}"),
    Action(check.DISABLE, "disable check {name}"),
    Action(access.INVITE, "invite {handle} as {role}"),
    Action(access.CANCEL_INVITE, "cancel an invitation"),
    Action(access.SET_ROLE, "give {handle} the role {role}"),
    Action(access.REMOVE, "remove collaborator {handle}"),
    Action(access.GRANT, "grant a request for access"),
    Action(access.DECLINE_REQUEST, "decline a request for access"),
    Action(access.CANCEL_TRANSFER, "take a transfer back"),
    Action(organisation.INVITE, "invite {handle} into {org} as {role}"),
    Action(organisation.SET_ROLE, "give {handle} the role {role} in {org}"),
    Action(organisation.REMOVE, "remove {handle} from {org}"),
    Action(path.SET, "show «{path}» as {visibility}", apart=True),
    Action(path.REMOVE, "remove the rule for «{path}»"),
    Action(listing.SET, "list as {name}"),
    Action(listing.REMOVE, "remove the listing"),
    Action(protection.SET, "protect branches {pattern}"),
    Action(protection.CLEAR, "remove the rule for branches {pattern}"),
    Action(webhook.EDIT, "change a webhook"),
    Action(webhook.DELETE, "delete a webhook"),
    Action(webhook.PING, "ping a webhook"),
    Action(document.CREATE, "create document {title}"),
    Action(document.PUT, "change document {known_title} ({id})", local=("known_title", "later")),
    Action(document.ARCHIVE, "archive document {id}"),
    Action(document.UNARCHIVE, "unarchive document {id}"),
)
