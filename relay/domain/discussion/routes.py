"""Routes of issues with their comments and reactions, of labels, and of security reports."""

from __future__ import annotations

from localstore.core.model import issue, label, report
from localstore.core.model.issue import (
    Issue,
    LabelAddQuery,
    Reacted,
)
from relay.caller import View
from relay.domain.discussion import comment as comments
from relay.domain.discussion import issue as issues
from relay.domain.discussion import label as labels
from relay.domain.discussion import reaction as reactions
from relay.domain.discussion import report as reports
from relay.http.routing import serves

serves(issue.LIST, operation="issue.list", name="issue.list_issues")(issues.page)
serves(issue.CREATE, operation="issue.create", name="issue.create_issue", errors=(409,))(issues.create)
serves(issue.GET, operation="issue.get", name="issue.get_issue")(issues.get)
serves(issue.UPDATE, operation="issue.update", name="issue.update_issue", errors=(409,))(issues.update)


@serves(issue.ADD_LABEL, operation="issue.label", name="issue.add_label", errors=(409,))
async def add_label(view: View, n: str, name: str, query: LabelAddQuery) -> Issue:
    """Put a label on an issue"""
    return await issues.add_label(view, n, name, query.create == "1")


serves(issue.REMOVE_LABEL, operation="issue.label")(issues.remove_label)
serves(issue.COMMENTS, operation="comment.list", name="issue.list_comments")(comments.page)
serves(issue.COMMENT, operation="comment.create", name="issue.create_comment", errors=(409,))(comments.create)
serves(issue.EDIT_COMMENT, operation="comment.edit", name="issue.edit_comment")(comments.edit)
serves(issue.DELETE_COMMENT, operation="comment.delete", name="issue.delete_comment")(comments.delete)


@serves(issue.REACT, operation="reaction.add", name="issue.react")
async def react(view: View, n: str, reaction: str) -> Reacted:
    """React to an issue"""
    return await reactions.put(view, n, reaction)


@serves(issue.UNREACT, operation="reaction.remove", name="issue.unreact")
async def unreact(view: View, n: str, reaction: str) -> Reacted:
    """Remove a reaction from an issue"""
    return await reactions.remove(view, n, reaction)


@serves(issue.REACT_TO_COMMENT, operation="reaction.add", name="issue.react_to_comment")
async def react_to_comment(view: View, n: str, comment: str, reaction: str) -> Reacted:
    """React to a comment"""
    return await reactions.put(view, n, reaction, comment)


@serves(issue.UNREACT_TO_COMMENT, operation="reaction.remove", name="issue.unreact_to_comment")
async def unreact_to_comment(view: View, n: str, comment: str, reaction: str) -> Reacted:
    """Remove a reaction from a comment"""
    return await reactions.remove(view, n, reaction, comment)


serves(label.LIST, operation="label.list", name="label.list_labels")(labels.page)
serves(label.CREATE, operation="label.create", name="label.create_label", errors=(409,))(labels.create)
serves(label.CLONE, operation="label.clone", name="label.clone_labels", errors=(409,))(labels.clone)
serves(label.UPDATE, operation="label.edit", name="label.update_label", errors=(409,))(labels.update)
serves(label.DELETE, operation="label.delete", name="label.delete_label")(labels.delete)
serves(report.LIST, operation="report.list", name="report.list_reports")(reports.page)
serves(report.CREATE, operation="report.create", name="report.create_report", errors=(409,))(reports.create)
serves(report.DECIDE, operation="report.decide", name="report.decide_report", errors=(409, 501))(
    reports.decide
)
