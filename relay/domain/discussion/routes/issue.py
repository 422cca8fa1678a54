"""Issues of a repository, their labels, comments and reactions."""

from __future__ import annotations

from localstore.core.model.base import Page, PageQuery
from localstore.core.model.collaboration import issue as endpoints
from localstore.core.model.collaboration.issue import (
    Comment,
    CommentBody,
    Issue,
    IssueCreate,
    IssuePatch,
    IssueQuery,
    LabelAddQuery,
    Reacted,
)
from relay.caller import View
from relay.domain.discussion import comment as comments
from relay.domain.discussion import issue as issues
from relay.domain.discussion import reaction as reactions
from relay.http.routing import Reply, serves

FLAG = "TR_REPOS_ENABLED"


@serves(endpoints.LIST, operation="issue.list", flag=FLAG)
async def list_issues(view: View, query: IssueQuery) -> Page[Issue]:
    """Issues, newest first"""
    return await issues.page(view, query)


@serves(endpoints.CREATE, operation="issue.create", flag=FLAG, errors=(409,))
async def create_issue(view: View, body: IssueCreate) -> Issue:
    """Open an issue"""
    return await issues.create(view, body)


@serves(endpoints.GET, operation="issue.get", flag=FLAG)
async def get_issue(view: View, n: str) -> Issue:
    """One issue"""
    return await issues.get(view, n)


@serves(endpoints.UPDATE, operation="issue.update", flag=FLAG, errors=(409,))
async def update_issue(view: View, n: str, body: IssuePatch) -> Issue:
    """Edit, close, reopen, label or assign an issue"""
    return await issues.update(view, n, body)


@serves(endpoints.ADD_LABEL, operation="issue.label", flag=FLAG, errors=(409,))
async def add_label(view: View, n: str, name: str, query: LabelAddQuery) -> Issue:
    """Put a label on an issue"""
    return await issues.add_label(view, n, name, query.create == "1")


@serves(endpoints.REMOVE_LABEL, operation="issue.label", flag=FLAG)
async def remove_label(view: View, n: str, name: str) -> Issue:
    """Take a label off an issue"""
    return await issues.remove_label(view, n, name)


@serves(endpoints.COMMENTS, operation="comment.list", flag=FLAG)
async def list_comments(view: View, n: str, query: PageQuery) -> Page[Comment]:
    """Comments on an issue, oldest first"""
    return await comments.page(view, n, query)


@serves(endpoints.COMMENT, operation="comment.create", flag=FLAG, errors=(409,))
async def create_comment(view: View, n: str, body: CommentBody) -> Comment:
    """Comment on an issue"""
    return await comments.create(view, n, body)


@serves(endpoints.EDIT_COMMENT, operation="comment.edit", flag=FLAG)
async def edit_comment(view: View, n: str, comment: str, body: CommentBody) -> Comment:
    """Change the text of a comment"""
    return await comments.edit(view, n, comment, body)


@serves(endpoints.DELETE_COMMENT, operation="comment.delete", flag=FLAG)
async def delete_comment(view: View, n: str, comment: str) -> Reply:
    """Delete a comment"""
    await comments.delete(view, n, comment)
    return Reply(status=204)


@serves(endpoints.REACT, operation="reaction.add", flag=FLAG)
async def react(view: View, n: str, reaction: str) -> Reacted:
    """React to an issue"""
    return await reactions.put(view, n, reaction)


@serves(endpoints.UNREACT, operation="reaction.remove", flag=FLAG)
async def unreact(view: View, n: str, reaction: str) -> Reacted:
    """Remove a reaction from an issue"""
    return await reactions.remove(view, n, reaction)


@serves(endpoints.REACT_TO_COMMENT, operation="reaction.add", flag=FLAG)
async def react_to_comment(view: View, n: str, comment: str, reaction: str) -> Reacted:
    """React to a comment"""
    return await reactions.put(view, n, reaction, comment)


@serves(endpoints.UNREACT_TO_COMMENT, operation="reaction.remove", flag=FLAG)
async def unreact_to_comment(view: View, n: str, comment: str, reaction: str) -> Reacted:
    """Remove a reaction from a comment"""
    return await reactions.remove(view, n, reaction, comment)
