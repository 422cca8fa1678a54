"""Requests for a repository's contents, made as `tui.reads.Read`. The first screen needs none of them.

client.fetch(contents.tree(repo_id, seal, "src"))
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal

import msgspec

from localstore.core.errors import NotFound
from localstore.core.model import access as access_
from localstore.core.model import advisory as advisories_
from localstore.core.model import audit as audit_
from localstore.core.model import check as checks_
from localstore.core.model import dependency as dependencies_
from localstore.core.model import history as histories
from localstore.core.model import issue as issues_
from localstore.core.model import label as labels_
from localstore.core.model import listing as listings_
from localstore.core.model import proposal as proposals_
from localstore.core.model import protection as protections_
from localstore.core.model import ref as refs_
from localstore.core.model import release as releases_
from localstore.core.model import report as reports_
from localstore.core.model import review as reviews_
from localstore.core.model import run as runs_
from localstore.core.model import thread as threads_
from localstore.core.model.access import AccessRequest, Collaborator, Invite
from localstore.core.model.advisory import Advisory, AdvisoryQuery
from localstore.core.model.audit import AuditEntry
from localstore.core.model.check import Check, SealChecks
from localstore.core.model.dependency import Dependencies, DependencyQuery, Dependent
from localstore.core.model.history import (
    Blame,
    Blob,
    CommitsQuery,
    Compare,
    CompareQuery,
    SealSummary,
    Tree,
    TreeQuery,
)
from localstore.core.model.issue import Comment, Issue, IssueQuery
from localstore.core.model.label import Label
from localstore.core.model.listing import Listing
from localstore.core.model.proposal import Proposal, ProposalQuery, TimelineItem, Version
from localstore.core.model.protection import Protection
from localstore.core.model.ref import Ref
from localstore.core.model.release import Release
from localstore.core.model.repo import Repo
from localstore.core.model.report import Report
from localstore.core.model.review import Review
from localstore.core.model.run import Run
from localstore.core.model.thread import Thread
from svc.api import Api
from tui.listed import ListedIssue, ListedProposal, as_rows
from tui.reads import Read

if TYPE_CHECKING:
    from svc.flows.templates import Template

RECENT = 20  # seals that a preview of a branch lists
HISTORY = 200  # seals that a history lists
ISSUES = 10_000  # issues that a list holds
COMMENTS = 1_000  # of one issue
RELEASES, LABELS = 200, 1_000
RUNS = 500
TIMED, KINDS = 200, 20  # issues whose times are read; kinds of files
AUDIT = 100  # newest entries among which changes of rules are looked for
REPORTS = 100  # security reports that are read
PROPOSED = 500  # proposals whose branches are read
NEWEST = 50  # proposals of a repository whose state the inbox shows
PATHS = 10  # files of a seal that a preview lists
PEOPLE, VERSIONS, HAPPENED = 500, 100, 500
ADVISORIES, PROTECTIONS, DEPENDENTS = 200, 50, 200


def refs(repo_id: str) -> Read[list[Ref]]:
    return Read(f"repos/{repo_id}/refs", list[Ref], lambda api: list(api.items(refs_.LIST, id=repo_id)))


def seal(repo_id: str, seal_id: str) -> Read[SealSummary]:
    query = CommitsQuery(sha=seal_id)
    return Read(
        f"repos/{repo_id}/seal/{seal_id}",
        SealSummary,
        lambda api: next(iter(api.items(histories.COMMITS, query, limit=1, id=repo_id))),
        final=True,
    )


def seals_beginning(repo_id: str, prefix: str) -> Read[list[SealSummary]]:
    """Returns a request for the seals whose ids begin with `prefix`."""
    query = CommitsQuery(prefix=prefix)
    return Read(
        f"repos/{repo_id}/seals_beginning/{prefix}",
        list[SealSummary],
        lambda api: list(api.items(histories.COMMITS, query, limit=RECENT, id=repo_id)),
    )


def recent(repo_id: str, ref: str) -> Read[list[SealSummary]]:
    """Returns a request for the newest seals of a branch or tag. The answer is [] if it has no seals."""
    query = CommitsQuery(ref=ref)
    return Read(
        f"repos/{repo_id}/recent/{ref}",
        list[SealSummary],
        lambda api: list(api.items(histories.COMMITS, query, limit=RECENT, id=repo_id)),
    )


def ahead(repo_id: str, head: str, base: str) -> Read[list[SealSummary]]:
    """Returns a request for the newest seals in the history of the seal `head` that the history of the seal
    `base` lacks."""
    query = CommitsQuery(sha=head, without=base)
    return Read(
        f"repos/{repo_id}/ahead/{head}/{base}",
        list[SealSummary],
        lambda api: list(api.items(histories.COMMITS, query, limit=RECENT, id=repo_id)),
        final=True,
    )


class CheckedSeal(msgspec.Struct, frozen=True):
    """A seal whose signature was checked on this machine. `fault`: the reason why the signature is invalid,
    "" if it is valid."""

    seal: SealSummary
    fault: str


def checked_seal(repo: Repo, seal_id: str) -> Read[CheckedSeal]:
    def call(api: Api) -> CheckedSeal:
        from svc.flows.history.show import fault_of

        seal = api.history.seal(repo.id, seal_id)
        summary = SealSummary(**{name: getattr(seal, name) for name in SealSummary.__struct_fields__})
        return CheckedSeal(summary, fault_of(repo, seal, seal_id) or "")

    return Read(f"repos/{repo.id}/checked_seal/{seal_id}", CheckedSeal, call, final=True)


def tree(repo_id: str, seal_id: str, folder: str = "", *, recursive: bool = False) -> Read[Tree]:
    """Returns a request for the entries of a folder in a seal. With `recursive`, the request is for every
    file below the folder."""
    query = TreeQuery(path=folder, recursive=recursive)
    kind = "files" if recursive else "tree"
    return Read(
        f"repos/{repo_id}/{kind}/{seal_id}/{folder}",
        Tree,
        lambda api: api.send(histories.TREE, query=query, id=repo_id, sha=seal_id),
        final=True,
    )


def file(repo_id: str, seal_id: str, path: str) -> Read[Blob]:
    return Read(
        f"repos/{repo_id}/file/{seal_id}/{path}",
        Blob,
        lambda api: api.send(histories.BLOB, id=repo_id, sha=seal_id, path=path),
        final=True,
    )


def blame(repo_id: str, seal_id: str, path: str) -> Read[Blame]:
    return Read(
        f"repos/{repo_id}/blame/{seal_id}/{path}",
        Blame,
        lambda api: api.send(histories.BLAME, id=repo_id, seal_id=seal_id, path=path),
        final=True,
    )


def history(
    repo_id: str, ref: str, path: str | None, *, first_parent: bool = False
) -> Read[list[SealSummary]]:
    """Returns a request for the seals of a branch or tag, the newest first. With `path`, only the seals that
    changed this file, under its present name or an earlier one. With `first_parent`, only the chain of first
    parents, without merged seals."""
    query = CommitsQuery(ref=ref, path=path, follow=bool(path), first_parent=first_parent)
    return Read(
        f"repos/{repo_id}/{'line' if first_parent else 'history'}/{ref}/{path or ''}",
        list[SealSummary],
        lambda api: list(api.items(histories.COMMITS, query, limit=HISTORY, id=repo_id)),
    )


def changes_made(repo_id: str, seal_id: str) -> Read[Compare]:
    """Returns a request for the changes that a seal made, compared with its first parent."""
    query = CompareQuery(head=seal_id)
    return Read(
        f"repos/{repo_id}/brought/{seal_id}",
        Compare,
        lambda api: api.history.compare(repo_id, query),
        final=True,
    )


class ChangedPath(msgspec.Struct, frozen=True):
    """A file that a seal changed, without its patch."""

    path: str
    status: str
    additions: int
    deletions: int
    binary: bool = False


class ChangedPaths(msgspec.Struct, frozen=True):
    """The first files that a seal or a branch changed. `more`: there are more than these."""

    items: list[ChangedPath]
    more: bool


def changed_paths(repo_id: str, seal_id: str, base: str | None = None) -> Read[ChangedPaths]:
    """Returns a request for the first PATHS files that a seal changed, without their patches. `base`: a seal;
    then for the files that were changed since the merge base with it."""
    query = CompareQuery(head=seal_id, base=base, limit=PATHS)

    def call(api: Api) -> ChangedPaths:
        compared = api.send(histories.COMPARE, query=query, id=repo_id)
        items = [
            ChangedPath(file.path, file.status, file.additions, file.deletions) for file in compared.files
        ]
        return ChangedPaths(items, compared.next_cursor is not None)

    since = f"/{base}" if base is not None else ""
    return Read(f"repos/{repo_id}/changed_paths/{seal_id}{since}", ChangedPaths, call, final=True)


def issues(repo_id: str, query: IssueQuery) -> Read[list[ListedIssue]]:
    return Read(
        f"repos/{repo_id}/issues/{_name_query(query)}",
        list[ListedIssue],
        lambda api: as_rows(api.items(issues_.LIST, query, limit=ISSUES, id=repo_id), ListedIssue),
    )


def _name_query(query: msgspec.Struct) -> str:
    """Returns the name of a query within its cache key. If only the state is set, the name is the state.
    Otherwise it consists of all fields that are set."""
    filters = {name: value for name, value in msgspec.structs.asdict(query).items() if value is not None}
    return str(filters["state"]) if len(filters) == 1 else msgspec.json.encode(filters).decode()


def issue_templates(repo_id: str, seal_id: str) -> Read[list[Template]]:
    def call(api: Api) -> list[Template]:
        from svc.flows.templates import in_seal

        return in_seal(api, repo_id, seal_id)

    from svc.flows.templates import Template

    return Read(f"repos/{repo_id}/issue_templates/{seal_id}", list[Template], call, final=True)


def issue(repo_id: str, number: int) -> Read[Issue]:
    return Read(
        f"repos/{repo_id}/issue/{number}",
        Issue,
        lambda api: api.send(issues_.GET, id=repo_id, n=str(number)),
    )


def comments(repo_id: str, number: int) -> Read[list[Comment]]:
    return Read(
        f"repos/{repo_id}/comments/{number}",
        list[Comment],
        lambda api: list(api.items(issues_.COMMENTS, limit=COMMENTS, id=repo_id, n=str(number))),
    )


def threads(repo_id: str, number: int) -> Read[list[Thread]]:
    return Read(
        f"repos/{repo_id}/threads/{number}",
        list[Thread],
        lambda api: list(api.items(threads_.LIST, limit=COMMENTS, id=repo_id, n=str(number))),
    )


class Times(msgspec.Struct, frozen=True):
    """The times at which the newest issues or proposals of a repository were opened, and how many are open
    and closed. `more`: there are more than were read."""

    opened: list[str]
    open: int
    closed: int
    more: bool


def issue_times(repo_id: str) -> Read[Times]:
    query = IssueQuery(state="all")
    return Read(
        f"repos/{repo_id}/issue_times",
        Times,
        lambda api: _times(api.items(issues_.LIST, query, limit=TIMED, id=repo_id)),
    )


def proposal_times(repo_id: str) -> Read[Times]:
    query = ProposalQuery(state="all")
    return Read(
        f"repos/{repo_id}/proposal_times",
        Times,
        lambda api: _times(api.items(proposals_.LIST, query, limit=TIMED, id=repo_id)),
    )


def _times(items: Iterable[Issue] | Iterable[Proposal]) -> Times:
    states = [(item.created_at, item.state) for item in items]
    opened = sum(state == "open" for _, state in states)
    return Times([time for time, _ in states], opened, len(states) - opened, len(states) >= TIMED)


class Kind(msgspec.Struct, frozen=True):
    """A kind of file: all files whose names have the same ending. `name`: the ending. The other fields are
    how many such files there are, and the sum of their sizes in bytes."""

    name: str
    files: int
    size: int


class Below(msgspec.Struct, frozen=True):
    """What a folder contains, with all folders in it: how many files, the sum of their sizes in bytes, and
    the kinds of files. `filtered`: other files are hidden from the user."""

    files: int
    size: int
    kinds: list[Kind]
    filtered: bool


def kinds(repo_id: str, seal_id: str) -> Read[list[Kind]]:
    """Returns a request for the kinds of files in a seal, sorted by the sum of their sizes, the largest
    first. Files whose names have the same ending are of one kind."""
    query = TreeQuery(recursive=True)

    def call(api: Api) -> list[Kind]:
        return _kinds_of(api.send(histories.TREE, query=query, id=repo_id, sha=seal_id))

    return Read(f"repos/{repo_id}/kinds/{seal_id}", list[Kind], call, final=True)


def below(repo_id: str, seal_id: str, folder: str) -> Read[Below]:
    """Returns a request for what a folder of a seal contains, with all folders in it."""
    query = TreeQuery(path=folder, recursive=True)

    def call(api: Api) -> Below:
        tree = api.send(histories.TREE, query=query, id=repo_id, sha=seal_id)
        sizes = [entry.size for entry in tree.entries if entry.kind != "dir"]
        return Below(len(sizes), sum(sizes), _kinds_of(tree), tree.filtered)

    return Read(f"repos/{repo_id}/below/{seal_id}/{folder}", Below, call, final=True)


def _kinds_of(tree: Tree) -> list[Kind]:
    sizes: dict[str, list[int]] = {}
    for entry in tree.entries:
        if entry.kind != "dir":
            stem, _, ending = entry.path.rpartition("/")[2].rpartition(".")
            sizes.setdefault(ending.casefold() if stem else "other", []).append(entry.size)
    ordered = [Kind(name, len(those), sum(those)) for name, those in sizes.items()]
    return sorted(ordered, key=lambda kind: (-kind.size, kind.name))[:KINDS]


def labels(repo_id: str) -> Read[list[Label]]:
    return Read(
        f"repos/{repo_id}/labels",
        list[Label],
        lambda api: list(api.items(labels_.LIST, limit=LABELS, id=repo_id)),
    )


def listing(repo_id: str) -> Read[list[Listing]]:
    """Returns a request for the catalog listing of a repository. The answer is a list with at most one
    item."""

    def call(api: Api) -> list[Listing]:
        try:
            return [api.send(listings_.GET, id=repo_id)]
        except NotFound:
            return []

    return Read(f"repos/{repo_id}/listing", list[Listing], call)


def releases(repo_id: str) -> Read[list[Release]]:
    return Read(
        f"repos/{repo_id}/releases",
        list[Release],
        lambda api: list(api.items(releases_.LIST, limit=RELEASES, id=repo_id)),
    )


def release(repo_id: str, version: str) -> Read[Release]:
    return Read(
        f"repos/{repo_id}/release/{version}",
        Release,
        lambda api: api.send(releases_.GET, id=repo_id, v=version),
    )


def advisories(full_name: str) -> Read[list[Advisory]]:
    query = AdvisoryQuery(repo=full_name)
    return Read(
        f"advisories/{full_name}",
        list[Advisory],
        lambda api: list(api.items(advisories_.LIST, query, limit=ADVISORIES)),
    )


def protections(repo_id: str) -> Read[list[Protection]]:
    return Read(
        f"repos/{repo_id}/protections",
        list[Protection],
        lambda api: list(api.items(protections_.LIST, limit=PROTECTIONS, id=repo_id)),
    )


def rule_changes(repo_id: str) -> Read[list[AuditEntry]]:
    """Returns a request for the newest entries of the audit log in which protection rules were set or
    cleared. Only the owner may read them."""

    def call(api: Api) -> list[AuditEntry]:
        entries = api.items(audit_.LIST, limit=AUDIT, id=repo_id)
        return [entry for entry in entries if entry.action.startswith("protection.")]

    return Read(f"repos/{repo_id}/rule_changes", list[AuditEntry], call)


def reports(repo_id: str) -> Read[list[Report]]:
    """Returns a request for the newest security reports that the user may read. The owner may read all of
    them, others only their own."""

    def call(api: Api) -> list[Report]:
        return list(api.items(reports_.LIST, limit=REPORTS, id=repo_id))

    return Read(f"repos/{repo_id}/reports", list[Report], call)


def dependencies(repo_id: str, seal_id: str) -> Read[Dependencies]:
    """Returns a request for the dependencies of a seal. The answer can change later, because advisories are
    added and other repositories become visible."""
    query = DependencyQuery(ref=seal_id)
    return Read(
        f"repos/{repo_id}/dependencies/{seal_id}",
        Dependencies,
        lambda api: api.send(dependencies_.LIST, query=query, id=repo_id),
    )


def dependents(repo_id: str) -> Read[list[Dependent]]:
    return Read(
        f"repos/{repo_id}/dependents",
        list[Dependent],
        lambda api: list(api.items(dependencies_.DEPENDENTS, limit=DEPENDENTS, id=repo_id)),
    )


def proposals(repo_id: str, query: ProposalQuery) -> Read[list[ListedProposal]]:
    return Read(
        f"repos/{repo_id}/proposals/{_name_query(query)}",
        list[ListedProposal],
        lambda api: as_rows(api.items(proposals_.LIST, query, limit=ISSUES, id=repo_id), ListedProposal),
    )


def newest_proposals(repo_id: str) -> Read[list[ListedProposal]]:
    """Returns a request for the open proposals of a repository that changed last."""
    return Read(
        f"repos/{repo_id}/newest_proposals",
        list[ListedProposal],
        lambda api: as_rows(api.items(proposals_.LIST, limit=NEWEST, id=repo_id), ListedProposal),
    )


class ProposedHead(msgspec.Struct, frozen=True, gc=False):
    """The branches of a proposal, and the newest seal of its head. `cross_repository`: whether the head is a
    branch of another repository."""

    number: int
    head: str
    base: str
    head_seal: str
    cross_repository: bool


def proposed_heads(repo_id: str, state: Literal["open", "merged"]) -> Read[list[ProposedHead]]:
    """Returns a request for the branches of the newest proposals in this state."""
    query = ProposalQuery(state=state)
    return Read(
        f"repos/{repo_id}/proposed_heads/{state}",
        list[ProposedHead],
        lambda api: as_rows(api.items(proposals_.LIST, query, limit=PROPOSED, id=repo_id), ProposedHead),
    )


def proposal(repo_id: str, number: int) -> Read[Proposal]:
    return Read(
        f"repos/{repo_id}/proposal/{number}",
        Proposal,
        lambda api: api.send(proposals_.GET, id=repo_id, n=str(number)),
    )


def timeline(repo_id: str, number: int) -> Read[list[TimelineItem]]:
    """Returns a request for what happened to an issue or a proposal, oldest first."""
    return Read(
        f"repos/{repo_id}/timeline/{number}",
        list[TimelineItem],
        lambda api: list(api.items(proposals_.TIMELINE, limit=HAPPENED, id=repo_id, n=str(number))),
    )


def versions(repo_id: str, number: int) -> Read[list[Version]]:
    return Read(
        f"repos/{repo_id}/versions/{number}",
        list[Version],
        lambda api: list(api.items(proposals_.VERSIONS, limit=VERSIONS, id=repo_id, n=str(number))),
    )


def reviews(repo_id: str, number: int) -> Read[list[Review]]:
    return Read(
        f"repos/{repo_id}/reviews/{number}",
        list[Review],
        lambda api: list(api.items(reviews_.LIST, limit=COMMENTS, id=repo_id, n=str(number))),
    )


def changes(repo_id: str, base: str, head: str, *, direct: bool = False) -> Read[Compare]:
    """Returns a request for what `head` has changed since its merge base with `base`. Both are ids of seals.
    With `direct`, the request is for what differs between the two."""
    query = CompareQuery(base=base, head=head, direct=direct)
    return Read(
        f"repos/{repo_id}/{'differences' if direct else 'changes'}/{base}/{head}",
        Compare,
        lambda api: api.history.compare(repo_id, query),
        final=True,
    )


def seal_checks(repo_id: str, seal_id: str) -> Read[SealChecks]:
    return Read(
        f"repos/{repo_id}/seal_checks/{seal_id}",
        SealChecks,
        lambda api: api.send(checks_.OF_SEAL, id=repo_id, seal_id=seal_id),
    )


def checks(repo_id: str) -> Read[list[Check]]:
    return Read(
        f"repos/{repo_id}/checks",
        list[Check],
        lambda api: list(api.items(checks_.LIST, limit=RUNS, id=repo_id)),
    )


def runs(repo_id: str) -> Read[list[Run]]:
    return Read(
        f"repos/{repo_id}/runs",
        list[Run],
        lambda api: list(api.items(runs_.LIST, limit=RUNS, id=repo_id)),
    )


def run(repo_id: str, run_id: str) -> Read[Run]:
    return Read(f"repos/{repo_id}/run/{run_id}", Run, lambda api: api.send(runs_.GET, id=repo_id, run=run_id))


def collaborators(repo_id: str) -> Read[list[Collaborator]]:
    return Read(
        f"repos/{repo_id}/collaborators",
        list[Collaborator],
        lambda api: list(api.items(access_.COLLABORATORS, limit=PEOPLE, id=repo_id)),
    )


def invites(repo_id: str) -> Read[list[Invite]]:
    return Read(
        f"repos/{repo_id}/invites",
        list[Invite],
        lambda api: list(api.items(access_.INVITES, limit=PEOPLE, id=repo_id)),
    )


def my_invites() -> Read[list[Invite]]:
    """Returns a request for the user's invitations into repositories."""
    return Read("invites", list[Invite], lambda api: list(api.items(access_.MY_INVITES, limit=PEOPLE)))


def access_requests(repo_id: str) -> Read[list[AccessRequest]]:
    return Read(
        f"repos/{repo_id}/access_requests",
        list[AccessRequest],
        lambda api: list(api.items(access_.REQUESTS, limit=PEOPLE, id=repo_id)),
    )
