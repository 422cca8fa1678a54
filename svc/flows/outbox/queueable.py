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
    replaced by a parameter of the path or query, or by a member of the body. `done` says, in the same way,
    what is so once the request was carried out, "" if that needs no words. In it, `{changes}` is replaced by
    the changed members.

    `apart` is True if several queued requests with the same path must not be joined into one. `local` names
    members of the action's value that are not sent, because only this device uses them. `changed` names what
    a request changes, and then its changed members are described in place of `words`. "" if there is no need
    to describe them."""

    endpoint: Endpoint[Any]
    words: str
    done: str = ""
    apart: bool = False
    local: tuple[str, ...] = ()
    changed: str = ""


ACTIONS: tuple[Action, ...] = (
    Action(repo.UPDATE, "change settings", "{changes}", changed="the repository"),
    Action(label.CREATE, "create label {name}", "label {name} created"),
    Action(label.UPDATE, "change label {name}", "label {name} changed"),
    Action(label.DELETE, "delete label {name}", "label {name} deleted"),
    Action(issue.CREATE, "open issue {title}"),
    Action(issue.UPDATE, "change #{n}", "#{n}: {changes}", changed="#{n}"),
    Action(issue.ADD_LABEL, "add the label {name} to #{n}", "#{n} has the label {name}"),
    Action(issue.REMOVE_LABEL, "remove the label {name} from #{n}", "#{n} has no label {name} any more"),
    Action(issue.COMMENT, "comment on #{n}", "commented on #{n}"),
    Action(issue.EDIT_COMMENT, "change a comment on #{n}", "comment on #{n} changed"),
    Action(issue.DELETE_COMMENT, "delete a comment on #{n}", "comment on #{n} deleted"),
    Action(issue.REACT, "react to #{n} with {reaction}", "reacted to #{n} with {reaction}"),
    Action(issue.UNREACT, "take back {reaction} on #{n}", "took back {reaction} on #{n}"),
    Action(
        issue.REACT_TO_COMMENT,
        "react to a comment on #{n} with {reaction}",
        "reacted to a comment on #{n} with {reaction}",
    ),
    Action(
        issue.UNREACT_TO_COMMENT,
        "take back {reaction} on a comment on #{n}",
        "took back {reaction} on a comment on #{n}",
    ),
    Action(proposal.CREATE, "propose {head}: {title}"),
    Action(proposal.UPDATE, "change proposal #{n}", "#{n}: {changes}", changed="proposal #{n}"),
    Action(proposal.ADD_LABEL, "add the label {name} to proposal #{n}", "proposal #{n} has the label {name}"),
    Action(
        proposal.REMOVE_LABEL,
        "remove the label {name} from proposal #{n}",
        "proposal #{n} has no label {name} any more",
    ),
    Action(review.CREATE, "{verdict} #{n}", "{verdict} #{n}"),
    Action(thread.CREATE, "comment on {path} in #{n}", "commented on {path} in #{n}"),
    Action(thread.COMMENT, "answer on lines of #{n}", "answered on lines of #{n}"),
    Action(thread.UPDATE, "mark a comment on lines of #{n} as {state}"),
    Action(inbox.UPDATE, "mark a row of the inbox as {state}"),
    Action(inbox.UPDATE_ALL, "mark {rows} of the inbox as {state}", apart=True),
    Action(run.RERUN, "run a check again"),
    Action(run.CANCEL, "cancel a run"),
    Action(check.ENABLE, "enable check {name}", "check {name} is among the required checks now"),
    Action(check.DISABLE, "disable check {name}", "check {name} is no required check any more"),
    Action(
        access.INVITE,
        "invite {handle} as {role}",
        "@{handle} is invited as {role}; rights begin when they accept",
    ),
    Action(access.CANCEL_INVITE, "cancel an invitation", "the invitation is taken back"),
    Action(access.SET_ROLE, "give {handle} the role {role}", "@{handle} has the role {role} now"),
    Action(access.REMOVE, "remove collaborator {handle}", "@{handle} has no role here any more"),
    Action(access.GRANT, "grant a request for access", "access granted"),
    Action(access.DECLINE_REQUEST, "decline a request for access", "request for access declined"),
    Action(access.CANCEL_TRANSFER, "take a transfer back", "the transfer is taken back"),
    Action(
        organisation.INVITE,
        "invite {handle} into {org} as {role}",
        "@{handle} is invited into {org} as {role}",
    ),
    Action(
        organisation.SET_ROLE,
        "give {handle} the role {role} in {org}",
        "@{handle} has the role {role} in {org} now",
    ),
    Action(organisation.REMOVE, "remove {handle} from {org}", "@{handle} is no member of {org} any more"),
    Action(path.SET, "show «{path}» as {visibility}", "«{path}» is {visibility} now", apart=True),
    Action(path.REMOVE, "remove the rule for «{path}»", "«{path}» has no rule of its own any more"),
    Action(listing.SET, "list as {name}", "listed as {name}"),
    Action(listing.REMOVE, "remove the listing", "not listed any more"),
    Action(protection.SET, "protect branches {pattern}", "the rule for {pattern} is saved"),
    Action(protection.CLEAR, "remove the rule for branches {pattern}", "the rule for {pattern} is removed"),
    Action(webhook.EDIT, "change a webhook", "webhook: {changes}", changed="a webhook"),
    Action(webhook.DELETE, "delete a webhook", "webhook deleted"),
    Action(webhook.PING, "ping a webhook", "ping sent to the webhook"),
    Action(document.CREATE, "create document {title}", "document {title} created"),
    Action(document.PUT, "change document {known_title} ({id})", local=("known_title", "later")),
    Action(document.ARCHIVE, "archive document {id}", "document archived"),
    Action(document.UNARCHIVE, "unarchive document {id}", "document taken out of the archive"),
)
