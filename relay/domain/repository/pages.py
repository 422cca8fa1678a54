"""The pages of a repository. Its page is at /apps/OWNER/NAME or /KIND/OWNER/NAME, and its pages for
developers are below that address at /dev.

A page shows an answer of the API in HTML. It uses the same view of the repository, calls the same functions
and makes no decisions. Every refusal is a page; hidden, missing and unknown addresses give the same page.
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Annotated, Any, Literal

import msgspec
from sanic.request import Request

from localstore.core.errors import NotFound
from localstore.core.model.advisory import AdvisoryQuery
from localstore.core.model.base import Page, PageQuery
from localstore.core.model.history import CompareQuery
from localstore.core.model.issue import IssueQuery
from localstore.core.model.label import Label
from localstore.core.model.limits import ISSUE_TITLE_CHARS
from localstore.core.model.proposal import Proposal, ProposalQuery
from localstore.core.model.repo import RepoQuery
from localstore.core.model.run import RunQuery
from localstore.core.model.thread import LAST_LINE
from localstore.core.numbers import whole_number
from localstore.core.validation import check_members
from relay.caller import Caller
from relay.domain.catalog import advisory as advisories
from relay.domain.catalog import dependency, dependents
from relay.domain.catalog import listing as listings
from relay.domain.checks import run
from relay.domain.discussion import issue, label
from relay.domain.history import history
from relay.domain.proposal import proposal
from relay.domain.protection import protection
from relay.domain.release import release as releases
from relay.domain.repository import blamed, changes, code, forms, settings, talk, waiting
from relay.domain.repository import ref as refs
from relay.domain.repository import repo as repos
from relay.domain.repository.act_form import ActForm
from relay.domain.repository.code import Position
from relay.domain.repository.place import PREFIXES, ShownRepository, address_of, find
from relay.http.routing import REPOSITORIES, Reply, route
from relay.pages import HTML, redirect, redirect_for_good, show, visit

Tab = Literal["overview", "code", "issues", "workflows", "releases", "security", "insights", "settings"]
FORM_REFUSALS = (401, 404, 409, 410, 413, 415, 422, 501, 503, 507)  # of the rules that forms call
LABELS = 100  # that are offered
ROWS = 30  # of a page of a list
PROPOSALS = 10  # above the issues, where no filter is set
START_ROWS = 30  # repositories of a list on the first page


class DevQuery(msgspec.Struct, frozen=True):
    """The query of a repository's pages for developers. `tab` selects the page, and `cursor` the part of its
    list.

    - Tab `code`: `path` is a file or folder at `at` (a branch, tag, `pr:N` or seal). `plain` shows the source
      of Markdown, and `lines` (N or N-M) marks lines. `view` is `history` or `blame` of the path, `travel`
      (the path as it was at `seal`), or `compare` (the changes of `head` since its merge base with `base`).
      `seal` without a `view` shows one seal and its changes.
    - Tab `issues`: `n` is the number of one issue or proposal. Its `view` is `edit` (the form of the issue or
      of its `comment`) or `files` (the changes of the proposal). Without `n` the page is a list. `kind`
      selects `issues` or `proposals`, and the list has the filters of the API. Without `n`, the view `new` is
      the form of a new issue or proposal.
    - Tab `settings`: `view` is the panel, and `note` is the act that the page asks the reader to confirm.
    - Tab `overview`: `note` says what was just done.
    - All tabs: `wait` is how often a waiting page was loaded (`relay.domain.repository.waiting`).
    """

    tab: str = "overview"
    at: str = ""
    path: str = ""
    plain: bool = False
    lines: str = ""
    view: str = ""
    seal: str = ""
    base: str = ""
    head: str = ""
    cursor: str = ""
    n: str = ""
    kind: str = "issues"
    state: str = "open"
    author: str = ""
    label: str = ""
    search: str = ""
    comment: str = ""
    note: str = ""
    side: Literal["old", "new"] = "new"
    wait: Annotated[int, msgspec.Meta(ge=0, le=waiting.TIMES)] = 0


async def public(caller: Caller, owner: str, name: str, request: Request) -> Reply:
    """The public page of a repository: description, README, how to get it"""
    place = await find(caller, owner, name)
    if (elsewhere := _elsewhere(place, request, "")) is not None:
        return elsewhere
    if visit.is_due(caller):
        return visit.renew_and_return(request)
    return await _overview(place, "public")


async def dev(caller: Caller, owner: str, name: str, query: DevQuery, request: Request) -> Reply:
    """The pages of a repository for developers, one for each tab"""
    place = await find(caller, owner, name)
    if (elsewhere := _elsewhere(place, request, "/dev")) is not None:
        return elsewhere
    if visit.is_due(caller):
        return visit.renew_and_return(request)
    page = TABS.get(query.tab)
    if page is None:
        raise NotFound
    return await page(place, query)


async def send(
    caller: Caller, owner: str, name: str, query: DevQuery, request: Request, body: ActForm, raw: bytes
) -> Reply:
    """Carry out a form of a page, once, and redirect to the page with the result"""
    page = TABS.get(query.tab)
    if page is None:
        raise NotFound

    async def show(place: ShownRepository) -> Reply:
        return await page(place, query)

    return await forms.act(caller, owner, name, request, body, raw, show)


@route("GET", "/", operation="page.repository", media=HTML, others=(303, 304), cost=2)
async def start(caller: Caller, request: Request) -> Reply:
    """Describe the node, and list the caller's repositories and public ones"""
    if visit.is_due(caller):
        return visit.renew_and_return(request)
    recent = await repos.page(caller, RepoQuery(limit=START_ROWS))
    mine = await repos.page(caller, RepoQuery(limit=START_ROWS, mine=True)) if caller.principal else None
    public = [repo for repo in recent.items if repo.visibility == "public"]
    return show(caller, "start.html", recent=public, mine=mine.items if mine else [], address=address_of)


