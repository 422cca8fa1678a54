"""The table of rules that turn events into rows of inboxes. To add a kind of event, add a row."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

from localstore.core.model.inbox import Reason


class Rule(NamedTuple):
    """Says whom an event of one kind notifies, and with which reason. In the comments below, "data" means the
    fields of the event."""

    watchers: bool = False  # the accounts that watch the repository
    parts: bool = False  # author, assignees and participants
    text: Literal["subject", "comment", "review"] | None = None  # those whom this text mentions
    to: Reason | None = None  # for this reason the account in the data's `account_id` or `account`
    # That account even if it cannot see the repository yet (`relay.domain.attention.rows.inbox`)
    outside: bool = False
    clears: bool = False  # nobody; that account's row with the reason `to` is removed
    named: bool = False  # the handles in the data's `mentions`, which an edit added
    check: bool = False  # for a run that failed, the authors of open proposals of its seal
    asked: bool = False  # if the data's `asked` is true, the account is told that its request was granted
    tells: Reason | None = None  # for this reason the account in the data's `told`, who gets an answer
    # Nobody; the event author's own row with this reason is removed, since the author did what it asked
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
