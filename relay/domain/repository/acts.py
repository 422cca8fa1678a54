"""The acts of the forms on a repository's pages. Each act calls the function of one operation of the API."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from localstore.core.errors import Invalid
from localstore.core.model.access import AccessRequestCreate
from localstore.core.model.issue import CommentBody, IssueCreate, IssuePatch, Reason
from localstore.core.model.proposal import ProposalCreate, ProposalPatch
from localstore.core.model.repo import ForkCreate
from localstore.core.model.review import ReviewCreate
from localstore.core.model.thread import ThreadComment, ThreadCreate, ThreadPatch
from localstore.core.numbers import whole_number
from localstore.core.validation import check_members
from relay.caller import Caller, View
from relay.domain.access import request as requests
from relay.domain.attention import social
from relay.domain.discussion import comment as comments
from relay.domain.discussion import issue as issues
from relay.domain.discussion import reaction
from relay.domain.proposal import proposal as proposals
from relay.domain.proposal import review as reviews
from relay.domain.proposal import thread as threads
from relay.domain.repository import fork as forks
from relay.domain.repository import settings
from relay.domain.repository.act_form import ActForm, lines, names
from relay.domain.repository.place import ShownRepository, address_of

Run = Callable[[Any, ShownRepository, ActForm], Awaitable[str | None]]


@dataclass(frozen=True, slots=True)
class Act:
    """The act of a form on a page. `operation`: the operation of the API whose rights apply. `run`: carries
    out the act. It is called with a View, or with a Caller if the operation is about an account. It returns
    the address of the page to show next, or None for the page with the form."""

    operation: str
    run: Run


async def _create_issue(view: View, place: ShownRepository, form: ActForm) -> str:
    body = IssueCreate(form.title.strip(), lines(form.text), names(form.labels), names(form.handle))
    created = await issues.create(view, check_members(body))
    return place.tab("issues", n=created.number)


async def _create_proposal(view: View, place: ShownRepository, form: ActForm) -> str:
    body = ProposalCreate(
        form.head.strip(),
        form.base.strip(),
        form.title.strip(),
        lines(form.text),
        draft=form.object_of_act == "draft",
        labels=names(form.labels),
        reviewers=names(form.handle),
    )
    created = await proposals.create(view, check_members(body))
    return place.tab("issues", n=created.number)


@dataclass(frozen=True, slots=True)
class _Subject:
    """The functions with which acts edit one kind of subject: issues, or proposals."""

    update: Callable[..., Awaitable[Any]]
    remove_label: Callable[..., Awaitable[Any]]
    patch: type[IssuePatch] | type[ProposalPatch]


async def _edit(subject: _Subject, view: View, place: ShownRepository, form: ActForm) -> str:
    patch = subject.patch(title=form.title.strip(), body=lines(form.text))
    await subject.update(view, form.n, check_members(patch))
    return place.tab("issues", n=form.n)


async def _close_issue(view: View, place: ShownRepository, form: ActForm) -> None:
    reason: Reason = "not_planned" if form.object_of_act == "not_planned" else "completed"
    await issues.update(view, form.n, IssuePatch(state="closed", state_reason=reason))


async def _close_proposal(view: View, place: ShownRepository, form: ActForm) -> None:
    await proposals.update(view, form.n, ProposalPatch(state="closed"))


async def _reopen(subject: _Subject, view: View, place: ShownRepository, form: ActForm) -> None:
    await subject.update(view, form.n, subject.patch(state="open"))


async def _set_draft(view: View, place: ShownRepository, form: ActForm) -> None:
    await proposals.update(view, form.n, ProposalPatch(draft=form.object_of_act == "draft"))


async def _assign(subject: _Subject, view: View, place: ShownRepository, form: ActForm) -> None:
    if form.object_of_act:
        patch = subject.patch(remove_assignees=[form.object_of_act])
    else:
        patch = subject.patch(add_assignees=names(form.handle))
    await subject.update(view, form.n, check_members(patch))


async def _label(subject: _Subject, view: View, place: ShownRepository, form: ActForm) -> None:
    if form.object_of_act:
        await subject.remove_label(view, form.n, form.object_of_act)
    else:
        await subject.update(view, form.n, check_members(subject.patch(add_labels=names(form.labels))))


async def _ask_for_review(view: View, place: ShownRepository, form: ActForm) -> None:
    if form.object_of_act:
        patch = ProposalPatch(remove_reviewers=[form.object_of_act])
    else:
        patch = ProposalPatch(add_reviewers=names(form.handle))
    await proposals.update(view, form.n, check_members(patch))


async def _review(view: View, place: ShownRepository, form: ActForm) -> str:
    body = ReviewCreate(form.verdict, lines(form.text), form.seal or None)  # type: ignore[arg-type]  # checked
    await reviews.create(view, form.n, check_members(body))
    return place.tab("issues", n=form.n)


async def _dismiss_review(view: View, place: ShownRepository, form: ActForm) -> None:
    await reviews.dismiss(view, form.n, form.object_of_act)


async def _create_thread(view: View, place: ShownRepository, form: ActForm) -> str:
    body = ThreadCreate(
        form.path,
        _line_number(form.start, "start"),
        _line_number(form.end or form.start, "end"),
        form.seal,
        lines(form.text),
        form.side,  # type: ignore[arg-type]  # checked
        lines(form.suggestion) if form.suggest else None,
        draft=form.object_of_act == "draft",
    )
    thread = await threads.create(view, form.n, check_members(body))
    return f"{place.tab('issues', n=form.n, view='files')}#thread-{thread.id}"


def _line_number(typed: str, field: str) -> int:
    """Read the number of a line. Raises Invalid if the text is not a number."""
    number = whole_number(typed.strip(), 9)
    if number is None:
        raise Invalid("the number of a line is a whole number from 1 on", pointer=f"/{field}")
    return number


async def _answer(view: View, place: ShownRepository, form: ActForm) -> None:
    await threads.comment(view, form.n, form.thread, check_members(ThreadComment(lines(form.text))))


async def _resolve(view: View, place: ShownRepository, form: ActForm) -> None:
    patch = ThreadPatch("open" if form.object_of_act == "open" else "resolved")
    await threads.update(view, form.n, form.thread, patch)


async def _create_comment(view: View, place: ShownRepository, form: ActForm) -> str:
    created = await comments.create(view, form.n, check_members(CommentBody(lines(form.text))))
    return f"{place.tab('issues', n=form.n)}#comment-{created.id}"


async def _edit_comment(view: View, place: ShownRepository, form: ActForm) -> str:
    await comments.edit(view, form.n, form.comment, check_members(CommentBody(lines(form.text))))
    return f"{place.tab('issues', n=form.n)}#comment-{form.comment}"


async def _delete_comment(view: View, place: ShownRepository, form: ActForm) -> str:
    await comments.delete(view, form.n, form.comment)
    return place.tab("issues", n=form.n)


async def _add_reaction(view: View, place: ShownRepository, form: ActForm) -> None:
    await reaction.put(view, form.n, form.object_of_act, form.comment or None)


async def _remove_reaction(view: View, place: ShownRepository, form: ActForm) -> None:
    await reaction.remove(view, form.n, form.object_of_act, form.comment or None)


async def _star(view: View, place: ShownRepository, form: ActForm) -> None:
    await social.put(view, "star")


async def _unstar(view: View, place: ShownRepository, form: ActForm) -> None:
    await social.remove(view, "star")


async def _watch(view: View, place: ShownRepository, form: ActForm) -> None:
    await social.put(view, "watch")


async def _unwatch(view: View, place: ShownRepository, form: ActForm) -> None:
    await social.remove(view, "watch")


async def _fork(view: View, place: ShownRepository, form: ActForm) -> str:
    return address_of(await forks.create(view, check_members(ForkCreate(name=form.name.strip() or None))))


async def _request_access(caller: Caller, place: ShownRepository, form: ActForm) -> str:
    body = AccessRequestCreate(place.repo.full_name, form.role or "read", lines(form.text))  # type: ignore[arg-type]  # checked
    await requests.create(caller, check_members(body))
    return f"{place.dev}?note=asked"


_ISSUE = _Subject(issues.update, issues.remove_label, IssuePatch)
_PROPOSAL = _Subject(proposals.update, proposals.remove_label, ProposalPatch)

ACTS: dict[str, Act] = {
    "issue.create": Act("issue.create", _create_issue),
    "issue.edit": Act("issue.update", partial(_edit, _ISSUE)),
    "issue.close": Act("issue.update", _close_issue),
    "issue.reopen": Act("issue.update", partial(_reopen, _ISSUE)),
    "issue.assign": Act("issue.update", partial(_assign, _ISSUE)),
    "issue.label": Act("issue.label", partial(_label, _ISSUE)),
    "proposal.create": Act("proposal.create", _create_proposal),
    "proposal.edit": Act("proposal.update", partial(_edit, _PROPOSAL)),
    "proposal.close": Act("proposal.update", _close_proposal),
    "proposal.reopen": Act("proposal.update", partial(_reopen, _PROPOSAL)),
    "proposal.ready": Act("proposal.update", _set_draft),
    "proposal.assign": Act("proposal.update", partial(_assign, _PROPOSAL)),
    "proposal.label": Act("issue.label", partial(_label, _PROPOSAL)),
    "proposal.reviewers": Act("proposal.update", _ask_for_review),
    "review.create": Act("review.create", _review),
    "review.dismiss": Act("review.dismiss", _dismiss_review),
    "thread.create": Act("thread.create", _create_thread),
    "thread.comment": Act("thread.comment", _answer),
    "thread.resolve": Act("thread.resolve", _resolve),
    "comment.create": Act("comment.create", _create_comment),
    "comment.edit": Act("comment.edit", _edit_comment),
    "comment.delete": Act("comment.delete", _delete_comment),
    "reaction.add": Act("reaction.add", _add_reaction),
    "reaction.remove": Act("reaction.remove", _remove_reaction),
    "star.set": Act("star.set", _star),
    "star.clear": Act("star.clear", _unstar),
    "watch.set": Act("watch.set", _watch),
    "watch.clear": Act("watch.clear", _unwatch),
    "fork.create": Act("fork.create", _fork),
    "access.request": Act("access.request", _request_access),
    "access.grant": Act("access.grant", settings.grant),
    "access.decline": Act("access.decline", settings.decline),
    "repo.edit": Act("repo.update", settings.edit_general),
    "repo.archive": Act("repo.update", settings.set_archived),
    "repo.visibility": Act("repo.update", settings.set_visibility),
    "repo.delete": Act("repo.delete", settings.delete),
    "transfer.create": Act("transfer.create", settings.offer),
    "listing.set": Act("listing.set", settings.list_it),
    "listing.remove": Act("listing.remove", settings.unlist),
    "invite.create": Act("invite.create", settings.send_invite),
    "invite.cancel": Act("invite.cancel", settings.cancel_invite),
    "collaborator.role": Act("collaborator.role", settings.set_role),
    "collaborator.remove": Act("collaborator.remove", settings.remove_collaborator),
    "webhook.create": Act("webhook.create", settings.add_hook),
    "webhook.edit": Act("webhook.edit", settings.switch_hook),
    "webhook.delete": Act("webhook.delete", settings.delete_hook),
    "check.enable": Act("check.enable", settings.enable_check),
    "check.disable": Act("check.disable", settings.disable_check),
    "protection.set": Act("protection.set", settings.protect),
    "protection.clear": Act("protection.clear", settings.unprotect),
}