for _prefix in PREFIXES:
    route(
        "GET",
        f"/{_prefix}/{{owner}}/{{name}}",
        operation="page.repository",
        flag=REPOSITORIES,
        media=HTML,
        others=(301, 303, 304),
        errors=(404,),
        cost=2,
        name=f"{_prefix}.public",
    )(public)
    route(
        "GET",
        f"/{_prefix}/{{owner}}/{{name}}/dev",
        operation="page.repository",
        flag=REPOSITORIES,
        media=HTML,
        others=(301, 303, 304),
        errors=(404,),
        cost=4,
        name=f"{_prefix}.dev",
    )(dev)
    route(
        "POST",
        f"/{_prefix}/{{owner}}/{{name}}/dev",
        operation="page.repository",
        flag=REPOSITORIES,
        media=HTML,
        status=303,
        errors=FORM_REFUSALS,
        forms=True,
        cost=4,
        name=f"{_prefix}.send",
    )(send)


def _elsewhere(place: ShownRepository, request: Request, rest: str) -> Reply | None:
    """A redirect to the current address of the page, if it was requested at an old one; else None. `rest`:
    the end of the address."""
    address = place.page + rest
    if request.path == address:
        return None
    return redirect_for_good(visit.with_query(address, request))


async def _dev_overview(place: ShownRepository, query: DevQuery) -> Reply:
    if query.view in ("fork", "access"):
        if not place.acts:
            raise NotFound
        return _show(place, "ask", "overview", what=query.view)
    return await _overview(place, "overview", query.note)


async def _overview(place: ShownRepository, template: Literal["public", "overview"], note: str = "") -> Reply:
    listing = None
    if place.repo.listing_id is not None:
        listing = await listings.get(place.view)
        place = replace(place, images=listing.readme_images != "none")
    position = await code.find_position(place, None, "")
    entries = await code.folder(position) if position else []
    readme = await code.readme(position, entries) if position else None
    latest = (await code.seals(position, None, limit=1))[0] if position and template == "overview" else []
    newest = (await releases.page(place.view, PageQuery(limit=1))).items
    return _show(
        place,
        template,
        "overview",
        here=position,
        readme=readme,
        latest=latest[0] if latest else None,
        listing=listing,
        release=newest[0] if newest else None,
        note=note,
    )


async def _code(place: ShownRepository, query: DevQuery) -> Reply:
    if query.view == "travel":
        return await _travel(place, query)
    if query.seal:
        return await _seal(place, query)
    return await (_compare if query.view == "compare" else _files)(place, query)


async def _files(place: ShownRepository, query: DevQuery) -> Reply:
    position = await code.find_position(place, query.at or None, query.path)
    if query.view == "push":
        return _wait(place, query, "code", position is not None, place.tab("code"))
    if position is None:
        return _show(place, "empty", "code", here=None)
    if query.view == "history":
        seals, cursor = await code.seals(position, query.cursor or None)
        return _show(place, "history", "code", here=position, seals=seals, cursor=cursor)
    if query.view == "blame":
        lines, reason = await blamed.find(position, query.cursor or None)
        return _show(place, "blame", "code", here=position, lines=lines, reason=reason)
    if (file := await _file(position, query)) is not None:
        return _show(place, "file", "code", here=position, file=file, plain=query.plain)
    entries = await code.folder(position)
    readme = None if query.cursor else await code.readme(position, entries)
    page, cursor = code.folder_page(entries, query.cursor or None)
    return _show(
        place,
        "folder",
        "code",
        here=position,
        rows=code.folder_rows(position, page),
        count=len(entries),
        cursor=cursor,
        readme=readme,
    )


