"""Why an event reaches an inbox. A new kind of event that people should hear of is a row here."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

from localstore.core.model.collaboration.inbox import Reason


class Rule(NamedTuple):
    """`watchers`: those who watch the repository hear of it; `parts`: so do the author, the assigned and the
    participants. `text`: whose text may name people. `to`: the reason for the account that the event's data
    names, as `account_id` or `account`; `outside`: also if it does not see the repository yet (the offer is
    read in `relay.db.collaboration.inbox`); `clears`: that account's row for this reason goes instead."""

    watchers: bool = False
    parts: bool = False
    text: Literal["subject", "comment", "review"] | None = None
    to: Reason | None = None
    outside: bool = False
    clears: bool = False


_NEW = Rule(watchers=True, text="subject")
_MOVED = Rule(watchers=True, parts=True)
_SAID = Rule(watchers=True, parts=True, text="comment")
_ASSIGNED = Rule(to="assigned")
_UNASSIGNED = Rule(to="assigned", clears=True)
_UNINVITED = Rule(to="invited", clears=True)
_UNOFFERED = Rule(to="transfer", clears=True)

RULES: Final[dict[str, Rule]] = {
    "issue.create": _NEW,
    "issue.close": _MOVED,
    "issue.reopen": _MOVED,
    "issue.assign": _ASSIGNED,
    "issue.unassign": _UNASSIGNED,
    "comment.create": _SAID,
    "thread.create": _SAID,
    "thread.comment": _SAID,
    "proposal.create": _NEW,
    "proposal.close": _MOVED,
    "proposal.reopen": _MOVED,
    "proposal.merge": _MOVED,
    "proposal.assign": _ASSIGNED,
    "proposal.unassign": _UNASSIGNED,
    "review.request": Rule(to="review_requested"),
    "review.unrequest": Rule(to="review_requested", clears=True),
    "review.create": Rule(watchers=True, parts=True, text="review"),
    "invite.create": Rule(to="invited", outside=True),
    "invite.cancel": _UNINVITED,
    "invite.decline": _UNINVITED,
    "access.grant": _UNINVITED,
    "transfer.create": Rule(to="transfer", outside=True),
    "transfer.decline": _UNOFFERED,
    "transfer.cancel": _UNOFFERED,
    "repo.transfer": _UNOFFERED,
}
