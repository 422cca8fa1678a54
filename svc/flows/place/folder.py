"""Opens the working copy (the linked folder with its record), with the server and device key that each kind
of use needs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from localstore.core.errors import NotFound, Unauthorized
from localstore.core.identity.keys import DeviceKey
from localstore.core.model.repo import Repo
from localstore.errors import CopyBusy
from localstore.folder import lock
from localstore.folder.link import RepoLink
from localstore.folder.lock import Holder
from localstore.sync.owning import Bound, RoundOwner, Turn, looked_at, open_copy
from localstore.sync.working_copy import WorkingCopy
from svc.api.sync_transport import BranchTransport, SealTransport
from svc.flows.place.where import Where

MAY_WRITE = ("owner", "admin", "write")


@contextmanager
def naming_link(link: RepoLink, signed_in: bool = True) -> Iterator[None]:
    """A context that explains why a linked repository was not found. If the server gave no reason for a
    NotFound, the error names the repository. Without a reason it is not known whether the repository was
    deleted or its name is wrong. `signed_in`: whether the server is asked with a session."""
    try:
        yield
    except NotFound as error:
        if not error.bare:
            raise
        raise repository_gone(link, signed_in) from None


def repository_gone(link: RepoLink, signed_in: bool = True) -> NotFound:
    """Return the error for a linked repository that was deleted, or that the server hides from the user.
    Without a session every private repository is hidden."""
    if not signed_in:
        return NotFound(
            f"without a session {link.server} does not show {link.repo}; "
            f"run: svc login --server {link.server}"
        )
    return NotFound(
        f"{link.repo} was deleted, or is hidden from you; this restores it for 30 days if it is yours: "
        f"svc repo restore {link.repo_id}; if you are somebody else there, sign in: svc login"
    )


@contextmanager
def copy_for_sending(where: Where) -> Iterator[WorkingCopy]:
    """A context that yields the working copy for sending edits. It requires a session and registers the
    device key if needed."""
    from svc.flows.sign_in.register_device import ensure_registered

    root, link = where.linked_folder()
    api = where.api
    ensure_registered(api, where.sessions)
    transport = BranchTransport(api, link.repo_id, link.branch)
    key = where.sessions.identity.device
    with (
        naming_link(link),
        open_copy(root, where.home, transport, key, progress=where.progress, turn=turn(where, link)) as copy,
        _report_moved_back(where, copy),
    ):
        yield copy


@contextmanager
def _report_moved_back(where: Where, copy: WorkingCopy) -> Iterator[None]:
    """A context that prints a note at its end if the branch on the server has moved back to an older state,
    as after a restored backup. A command prints this note only once."""
    try:
        yield
    finally:
        if copy.moved_back is not None and not where.reported_moved_back:
            from svc.flows.common import moved_back_words  # seldom needed

            where.reported_moved_back = True
            where.note(f"{moved_back_words(copy)}, which svc push sends again")


@contextmanager
def copy_for_pulling(where: Where) -> Iterator[WorkingCopy]:
    """A context that yields the working copy for pulling. If the user may write, the working copy has the
    device key, and unsealed edits are pulled, too. Otherwise only the newest seal is pulled."""
    root, link = where.linked_folder()
    with naming_link(link, where.reader.signed_in):
        repo = where.reader.repo.find_linked(link.repo_id, link.repo)
    key = None if link.shown_seal else key_for(where, repo)
    transport = transport_of(where, link)
    with (
        naming_link(link, where.reader.signed_in),
        open_copy(root, where.home, transport, key, progress=where.progress, turn=turn(where, link)) as copy,
    ):
        if key is None and not where.reader.signed_in:
            _require_nothing_unsealed(copy, link)
        copy.rename(repo.full_name, repo.class_)
        with _report_moved_back(where, copy):
            yield copy


def _require_nothing_unsealed(copy: WorkingCopy, link: RepoLink) -> None:
    """Raise Unauthorized if the folder has files as the branch has them and no seal. Without a session the
    server shows only seals, and the next session shows these files again."""
    if copy.branch_id and not link.shown_seal and copy.db.shows_unsealed():
        raise Unauthorized(
            f"this folder has edits of {link.branch} that are in no seal yet, and without a session "
            f"{link.server} shows seals only; run: svc login --server {link.server}"
        )


@contextmanager
def copy_for_local_work(where: Where) -> Iterator[WorkingCopy]:
    """A context that yields the working copy for a change that is made only in this folder. The server is
    asked only for missing bytes."""
    root, link = where.linked_folder()
    transport = transport_of(where, link)
    with (
        naming_link(link, where.reader.signed_in),
        open_copy(root, where.home, transport, progress=where.progress, turn=turn(where, link)) as copy,
    ):
        yield copy


@contextmanager
def copy_for_reading(where: Where) -> Iterator[WorkingCopy]:
    """A context that yields the working copy for reading. If another process has the folder locked, it yields
    a snapshot of the record, and prints a note about that."""
    root, link = where.linked_folder()

    def beside(holder: Holder) -> None:
        where.note(f"{holder} is working in {root}; this is how it stands meanwhile")

    look = Turn(where.command, waiting=beside, link=link)
    with (
        naming_link(link, where.reader.signed_in),
        looked_at(root, where.home, transport_of(where, link), where.progress, look) as copy,
    ):
        yield copy


def rename_link(where: Where, repo: Repo) -> None:
    """Store the name of `repo` in the link of the folder, if the folder is linked to that repository. While
    another process works in the folder, nothing is stored, and the next pull stores the name."""
    if where.linked is None or where.linked[1].repo_id != repo.id:
        return
    with suppress(CopyBusy), open_copy(where.linked[0], where.home, turn=turn(where)) as copy:
        if copy.repo.repo_id == repo.id:
            copy.rename(repo.full_name, repo.class_)


def turn(where: Where, link: RepoLink | None = None) -> Turn:
    """Return the `Turn` with which a command waits until the folder is not locked. It says how long the
    command waits, and which name other processes see. `link` is the link that the folder must still have
    after the wait."""

    def waiting(holder: Holder) -> None:
        where.note(f"waiting for {holder} …")

    return Turn(where.command, lock.PATIENCE, waiting, link)


def transport_of(where: Where, link: RepoLink) -> BranchTransport:
    """Return the object that sends the requests about the folder's branch. If the folder shows a seal, the
    requests are about that seal."""
    if link.shown_seal:
        return SealTransport(where.reader, link.repo_id, link.branch, link.shown_seal)
    return BranchTransport(where.reader, link.repo_id, link.branch)


def key_for(where: Where, repo: Repo) -> DeviceKey | None:
    """Return this machine's device key, and register it if needed. None if the user may not write to
    `repo`."""
    from svc.flows.sign_in.register_device import ensure_registered

    role = repo.viewer.role if repo.viewer else None
    if not where.reader.signed_in or role not in MAY_WRITE or repo.archived:
        return None
    ensure_registered(where.reader, where.sessions)
    return where.sessions.identity.device


def rounds(where: Where) -> RoundOwner:
    """Return a `RoundOwner` for a long-running process. With it the process locks the folder and works on it
    in short rounds. The first round, and the first one after each switch of the folder, asks the server
    whether the user may write."""
    root, _ = where.linked_folder()

    def bind(link: RepoLink) -> Bound:
        repo = where.reader.repo.find_linked(link.repo_id, link.repo)
        return transport_of(where, link), None if link.shown_seal else key_for(where, repo)

    return RoundOwner(root, where.home, bind, turn(where), progress=where.progress)