async def _travel(place: ShownRepository, query: DevQuery) -> Reply:
    """The time-travel page. It shows a file or folder as it was after one of the seals that changed it."""
    position = await code.find_position(place, query.at or None, query.path) if place.travels else None
    if position is None:
        raise NotFound
    journey = await code.page_of_history(position, query.cursor or None, query.seal)
    seal = journey.stops[journey.chosen].id
    then = replace(position, at=seal, seal=seal)
    file, rows = await _file(then, query), None
    if file is None:
        with contextlib.suppress(NotFound):  # that seal deleted it
            page, _ = code.folder_page(await code.folder(then), None)
            rows = code.folder_rows(then, page)
    return _show(
        place, "travel", "code", query=query, here=position, then=then, journey=journey, file=file, rows=rows
    )


async def _file(position: Position, query: DevQuery) -> code.ShownFile | None:
    """The file at the position's path. None if there is no file."""
    if not position.path:
        return None
    try:
        cursor = None if query.view else query.cursor or None  # in time travel it is one of seals
        return await code.file(position, position.path, query.plain, query.lines, cursor)
    except NotFound:
        return None


async def _issues(place: ShownRepository, query: DevQuery) -> Reply:
    if not query.n:
        if query.view == "new":
            return await (_new_proposal if query.kind == "proposals" else _new_issue)(place, query)
        return await _talks(place, query)
    if query.view == "edit":
        return await _edit(place, query)
    if query.view == "merge":
        return await _wait_for_merge(place, query)
    return await (_proposal_files if query.view == "files" else _talk)(place, query)


async def _talks(place: ShownRepository, query: DevQuery) -> Reply:
    filters: dict[str, Any] = {
        "state": query.state,
        "author": query.author or None,
        "label": query.label or None,
        "search": query.search or None,
        "cursor": query.cursor or None,
        "limit": ROWS,
    }
    page: Page[Any]
    if query.kind == "proposals":
        page = await proposal.page(place.view, check_members(ProposalQuery(**filters)))
    elif query.kind == "issues":
        page = await issue.page(place.view, check_members(IssueQuery(**filters)))
    else:
        raise NotFound
    proposals: list[Proposal] = []
    more_proposals = False
    if query == DevQuery(tab="issues"):
        open_ones = await proposal.page(place.view, ProposalQuery(state="open", limit=PROPOSALS))
        proposals, more_proposals = list(open_ones.items), open_ones.next_cursor is not None
    return _show(
        place,
        "talks",
        "issues",
        query=query,
        rows=page.items,
        cursor=page.next_cursor,
        proposals=proposals,
        more_proposals=more_proposals,
        all_labels=await _labels(place),
    )


async def _new_issue(place: ShownRepository, query: DevQuery) -> Reply:
    return _show(place, "new_issue", "issues", all_labels=await _labels(place))


async def _new_proposal(place: ShownRepository, query: DevQuery) -> Reply:
    """The page with the form of a new proposal. Once both branches are chosen, it shows the changes below."""
    base = query.base or place.repo.default_branch
    branches = await refs.page(place.view, "branch", None, code.BRANCHES)
    comparison = None
    title = ""
    if query.head and place.may_act("proposal.create"):
        compare = CompareQuery(base=base, head=query.head, cursor=query.cursor or None)
        comparison = await changes.comparison(place, compare)
        if comparison.changes is not None:
            title = await _title_of(place, comparison.changes.head)
    return _show(
        place,
        "new_proposal",
        "issues",
        base=base,
        head=query.head,
        branches=branches.items,
        comparison=comparison,
        title=title,
    )


async def _title_of(place: ShownRepository, seal_id: str) -> str:
    """The first line of a seal's message. "" if the seal is in another repository and this one does not have
    it yet."""
    try:
        return (await history.seal(place.view, seal_id)).message.split("\n")[0][:ISSUE_TITLE_CHARS]
    except NotFound:
        return ""


async def _wait_for_merge(place: ShownRepository, query: DevQuery) -> Reply:
    subject = await _proposal(place, query)
    onward = place.tab("issues", n=subject.number)
    return _wait(place, query, "issues", subject.state != "open", onward, subject=subject)


async def _talk(place: ShownRepository, query: DevQuery) -> Reply:
    labels = await _labels(place) if place.may_act("issue.label") else []
    return _show(place, "talk", "issues", talk=await talk.find(place, query.n), all_labels=labels)


