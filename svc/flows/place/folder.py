"""Opens the working copy with the right key and server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from localstore.core.errors import NotFound
from localstore.core.identity.keys import DeviceKey
from localstore.core.model.repo import Repo
from localstore.folder import lock
from localstore.folder.link import RepoLink
from localstore.folder.lock import Holder
from localstore.sync.owning import Bound, Rounds, Turn, looked_at, opened
from localstore.sync.working_copy import WorkingCopy
from svc.api.sync_transport import BranchTransport, SealTransport
from svc.flows.place.where import Where

MAY_WRITE = ("owner", "admin", "write")


@contextmanager
def naming_link(link: RepoLink) -> Iterator[None]:
    """Run the block; a bare 404 of the relay, which is the same for a deleted repository and a mistyped name,
    becomes NotFound with the repository's name."""
    try:
        yield
    except NotFound as error:
        if not error.bare:
            raise
        raise repository_gone(link) from None


def repository_gone(link: RepoLink) -> NotFound:
    """The error for a linked repository that the server does not show."""
    return NotFound(
        f"{link.repo} was deleted, or is hidden from you; this restores it for 30 days if it is yours: "
        f"svc repo restore {link.repo_id}; if you are somebody else there, sign in: svc login"
    )


@contextmanager
def copy_for_sending(where: Where) -> Iterator[WorkingCopy]:
    """The working copy with session and registered device key, to send from."""
    from svc.flows.sign_in.register_device import ensure_registered

    root, link = where.linked_folder()
    api = where.api
    ensure_registered(api, where.sessions)
    transport = BranchTransport(api, link.repo_id, link.branch)
    key = where.sessions.identity.device
    with (
        naming_link(link),
        opened(root, where.home, transport, key, progress=where.progress, turn=turn(where, link)) as copy,
        _report_moved_back(where, copy),
    ):
        yield copy


@contextmanager
def _report_moved_back(where: Where, copy: WorkingCopy) -> Iterator[None]:
    """A context that reports at its end if the branch had moved back; only once, even if a push opens the
    copy twice."""
    try:
        yield
    finally:
        if copy.moved_back is not None and not where.reported_moved_back:
            from svc.flows.common import moved_back_words  # seldom needed

            where.reported_moved_back = True
            where.note(f"{moved_back_words(copy)}, which svc push sends again")


@contextmanager
def copy_for_pulling(where: Where) -> Iterator[WorkingCopy]:
    """A context with the working copy to pull into: with the device key for writers, who see the live
    frontier; without it for readers, who see the sealed head."""
    root, link = where.linked_folder()
    with naming_link(link):
        repo = where.reader.repo.linked(link.repo_id, link.repo)
    key = None if link.shown_seal else key_for(where, repo)
    transport = transport_of(where, link)
    with (
        naming_link(link),
        opened(root, where.home, transport, key, progress=where.progress, turn=turn(where, link)) as copy,
    ):
        copy.rename(repo.full_name, repo.class_)
        with _report_moved_back(where, copy):
            yield copy


@contextmanager
def copy_for_local_work(where: Where) -> Iterator[WorkingCopy]:
    """The working copy for changes to this folder only, as a context; the server is asked only for missing
    bytes."""
    root, link = where.linked_folder()
    transport = transport_of(where, link)
    with (
        naming_link(link),
        opened(root, where.home, transport, progress=where.progress, turn=turn(where, link)) as copy,
    ):
        yield copy


@contextmanager
def copy_for_reading(where: Where) -> Iterator[WorkingCopy]:
    """The working copy for reading, as a context. If another process holds the folder, a snapshot of its
    record (`looked_at`)."""
    root, link = where.linked_folder()

    def beside(holder: Holder) -> None:
        where.note(f"{holder} is working in {root}; this is how it stands meanwhile")

    look = Turn(where.command, waiting=beside, link=link)
    with (
        naming_link(link),
        looked_at(root, where.home, transport_of(where, link), where.progress, look) as copy,
    ):
        yield copy


def turn(where: Where, link: RepoLink | None = None) -> Turn:
    """How a command waits for the folder: by the name in `where`, which other waiting commands see, and for
    the limited time that all commands wait. `link`: the link that the folder must still have then."""

    def waiting(holder: Holder) -> None:
        where.note(f"waiting for {holder} …")

    return Turn(where.command, lock.PATIENCE, waiting, link)


def transport_of(where: Where, link: RepoLink) -> BranchTransport:
    """The transport for the folder's branch, or for the seal that the folder shows."""
    if link.shown_seal:
        return SealTransport(where.reader, link.repo_id, link.branch, link.shown_seal)
    return BranchTransport(where.reader, link.repo_id, link.branch)


def key_for(where: Where, repo: Repo) -> DeviceKey | None:
    """This machine's registered device key if the caller may write to `repo`; None for readers."""
    from svc.flows.sign_in.register_device import ensure_registered

    role = repo.viewer.role if repo.viewer else None
    if not where.reader.signed_in or role not in MAY_WRITE or repo.archived:
        return None
    ensure_registered(where.reader, where.sessions)
    return where.sessions.identity.device


def rounds(where: Where) -> Rounds:
    """The working copy for a long-running process: held for one round at a time, with the key that a pull
    would use. Whether this machine may write is asked in the first round and after the folder switched."""
    root, _ = where.linked_folder()

    def bind(link: RepoLink) -> Bound:
        repo = where.reader.repo.linked(link.repo_id, link.repo)
        return transport_of(where, link), None if link.shown_seal else key_for(where, repo)

    return Rounds(root, where.home, bind, turn(where), progress=where.progress)
