"""The command `svc pr create`."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Annotated

import typer

from localstore.core.errors import Conflict, SvcError, UsageError
from localstore.core.model import history
from localstore.core.model import proposal as proposals
from localstore.core.model.history import CommitsQuery, CompareQuery
from localstore.core.model.limits import ISSUE_TITLE_CHARS, PAGE_MAX
from localstore.core.model.proposal import NothingProposed, Proposal, ProposalCreate
from localstore.core.model.repo import Repo
from localstore.core.words import count
from svc.cmd.frame import changes
from svc.cmd.frame.context import Ctx
from svc.cmd.frame.text_options import Body, BodyFile, body_of
from svc.cmd.issue.words import Assignees, Labels, Web, handles_of, names_of
from svc.cmd.pr.words import COLUMNS, Reviewers, format_title, place_of
from svc.console import answers
from svc.flows.place.known_subjects import listing
from svc.http.checked import require_valid


@answers(COLUMNS, Proposal)
def create(
    ctx: Ctx,
    title: Annotated[str, typer.Option("-t", "--title", metavar="TEXT", help="The title, on one line")] = "",
    body: Body = None,
    body_file: BodyFile = None,
    base: Annotated[
        str, typer.Option("-B", "--base", metavar="BRANCH", help="For which branch; else the default one")
    ] = "",
    head: Annotated[
        str,
        typer.Option(
            "-H",
            "--head",
            metavar="BRANCH",
            help="Which branch, or OWNER:BRANCH of a fork; else this folder's",
        ),
    ] = "",
    draft: Annotated[bool, typer.Option("-d", "--draft", help="It is not ready to be merged")] = False,
    reviewer: Reviewers = None,
    assignee: Assignees = None,
    label: Labels = None,
    fill: Annotated[
        bool, typer.Option("-f", "--fill", help="Title and text from the messages of its seals")
    ] = False,
    web: Web = False,
) -> None:
    """Propose this branch for another

    Proposes the branch as it is on the server. This command does not push, so push first. Without a title
    your editor opens (VISUAL, EDITOR): the first line is the title, and the rest is the text. "Closes #7" in
    the text closes that issue when the proposal is merged. In the folder of a fork, its branch is proposed to
    the repository from which it was forked, unless -R names another one.

    Examples:
    svc pr create -t "Parse dates" -b "Closes #7" --reviewer bob
    svc pr create --fill --draft
    svc pr create --head parser --base main -t "Parse dates" -R alice/notes
    svc pr create --head bob:parser -t "Parse dates" -R alice/notes
    """
    if web:
        raise UsageError(
            "pages open no proposals in this version of svc; without --web your editor opens, or: "
            "-t TITLE -b TEXT"
        )
    text = body_of(body, body_file)
    place = place_of(ctx)
    repo, fork = place.repo, place.fork
    mine = f"{fork.full_name}:" if fork else ""
    start, end = base or repo.default_branch, head or f"{mine}{ctx.obj.branch_of(fork or repo)}"
    if start == end:
        raise NothingProposed(
            f"{end} would be proposed for itself; make a branch (svc repo branch NAME --from {start}, "
            "svc switch NAME --merge), or name one: --head BRANCH"
        )

    def send(title: str, text: str) -> Proposal:
        request = ProposalCreate(
            head=end,
            base=start,
            title=title,
            body=text,
            draft=draft,
            labels=names_of(label),
            assignees=handles_of(assignee),
            reviewers=handles_of(reviewer),
        )
        return ctx.api.send(proposals.CREATE, require_valid(request), id=repo.id)

    if fill:
        first_line, rest = _from_seals(ctx, repo, start, end)
        title, text = title or first_line, rest if text is None else text
    proposal = send(title, text or "") if title else _create_in_editor(ctx, text or "", send)
    list(listing(ctx.obj.home, repo.id, [proposal]))
    if not head:
        _note_edits(ctx)
    kind = "draft" if proposal.draft else "proposal"
    where = f" of {repo.full_name}" if proposal.cross_repository else ""
    sentence = f"Opened {kind} {format_title(proposal)}{where}: {end} → {proposal.base}"
    ctx.out.done(sentence, proposal, COLUMNS, Proposal, value=str(proposal.number))
    if ctx.obj.named_repo is not None and repo.parent is not None:
        ctx.out.note(f"to see it: svc pr view {proposal.number} -R {repo.full_name}")


def _from_seals(ctx: Ctx, repo: Repo, base: str, head: str) -> tuple[str, str]:
    """Return a title and a text for a proposal, made from the messages of the seals that the base lacks. For
    one seal they come from its message. For several, the title is the branch's name, and the text lists the
    first lines of the messages."""
    if ":" in head:
        return _title_and_text(_from_fork(ctx, repo, base, head), head)
    query = CompareQuery(base=base, head=head, limit=0)
    ahead = ctx.api.send(history.COMPARE, query=query, id=repo.id).ahead
    if ahead == 0:
        raise NothingProposed(
            f"{base} has every seal of {head}, so there is nothing to propose; push to {head} first: svc push"
        )
    walk = ctx.api.items(
        history.COMMITS, CommitsQuery(ref=head, first_parent=True), limit=min(ahead, PAGE_MAX), id=repo.id
    )
    return _title_and_text([seal.message.strip() for seal in walk], head)


def _from_fork(ctx: Ctx, repo: Repo, base: str, head: str) -> list[str]:
    """Return the messages of the seals that a fork's branch has and the base lacks, newest first. `head`
    names the branch as OWNER:BRANCH or OWNER/NAME:BRANCH."""
    place, _, branch = head.rpartition(":")
    owner, _, name = place.partition("/")
    fork = ctx.api.repo.find(owner, name or repo.name)
    there = ctx.api.items(history.COMMITS, CommitsQuery(ref=base), limit=PAGE_MAX, id=repo.id)
    base_ids = {seal.id for seal in there}
    walk = ctx.api.items(
        history.COMMITS, CommitsQuery(ref=branch, first_parent=True), limit=PAGE_MAX, id=fork.id
    )
    messages = [seal.message.strip() for seal in walk if seal.id not in base_ids]
    if not messages:
        raise NothingProposed(f"{base} has every seal of {head}, so there is nothing to propose")
    return messages


def _title_and_text(messages: list[str], head: str) -> tuple[str, str]:
    if len(messages) == 1:
        title, _, text = messages[0].partition("\n")
        return title[:ISSUE_TITLE_CHARS], text.strip()
    name = head.rpartition(":")[2].rpartition("/")[2].replace("-", " ").replace("_", " ")
    return name[:1].upper() + name[1:], "\n".join(
        f"- {changes.subject(message)}" for message in messages[::-1]
    )


def _create_in_editor(ctx: Ctx, text: str, send: Callable[[str, str], Proposal]) -> Proposal:
    """Let the user write the proposal in an editor, create it with `send`, and return it. If that fails, the
    text is kept in its file."""
    from svc.cmd.frame.editor import compose_text

    if not ctx.out.interactive:
        raise UsageError("say the title: -t TITLE or --fill; there is no terminal for an editor")
    remarks = ["The first line is the title, the rest the text. An empty text opens nothing."]
    start = f"\n\n{text}" if text.strip() else ""
    with compose_text(start, remarks, ctx.obj.environment) as (typed, file):
        title, _, body = typed.partition("\n")
        try:
            return send(title.strip(), body.strip())
        except Exception:
            ctx.out.note(f"svc: your text is in {file}")
            raise


def _note_edits(ctx: Ctx) -> None:
    """Print a note if this folder has edits that are not pushed. The proposal does not contain them."""
    from svc.flows.history.compare import compare_folder

    if ctx.obj.linked is None or ctx.obj.named_repo is not None:
        return
    with suppress(SvcError, Conflict):
        files = compare_folder(ctx.obj)
        if files:
            files_are = (
                count(len(files), "changed file") + " of this folder " + ("is" if len(files) == 1 else "are")
            )
            ctx.out.note(f"{files_are} not part of it; run: svc push")
