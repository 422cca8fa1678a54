"""The commands `svc issue create|list|status|view`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
import typer

from localstore.core.errors import Invalid, NotFound, UsageError
from localstore.core.model import issue as issues
from localstore.core.model.base import PageQuery
from localstore.core.model.issue import Issue, IssueCreate, IssueQuery
from localstore.core.model.repo import Repo
from localstore.core.model.rights import RANK
from svc.cmd.frame.context import Ctx
from svc.cmd.frame.markdown import markdown
from svc.cmd.frame.options import Limit
from svc.cmd.frame.queueing import queueable
from svc.cmd.frame.text_options import Body, BodyFile, body_of
from svc.cmd.issue.talk import comment_text, in_order, read_happened
from svc.cmd.issue.words import (
    COLUMNS,
    ONE,
    Assignees,
    Labels,
    Number,
    Web,
    alone,
    format_title,
    handle_typed,
    handles_of,
    known_issue,
    label_of,
    names_of,
    note_qualifier,
    number_of,
)
from svc.console import Column, answers
from svc.flows.place.known_subjects import listing
from svc.flows.templates import Template, of_issues
from svc.http.checked import require_valid

WHY = (*COLUMNS[:2], Column("why"), *COLUMNS[3:])
THREAD = (*ONE, Column("body"), Column("thread"))
Shown = Literal["open", "closed", "all"]
_ABOUT: tuple[tuple[str, dict[str, Any]], ...] = (
    ("assigned", {"assignee": "@me"}),
    ("author", {"author": "@me"}),
    ("participant", {"involves": "@me"}),
)


@queueable
@answers(COLUMNS, Issue)
def create(
    ctx: Ctx,
    title: Annotated[str, typer.Option("-t", "--title", metavar="TEXT", help="The title, on one line")] = "",
    body: Body = None,
    body_file: BodyFile = None,
    label: Labels = None,
    assignee: Assignees = None,
    template: Annotated[
        str, typer.Option("-T", "--from-template", metavar="NAME", help="Begin with a template of it")
    ] = "",
) -> None:
    """Open an issue

    Without a title your editor opens (VISUAL, EDITOR). The first line is the title, and the rest is the text.
    The templates of a repository are in .github/ISSUE_TEMPLATE. To set labels and assignees you need the role
    triage.

    Examples:
    svc issue create -t "It ends after an hour" -b "Here is how"
    svc issue create -t "Crash" -F report.md -l bug -a @me -R alice/notes
    svc issue create --from-template bug
    """
    text = body_of(body, body_file)
    if template or not title:
        alone(ctx, "a template or an editor")
    repo = ctx.repo
    begun = _template(ctx, repo, template) if template or not title else None
    labels, assignees = names_of(label), handles_of(assignee)
    if begun is not None and RANK[repo.viewer.role if repo.viewer else None] >= RANK["triage"]:
        labels, assignees = labels or list(begun.labels), assignees or list(begun.assignees)
    if text is None and begun is not None and title:
        text = begun.body

    def send(title: str, text: str) -> Issue:
        request = IssueCreate(title=title, body=text, labels=labels, assignees=assignees)
        return ctx.api.send(issues.CREATE, require_valid(request), id=repo.id)

    issue = send(title, text or "") if title else _create_in_editor(ctx, begun, text, send)
    list(listing(ctx.obj.home, repo.id, [issue]))
    ctx.out.done(f"Opened issue {format_title(issue)}", issue, COLUMNS, Issue, value=str(issue.number))


@answers(COLUMNS, Issue)
def list_issues(
    ctx: Ctx,
    state: Annotated[Shown, typer.Option("-s", "--state", help="Which of them")] = "open",
    label: Annotated[str, typer.Option("-l", "--label", metavar="NAME", help="With this label")] = "",
    author: Annotated[str, typer.Option("-A", "--author", metavar="HANDLE", help="Whose; @me is you")] = "",
    assignee: Annotated[
        str, typer.Option("-a", "--assignee", metavar="HANDLE", help="Who is to do it; @me is you")
    ] = "",
    search: Annotated[
        str, typer.Option("-S", "--search", metavar="WORDS", help="Words of title or text")
    ] = "",
    web: Web = False,
    limit: Limit = 30,
) -> None:
    """List issues

    Lists open issues, newest first. Public repositories need no session.

    Examples:
    svc issue list
    svc issue list --label bug --assignee @me
    svc issue list --state all --search parser -R alice/notes --json number,title
    """
    query = require_valid(
        IssueQuery(
            state=state,
            author=handle_typed(author),
            assignee=handle_typed(assignee),
            label=label_of(label),
            search=search or None,
        )
    )
    repo = ctx.repo if "@me" in (author, assignee) else ctx.readable_repo
    if web:
        from svc.cmd.frame.browser import open_repository

        open_repository(ctx, repo, "issues")
        return
    rows = ctx.reader.items(issues.LIST, query, limit=limit, id=repo.id)
    note_qualifier(ctx, search)
    empty = f"no issues match in {repo.full_name}; open one: svc issue create"
    ctx.out.rows(listing(ctx.obj.home, repo.id, rows), COLUMNS, Issue, empty=empty)


@answers(WHY, Issue)
def status(ctx: Ctx, limit: Limit = 30) -> None:
    """List the open issues that concern you

    Lists issues that you opened, that you are assigned to, or that you commented on. `why` has the reason.

    Examples:
    svc issue status
    svc issue status --json number,why
    """
    repo = ctx.repo
    by_number: dict[int, dict[str, Any]] = {}
    for why, about in _ABOUT:
        for issue in ctx.api.items(issues.LIST, IssueQuery(**about), limit=limit, id=repo.id):
            record = by_number.setdefault(issue.number, {**msgspec.to_builtins(issue), "why": []})
            if why != "participant" or not record["why"]:
                record["why"].append(why)
    newest = [by_number[number] for number in sorted(by_number, reverse=True)][:limit]
    ctx.out.rows(newest, WHY, Issue, empty=f"no open issue of {repo.full_name} concerns you")


@answers(THREAD, Issue)
def view(
    ctx: Ctx,
    number: Number,
    comments: Annotated[bool, typer.Option("-c", "--comments", help="Its comments too")] = False,
    web: Web = False,
) -> None:
    """Show an issue

    Prints its text; with --comments also the comments, oldest first. On a terminal, what else happened to it
    stands among them.

    Examples:
    svc issue view 12
    svc issue view 12 --comments -R alice/notes
    svc issue view 12 --comments --json title,body,thread
    """
    n = number_of(number)
    repo = ctx.readable_repo
    with known_issue(ctx, repo, n):
        issue = ctx.reader.send(issues.GET, id=repo.id, n=n)
        if web:
            from svc.cmd.frame.browser import open_repository

            open_repository(ctx, repo, "issues", n=n)
            return
        thread = list(ctx.reader.items(issues.COMMENTS, PageQuery(), id=repo.id, n=n)) if comments else []
        happened = read_happened(ctx, repo, issue) if comments else []
    list(listing(ctx.obj.home, repo.id, [issue]))
    record = {**msgspec.to_builtins(issue), "thread": msgspec.to_builtins(thread) if comments else None}
    parts = [markdown(ctx.out, issue.body)] if issue.body.strip() else []
    written = [(comment.created_at, comment_text(ctx, comment)) for comment in thread]
    parts += in_order(ctx, written, happened)
    columns = ONE if ctx.out.terminal and not ctx.out.format.as_data else THREAD[: None if comments else -1]
    ctx.out.record(record, columns, Issue, body="\n\n".join(parts), drawn=True)


def _template(ctx: Ctx, repo: Repo, name: str) -> Template | None:
    """Return the issue template with this name. Without a name, return the repository's only template, or
    None if there are several or none. Raises NotFound if no template has the name, Invalid if it cannot be
    read."""
    templates = of_issues(ctx.obj, repo)
    if not name:
        return _require_usable(templates[0]) if len(templates) == 1 and ctx.out.interactive else None
    for key in ("name", "file"):
        for template in templates:
            if str(getattr(template, key)).casefold() == name.casefold():
                return _require_usable(template)
    there = ", ".join(template.name for template in templates) or "none"
    raise NotFound(f"{repo.full_name} has no template {name}; there are: {there}")


def _require_usable(template: Template) -> Template:
    if template.fault:
        raise Invalid(f"{template.fault}; mend it, or write without it: -t TITLE")
    return template


def _create_in_editor(ctx: Ctx, begun: Template | None, text: str | None, send: Any) -> Issue:
    """Let the user write the issue in an editor, create it with `send`, and return it. If that fails, the
    text is kept in its file."""
    from svc.cmd.frame.editor import compose_text

    if not ctx.out.interactive:
        raise UsageError("say the title: -t TITLE; there is no terminal for an editor")
    start = f"{begun.title if begun else ''}\n\n{text if text is not None else begun.body if begun else ''}"
    remarks = ["The first line is the title, the rest the text. An empty text opens nothing."]
    with compose_text(start.rstrip() if start.strip() else "", remarks, ctx.obj.environment) as (typed, file):
        title, _, body = typed.partition("\n")
        try:
            issue: Issue = send(title.strip(), body.strip())
        except Exception:
            ctx.out.note(f"svc: your text is in {file}")
            raise
    return issue
