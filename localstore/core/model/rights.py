"""The table of rights: every operation that a relay offers, by its name, and who may request it.

    OPERATIONS["ref.create"].least  # "write"

Each route names its operation. The relay checks the caller's right before the handler runs, and again in a
transaction that writes. A client uses the table to predict refusals; the reference and tests are made from
it. docs/reference/rights.md marks the operations that have no route yet.

The table is a module of its own, because the relay's gate and its `View` both need it and may not import each
other."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal, get_args

import msgspec

Role = Literal["owner", "admin", "write", "triage", "read"]
Capability = Literal["read", "talk", "write", "admin"]
Edition = Literal["self-hosted-community", "self-hosted-business", "managed"]
About = Literal["repository", "account", "browser", "node"]
Who = Literal["owner", "admin", "write", "triage", "read", "author", "stranger", "guest", "anonymous"]

CALLERS: tuple[Who, ...] = get_args(Who)
"""The columns of the table. `author`: who wrote what is changed, and may read the repository; `stranger`:
signed in, with no role in a public repository."""
EDITIONS: tuple[Edition, ...] = get_args(Edition)
RANK: dict[str | None, int] = {None: 0, "read": 1, "triage": 2, "write": 3, "admin": 4, "owner": 5}


class Operation(msgspec.Struct, frozen=True):
    """An operation and who may request it. `about`: whether it is about a repository, an account, the browser
    or the node (the relay).

    - About a repository: `least` is the lowest role that may request it. In a public repository, `stranger`
      (an account without a role), `guest` and `anonymous` say whether these callers may, too. `author`: the
      author of the subject may, too; the service checks this (`View.require_author`). `archived`: allowed in
      an archived repository. For a suspended, killed or deleted repository the answer is always 404.
    - About an account: the caller needs a session; the session of a guest is enough if `guest` is set.
    - About the browser: the caller needs a session by cookie.
    - About the node: everybody may request it.

    `needs`: the capability that the credential must include (`write` includes `talk`). `edition`: the lowest
    edition of the relay that has the operation. `grows`: the operation adds data to a repository, so a relay
    short of disk space refuses it."""

    name: str
    about: About
    least: Role | None = None
    author: bool = False
    stranger: bool = False
    guest: bool = False
    anonymous: bool = False
    archived: bool = True
    needs: Capability = "read"
    edition: Edition = "self-hosted-community"
    grows: bool = False

    def allows(self, who: Who) -> bool:
        """Whether callers of the kind `who` may request the operation, in an active repository that they
        see."""
        if who == "author":
            return self.author or self.stranger  # an author without a role is a stranger too
        if who in ("stranger", "guest", "anonymous"):
            return bool(getattr(self, who))
        return self.least is None or RANK[who] >= RANK[self.least]

    def in_edition(self, edition: str) -> bool:
        return EDITIONS.index(edition) >= EDITIONS.index(self.edition)


def choose_capability(needs: Capability, caps: Collection[str]) -> Capability:
    """The capability that a credential must have for an operation. `needs`: what the operation needs; `caps`:
    the capabilities of the credential. If `talk` is needed and missing, the result is `write`, because
    `write` includes `talk`."""
    return "write" if needs == "talk" and "talk" not in caps else needs


def reading(name: str, least: Role = "read", *, anonymous: bool = True, guest: bool = True) -> Operation:
    """Makes an operation that reads a repository. `least`: the lowest role that may request it. If this is
    `read`, accounts without a role may request it in a public repository. `guest`, `anonymous`: whether
    guests, and callers without a session, may do so too."""
    public = least == "read"
    return Operation(
        name,
        "repository",
        least,
        stranger=public,
        guest=public and guest,
        anonymous=public and guest and anonymous,
    )


def writing(
    name: str,
    least: Role = "write",
    *,
    author: bool = False,
    guest: bool = False,
    archived: bool = False,
    grows: bool = False,
    talk: bool = False,
    edition: Edition = "self-hosted-community",
) -> Operation:
    """Makes an operation that changes a repository. If `least` is `read`, strangers who can read the
    repository may request it, too; guests only with `guest`. `talk`: a credential for reading and talking
    is enough. For the other parameters see `Operation`."""
    return Operation(
        name,
        "repository",
        least,
        author=author,
        stranger=least == "read",
        guest=guest,
        archived=archived,
        needs="admin" if least in ("owner", "admin") else "talk" if talk else "write",
        edition=edition,
        grows=grows,
    )


def signed_in(
    name: str,
    needs: Capability = "write",
    *,
    guest: bool = False,
    edition: Edition = "self-hosted-community",
) -> Operation:
    """Makes an operation about the caller's account, for any signed-in caller."""
    return Operation(name, "account", stranger=True, guest=guest, needs=needs, edition=edition)


