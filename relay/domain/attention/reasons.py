"""The table of rules that turn events into rows of inboxes. To add a kind of event, add a row."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

from localstore.core.model.inbox import Reason


class Rule(NamedTuple):
    """A rule for one kind of event. `watchers`: notify the accounts that watch the repository. `parts`:
    notify author, assignees and participants. `text`: the text whose mentions are notified. `to`: the reason
    for the account named by `account_id` or `account` of the event's data. `outside`: notify that account
    even if it cannot see the repository yet (an offer, read in `relay.domain.attention.rows.inbox`).
    `clears`: remove that account's row with this reason instead. `named`: notify the handles that an edit
    added, `mentions` of the data. `check`: the event is about a run; if the run failed, notify the authors of
    open proposals of its seal. `asked`: if `asked` of the data is true, tell the account that its request was
    granted. `tells`: the reason for the account named by `told` of the data, which is told of an answer.
    `answers`: remove the row with this reason of the event's author, who has done what the row asked for."""

    watchers: bool = False
    parts: bool = False
    text: Literal["subject", "comment", "review"] | None = None
    to: Reason | None = None
    outside: bool = False
    clears: bool = False
    named: bool = False
    check: bool = False
    asked: bool = False
    tells: Reason | None = None
    answers: Reason | None = None


_NEW = Rule(watchers=True, text="subject")
_MOVED = Rule(watchers=True, parts=True)
_SAID = Rule(watchers=True, parts=True, text="comment")
_EDITED = Rule(named=True)
_RUN = Rule(check=True)
_ASSIGNED = Rule(to="assigned")
_UNASSIGNED = Rule(to="assigned", clears=True)
_UNINVITED = Rule(to="invited", clears=True)
_UNOFFERED = Rule(to="transfer", clears=True)

RULES: Final[dict[str, Rule]] = {
    "issue.create": _NEW,
    "issue.edit": _EDITED,
    "issue.close": _MOVED,
    "issue.reopen": _MOVED,
    "issue.assign": _ASSIGNED,
    "issue.unassign": _UNASSIGNED,
    "comment.create": _SAID,
    "comment.edit": _EDITED,
    "thread.create": _SAID,
    "thread.comment": _SAID,
    "thread.edit": _EDITED,
    "proposal.create": _NEW,
    "proposal.edit": _EDITED,
    "proposal.close": _MOVED,
    "proposal.reopen": _MOVED,
    "proposal.merge": _MOVED,
    "proposal.auto_drop": Rule(to="ready_to_merge"),
    "proposal.assign": _ASSIGNED,
    "proposal.unassign": _UNASSIGNED,
    "review.request": Rule(to="review_requested"),
    "review.unrequest": Rule(to="review_requested", clears=True),
    "review.create": Rule(watchers=True, parts=True, text="review", answers="review_requested"),
    "run.create": _RUN,
    "run.update": _RUN,
    "invite.create": Rule(to="invited", outside=True),
    "invite.cancel": _UNINVITED,
    "invite.decline": _UNINVITED._replace(tells="invited"),
    "access.request": Rule(to="access_requested"),
    "access.grant": _UNINVITED._replace(asked=True),
    "access.change": Rule(asked=True),
    "transfer.create": Rule(to="transfer", outside=True),
    "transfer.decline": _UNOFFERED._replace(tells="transfer"),
    "transfer.cancel": _UNOFFERED,
    "repo.transfer": _UNOFFERED,
    "report.create": Rule(to="report"),
    "report.decide": Rule(tells="author"),
    "webhook.disable": Rule(to="webhook_disabled"),
}