async def _edit(place: ShownRepository, query: DevQuery) -> Reply:
    subject = await talk.find_subject(place, query.n)
    comment = await talk.find_comment(place, query.n, query.comment) if query.comment else None
    return _show(place, "edit", "issues", subject=subject, comment=comment)


async def _labels(place: ShownRepository) -> list[Label]:
    return list((await label.page(place.view, PageQuery(limit=LABELS))).items)


async def _runs(place: ShownRepository, query: DevQuery) -> Reply:
    page = await run.page(place.view, RunQuery(limit=ROWS, cursor=query.cursor or None))
    return _show(place, "runs", "workflows", runs=page.items, cursor=page.next_cursor)


async def _releases(place: ShownRepository, query: DevQuery) -> Reply:
    if query.view == "release":
        newest = (await releases.page(place.view, PageQuery(limit=1))).items
        version = newest[0].version if newest else ""
        query = msgspec.structs.replace(query, note=query.note if query.wait else version)
        return _wait(place, query, "releases", version != query.note, place.tab("releases"))
    page = await releases.page(place.view, PageQuery(limit=ROWS, cursor=query.cursor or None))
    texts = talk.Texts(place)
    rows = [(release, None if texts.full else await texts.render(release.notes)) for release in page.items]
    return _show(place, "releases", "releases", releases=rows, cursor=page.next_cursor)


async def _security(place: ShownRepository, query: DevQuery) -> Reply:
    reports = await advisories.page(place.view, AdvisoryQuery(limit=ROWS, repo=place.repo.full_name))
    rules = await protection.page(place.view, PageQuery(limit=ROWS))
    return _show(place, "security", "security", advisories=reports.items, rules=rules.items)


async def _insights(place: ShownRepository, query: DevQuery) -> Reply:
    depends = await dependency.find_dependencies(place.view, None)
    used = await dependents.page(place.view, PageQuery(limit=ROWS))
    return _show(place, "insights", "insights", depends=depends, used=used.items, cursor=used.next_cursor)


async def _seal(place: ShownRepository, query: DevQuery) -> Reply:
    seal = await history.seal(place.view, query.seal)
    comparison = await changes.of_seal(place, seal.id, query.cursor or None)
    return _show(place, "seal", "code", seal=seal, comparison=comparison)


async def _compare(place: ShownRepository, query: DevQuery) -> Reply:
    base = query.base or place.repo.default_branch
    compare = CompareQuery(base=base, head=query.head, cursor=query.cursor or None)
    comparison = await changes.comparison(place, compare) if query.head else None
    return _show(place, "compare", "code", base=base, head=query.head, comparison=comparison)


async def _proposal_files(place: ShownRepository, query: DevQuery) -> Reply:
    subject = await _proposal(place, query)
    lines = code.parse_marked_lines(query.lines, LAST_LINE)
    new_thread = None
    if query.path and lines and place.may_act("thread.create"):
        new_thread = changes.NewThread(query.path, query.side, lines[0], lines[-1])
    files = await changes.of_proposal(place, subject, query.cursor or None, new_thread)
    return _show(place, "proposal_files", "issues", subject=subject, files=files, cursor=query.cursor)


async def _proposal(place: ShownRepository, query: DevQuery) -> Proposal:
    """The proposal that the address names. Raises NotFound."""
    if whole_number(query.n, 9) is None:
        raise NotFound
    return await proposal.get(place.view, query.n)


async def _settings(place: ShownRepository, query: DevQuery) -> Reply:
    panel = await settings.read(place, query.view, query.note)
    return _show(place, "settings", "settings", panel=panel, panels=settings.PANELS)


TABS: dict[str, Callable[[ShownRepository, DevQuery], Awaitable[Reply]]] = {
    "overview": _dev_overview,
    "code": _code,
    "issues": _issues,
    "workflows": _runs,
    "releases": _releases,
    "security": _security,
    "insights": _insights,
    "settings": _settings,
}


def _wait(
    place: ShownRepository, query: DevQuery, tab: Tab, happened: bool, onward: str, **values: Any
) -> Reply:
    """Show a page that names a command to run, because a page of the browser cannot sign. If the reader
    chooses to wait, the page reloads until the command has taken effect. `happened`: it has taken effect, so
    the browser is sent to `onward`."""
    if happened:
        return redirect(onward)
    address = place.tab(tab, n=query.n, view=query.view, note=query.note)
    values |= {"what": query.view, "query": query, "address": address, "waiting": waiting}
    return waiting.refreshing(_show(place, "wait", tab, **values), address, query.wait)


def _show(place: ShownRepository, template: str, tab: Tab, **values: Any) -> Reply:
    return show(
        place.view,
        f"repository/{template}.html",
        place=place,
        repo=place.repo,
        tab=tab,
        size_of=code.size_of,
        **values,
    )