def in_browser(name: str) -> Operation:
    """Makes an operation for a page or decision in the browser, which needs a session by cookie."""
    return Operation(name, "browser", stranger=True, needs="write")


def open_to_all(name: str) -> Operation:
    """Makes an operation about the relay that everybody may request."""
    return Operation(name, "node", stranger=True, guest=True, anonymous=True)


IN_A_REPOSITORY: tuple[Operation, ...] = (
    # --- the repository
    reading("repo.get", anonymous=False),
    writing("repo.update", "owner", archived=True),
    writing("repo.delete", "owner", archived=True),
    reading("fork.list"),
    writing("fork.create", "read", archived=True),
    writing("transfer.create", "owner", archived=True),
    reading("listing.get"),
    writing("listing.set", "owner"),
    writing("listing.remove", "owner"),
    reading("upstream.get"),
    writing("upstream.set", "owner"),
    writing("upstream.remove", "owner"),
    writing("publication.create", grows=True),
    reading("repo.dependencies"),
    reading("repo.dependents"),
    reading("seal.artifacts"),
    # --- refs
    reading("ref.list"),
    writing("ref.create", grows=True),
    reading("ref.get"),
    writing("ref.update"),
    writing("ref.delete"),
    # --- live
    writing("live.bootstrap"),
    writing("live.lanes", archived=True),
    writing("live.proof_context"),
    writing("live.updates"),  # deleting files makes room: the service looks at the disk
    # --- bytes
    writing("payload.put", grows=True),
    reading("payload.get", anonymous=False),
    writing("payload.put_manifest", grows=True),
    reading("payload.get_manifest", anonymous=False),
    writing("pack.have", grows=True),
    writing("pack.store", grows=True),
    reading("pack.fetch"),
    # --- seals and history
    writing("seal.prepare", grows=True),
    writing("seal.finalize", grows=True),
    writing("seals.prepare", grows=True),
    writing("seals.finalize", grows=True),
    reading("seal.get", anonymous=False),
    reading("seal.updates", "write"),
    reading("history.commits"),
    reading("history.log", anonymous=False),
    reading("history.tree"),
    reading("history.proof"),
    reading("history.blob"),
    reading("history.raw"),
    reading("history.archive"),
    reading("history.pack"),
    reading("history.compare", anonymous=False),
    reading("history.blame", anonymous=False),
    writing("merge.preview", grows=True),
    writing("merge.merge", grows=True),
    # --- people and protection
    reading("collaborator.list", "triage"),
    writing("collaborator.role", "owner", archived=True),
    writing("collaborator.remove", "owner", author=True, archived=True),  # or leave by oneself
    writing("invite.create", "owner", archived=True),
    reading("invite.list", "owner"),
    writing("invite.cancel", "owner", archived=True),
    reading("access.list", "owner"),
    reading("protection.list"),
    writing("protection.set", "owner"),
    writing("protection.clear", "owner"),
    reading("path.list", "write"),
    writing("path.set", "owner"),
    writing("path.price", "owner", edition="managed"),
    writing("path.remove", "owner"),
    reading("path.timeline", "owner"),
    reading("audit.list", "owner"),
    # --- issues, labels, people's attention
    reading("issue.list"),
    reading("issue.get"),
    reading("issue.timeline"),
    writing("issue.create", "read"),
    writing("issue.update", "triage", author=True),  # the route; what it changes asks for a row of its own
    writing("issue.edit", "admin", author=True),
    writing("issue.close", "triage", author=True),
    writing("issue.reopen", "triage", author=True),
    writing("issue.assign", "triage"),
    writing("issue.label", "triage"),
    reading("comment.list"),
    writing("comment.create", "read", talk=True),
    writing("comment.edit", "admin", author=True),
    writing("comment.delete", "admin", author=True),
    writing("reaction.add", "read", talk=True),
    writing("reaction.remove", "read", talk=True),
    reading("label.list"),
    writing("label.create", "triage"),
    writing("label.edit", "triage"),
    writing("label.delete", "admin"),
    writing("label.clone", "triage"),
    writing("star.set", "read", guest=True, archived=True),
    writing("star.clear", "read", guest=True, archived=True),
    writing("watch.set", "read", guest=True, archived=True),
    writing("watch.clear", "read", guest=True, archived=True),
    # --- proposals
    reading("proposal.list"),
    reading("proposal.get"),
    reading("proposal.versions"),
    writing("proposal.create", "read"),
    writing("proposal.update", "triage", author=True),  # likewise
    writing("proposal.edit", "admin", author=True),
    writing("proposal.close", "triage", author=True),
    writing("proposal.reopen", "triage", author=True),
    writing("proposal.ready", author=True),
    writing("proposal.reviewers", "triage", author=True),
    writing("proposal.update_branch", grows=True),
    writing("proposal.merge_prepare", grows=True),
    writing("proposal.merge_finalize", grows=True),
    writing("proposal.auto_merge", grows=True),
    writing("review.create", "read", talk=True),
    writing("review.dismiss", "admin"),
    reading("thread.list"),
    writing("thread.create", "read", talk=True),
    writing("thread.resolve", author=True),
    writing("thread.comment", "read", talk=True),
    writing("suggestion.prepare", grows=True),
    # --- runs, checks, releases, hooks, reports
    reading("run.list"),
    reading("run.get"),
    writing("run.create"),
    writing("run.update"),
    writing("run.cancel"),
    writing("run.rerun"),
    reading("check.list"),
    writing("check.enable", "owner"),
    writing("check.disable", "owner"),
    reading("release.list"),
    reading("release.get"),
    writing("release.create"),
    writing("release.edit"),
    writing("release.delete"),
    reading("asset.list"),
    reading("asset.get"),
    writing("asset.upload", grows=True),
    writing("asset.delete"),
    reading("webhook.list", "owner"),
    reading("webhook.get", "owner"),
    writing("webhook.create", "owner"),
    writing("webhook.edit", "owner"),
    writing("webhook.delete", "owner"),
    writing("webhook.ping", "owner"),
    reading("webhook.deliveries", "owner"),
    writing("webhook.redeliver", "owner"),
    writing("report.create", "read"),
    reading("report.list", anonymous=False, guest=False),
    writing("report.decide", "owner"),
    writing("advisory.publish", "owner", edition="self-hosted-business"),
)
"""Rights in a repository. `owner`: settings; `admin`: moderation; `write`: content and merges; `triage`:
sorting; every reader: opening issues, commenting, proposing and reacting."""

