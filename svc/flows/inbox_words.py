"""What a row of the inbox says, for the command and for the app."""

from __future__ import annotations

from typing import Final

from localstore.core.model.collaboration.inbox import InboxItem

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


def said(one: InboxItem) -> str:
    """The title of the issue or proposal; of a repository or an organisation what somebody did, or its name
    if the server does not say."""
    if one.subject.number is not None or one.event not in _SAID:
        return one.subject.title
    who = "somebody" if one.actor is None else one.actor.handle or one.actor.id
    return _SAID[one.event].format(who=who)
