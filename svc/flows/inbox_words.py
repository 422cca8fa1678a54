"""Texts for the rows of the inbox, for the command and the app."""

from __future__ import annotations

from typing import Final

from localstore.core.model.inbox import InboxItem

_SAID: Final[dict[str, str]] = {
    "invite.create": "{who} invites you",
    "invite.decline": "{who} declined your invitation",
    "access.request": "{who} asks for a role",
    "access.grant": "{who} gave you the role that you asked for",
    "access.change": "{who} gave you the role that you asked for",
    "transfer.create": "{who} offers it to you",
    "transfer.decline": "{who} declined the transfer",
    "report.create": "{who} reports a fault in its security",
    "report.decide": "{who} decided on your security report",
    "webhook.disable": "a webhook was switched off",
}

_HAPPENED: Final[dict[str, str]] = {
    "issue.create": "{who} opened it",
    "issue.edit": "{who} edited it",
    "issue.close": "{who} closed it",
    "issue.reopen": "{who} opened it again",
    "issue.assign": "{who} assigned it",
    "comment.create": "{who} commented",
    "comment.edit": "{who} edited a comment",
    "thread.create": "{who} commented on a line",
    "thread.comment": "{who} answered on a line",
    "thread.edit": "{who} edited a comment",
    "proposal.create": "{who} proposed it",
    "proposal.edit": "{who} edited it",
    "proposal.close": "{who} closed it",
    "proposal.reopen": "{who} opened it again",
    "proposal.merge": "{who} merged it",
    "proposal.assign": "{who} assigned it",
    "proposal.auto_drop": "its signed merge was dropped",
    "review.request": "{who} asks for a review",
    "review.create": "{who} reviewed it",
    "run.create": "a check failed, says {who}",
    "run.update": "a check failed, says {who}",
}


def describe_event(item: InboxItem) -> str:
    """Return a sentence about the last event of an issue or proposal in the inbox. It is "" if the server
    does not send the event, or if the row needs no sentence."""
    words = _HAPPENED.get(item.event or "") if item.subject.number is not None else None
    if words is None:
        return ""
    return words.format(who="somebody" if item.actor is None else f"@{item.actor.handle or item.actor.id}")


def describe(item: InboxItem) -> str:
    """Return the text of an inbox row. For an issue or proposal it is the title. For a repository or an
    organisation it is a sentence about the event. If the server does not send the event, it is the name of
    the repository or organisation."""
    if item.subject.number is not None or item.event not in _SAID:
        return item.subject.title
    who = "somebody" if item.actor is None else item.actor.handle or item.actor.id
    return _SAID[item.event].format(who=who)