ELSEWHERE: tuple[Operation, ...] = (
    # --- repositories as lists, and by name
    signed_in("repo.create"),
    open_to_all("repo.list"),
    open_to_all("repo.search"),
    open_to_all("repo.coordinates"),
    open_to_all("git.fetch"),
    open_to_all("git.push"),
    signed_in("repo.restore", "admin"),
    signed_in("invite.mine", "read"),
    signed_in("invite.accept", "admin"),
    signed_in("invite.decline", "admin"),
    signed_in("access.request"),
    signed_in("access.grant", "admin"),
    signed_in("access.decline", "admin"),
    signed_in("transfer.list", "read"),
    signed_in("transfer.accept", "admin"),
    signed_in("transfer.decline", "admin"),
    signed_in("transfer.cancel", "admin"),
    signed_in("organisation.create", "admin"),
    signed_in("organisation.list", "read"),
    signed_in("organisation.get", "read"),
    signed_in("organisation.update", "admin"),
    signed_in("organisation.delete", "admin"),
    signed_in("member.list", "read"),
    signed_in("member.invites", "read"),
    signed_in("member.invite", "admin"),
    signed_in("member.role", "admin"),
    signed_in("member.remove", "admin"),
    signed_in("member.mine", "read"),
    signed_in("member.accept", "admin"),
    signed_in("member.decline", "admin"),
    signed_in("inbox.list", "read"),
    signed_in("inbox.update", "talk"),
    open_to_all("social.listing"),
    open_to_all("advisory.list"),
    open_to_all("advisory.get"),
    open_to_all("git_proxy.get"),
    # --- events
    signed_in("sync.listen", "read", guest=True),
    signed_in("sync.poll", "read", guest=True),
    # --- sessions, keys, tokens, handles
    open_to_all("session.guest"),
    open_to_all("session.info"),
    open_to_all("session.refresh"),
    open_to_all("session.end"),
    open_to_all("session.callback"),
    signed_in("session.export_key", "admin", guest=True),
    signed_in("session.list", "read", guest=True),
    signed_in("session.revoke", "admin", guest=True),
    in_browser("token.create"),
    open_to_all("token.keys"),
    open_to_all("terminal.start"),
    in_browser("terminal.approve"),
    open_to_all("terminal.claim"),
    open_to_all("device_key.sign_in"),
    signed_in("device_key.register"),
    signed_in("device_key.list", "read"),
    signed_in("device_key.rename", "admin"),
    signed_in("device_key.revoke", "admin"),
    signed_in("device_key.pair", "admin"),
    signed_in("handle.get", "read", guest=True),
    signed_in("handle.change", "admin"),
    signed_in("api_key.list", "admin"),
    signed_in("api_key.create", "admin"),
    signed_in("api_key.get", "admin"),
    signed_in("api_key.revoke", "admin"),
    signed_in("api_key.rotate", "admin"),
    signed_in("api_key.validate", "read"),
    # --- documents, devices, files
    signed_in("document.list", "read", guest=True),
    signed_in("document.create", guest=True),
    signed_in("document.get", "read", guest=True),
    signed_in("document.put", guest=True),
    signed_in("document.delete", guest=True),
    signed_in("document.archive", guest=True),
    signed_in("document.unarchive", guest=True),
    signed_in("document.history", "read", guest=True),
    signed_in("checkpoint.list", "read", guest=True),
    signed_in("checkpoint.create", guest=True),
    signed_in("checkpoint.travel", guest=True),
    signed_in("checkpoint.head", guest=True),
    signed_in("checkpoint.frontiers", "read", guest=True),
    signed_in("device.list", "read"),
    signed_in("device.pair", "admin"),
    open_to_all("device.join"),  # a new device is not signed in yet; it shows the secret of the code
    signed_in("device.revoke", "admin"),
    signed_in("file.list", "read"),
    signed_in("file.delete"),
    open_to_all("file.retired"),
    # --- cloud and billing
    signed_in("cloud.launch", "admin"),
    signed_in("cloud.list", "read"),
    signed_in("cloud.stop", "admin"),
    signed_in("cloud.status", "read"),
    signed_in("billing.checkout", "admin", edition="managed"),
    signed_in("billing.portal", "admin", edition="managed"),
    signed_in("billing.subscription", "read", edition="managed"),
    signed_in("billing.invoices", "read", edition="managed"),
    # --- catalog, blog, distribution
    open_to_all("catalog.apps"),
    open_to_all("catalog.model_packs"),
    open_to_all("blog.posts"),
    open_to_all("blog.categories"),
    open_to_all("distribution.get"),
    # --- the node and its pages
    open_to_all("node.health"),
    open_to_all("node.describe"),
    open_to_all("node.metrics"),
    open_to_all("node.source"),
    open_to_all("page.static"),
    open_to_all("page.sign_in"),
    open_to_all("page.settings"),
    open_to_all("page.terminal"),
    open_to_all("page.repository"),
)
"""Rights of operations that are not about one visible repository: the caller's account, pages and the node.
An operation on a repository that the caller may not see yet (an invitation, a transfer, a request for access,
a deleted repository) is about the account, and the service searches its row for the caller."""

OPERATIONS: dict[str, Operation] = {operation.name: operation for operation in (*IN_A_REPOSITORY, *ELSEWHERE)}
