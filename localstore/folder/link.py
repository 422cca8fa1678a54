"""The link of a working copy to its repository: the files `.svc/repo.json` and `.svc/state.json`.

Both are plain JSON that users may read. The client writes them from its own record, so deleting `.svc` only
unlinks the folder. `.svc/id` in the same folder is read by `localstore.folder.identity`."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TypeVar

import msgspec

from localstore.core.encoding import is_hex_digest
from localstore.core.errors import ClientError, Invalid
from localstore.core.names import parse_repo
from localstore.errors import FolderTurned, LinkDamaged, NotLinked

FOLDER = ".svc"
REPO_FILE, STATE_FILE, ID_FILE = "repo.json", "state.json", "id"
UNVERSIONED_FILE = ".gitignore"
UNVERSIONED = b"*\n"  # git neither lists nor takes nor cleans the link, which is this machine's
_UNFINISHED = re.compile(r"(repo\.json|state\.json|id|\.gitignore)\.[0-9a-f]{8}")  # see `_write`
_CLASS = re.compile("[a-z0-9_]{1,32}")
FILE_MODE = 0o644
FileT = TypeVar("FileT", "RepoLink", "SealedState", "_LastSeal")


class RepoLink(msgspec.Struct, frozen=True, kw_only=True):
    """The content of `repo.json`. `server`: origin of the relay; `repo`: OWNER/NAME; `class_` ("class" on
    disk): the repository class. `seal`: a past seal, if the folder shows one read-only; `branch` is then
    the branch to return to. `before`: the branch or seal that the folder was on previously, if any."""

    server: str
    repo_id: str
    repo: str
    branch: str
    class_: str = msgspec.field(name="class")
    v: int = 1
    seal: str | msgspec.UnsetType = msgspec.UNSET
    before: str | msgspec.UnsetType = msgspec.UNSET

    @property
    def shown_seal(self) -> str | None:
        """The seal that the folder shows read-only; None if the folder is on its branch."""
        return self.seal if isinstance(self.seal, str) else None


class SealedState(msgspec.Struct, frozen=True, kw_only=True):
    """The content of `state.json`: the folder's last seal, and its tree as path → hex BLAKE3."""

    last_seal: str | None
    tree: dict[str, str]
    v: int = 1


class _LastSeal(msgspec.Struct, frozen=True, kw_only=True):
    """The content of `state.json` without the tree of the last seal, for code that needs only the seal's
    id."""

    last_seal: str | None
    v: int = 1


def find(folder: Path) -> Path:
    """The linked folder that is `folder` or contains it. Raises NotLinked if there is none."""
    resolved = folder.resolve()
    for candidate in (resolved, *resolved.parents):
        if (candidate / FOLDER / REPO_FILE).is_file():
            return candidate
    raise NotLinked(str(folder))


def read_repo(folder: Path) -> RepoLink:
    """The link of `folder`. Raises NotLinked, LinkDamaged."""
    link = _read(folder, REPO_FILE, RepoLink)
    if link.shown_seal is not None and not is_hex_digest(link.shown_seal):
        raise LinkDamaged(folder / FOLDER / REPO_FILE, "it names something that is not a seal")
    return link


def read_state(folder: Path) -> SealedState:
    """The folder's last seal, with its tree, from `state.json`. Raises NotLinked, LinkDamaged."""
    state = _read(folder, STATE_FILE, SealedState)
    digests = [*state.tree.values(), *([state.last_seal] if state.last_seal else [])]
    if not all(map(is_hex_digest, digests)):
        raise LinkDamaged(folder / FOLDER / STATE_FILE, "it holds something that is not a digest")
    return state


def read_last_seal(folder: Path) -> str | None:
    """The id of the folder's last seal, None without one. The seal's tree is not read. Raises NotLinked,
    LinkDamaged."""
    return _read(folder, STATE_FILE, _LastSeal).last_seal


def write_repo(folder: Path, link: RepoLink) -> None:
    """Write `repo.json` atomically."""
    _write(folder, REPO_FILE, [msgspec.json.format(msgspec.json.encode(link), indent=2), b"\n"])


def refresh(folder: Path, held: RepoLink, repo: str, class_: str) -> RepoLink:
    """Update the link `held` to the repository's current OWNER/NAME and class, as the server reports them.
    Writes the link to disk if it changed, and returns it. The caller holds the folder's lock."""
    fresh = rename_link(held, repo, class_)
    if fresh != held:
        write_repo(folder, fresh)
    return fresh


def rename_link(held: RepoLink, repo: str, class_: str) -> RepoLink:
    """The link `held` with another OWNER/NAME and class. If one of the two is invalid, the link stays
    unchanged."""
    try:
        address = parse_repo(repo)
    except Invalid:
        return held
    if address.host is not None or not _CLASS.fullmatch(class_):
        return held
    return msgspec.structs.replace(held, repo=repo, class_=class_)


def same_target(first: RepoLink, second: RepoLink) -> bool:
    """Whether two links lead to the same repository and to the same branch or seal."""
    return (first.server, first.repo_id, first.branch, first.seal) == (
        second.server,
        second.repo_id,
        second.branch,
        second.seal,
    )


def require_same(folder: Path, before: RepoLink) -> RepoLink:
    """Read the link of `folder` again and return it. Raises FolderTurned if it leads to another target than
    `before`."""
    now = read_repo(folder)
    if not same_target(now, before):
        where = f"the seal {now.shown_seal[:12]}" if now.shown_seal else f"branch {now.branch} of {now.repo}"
        raise FolderTurned(folder, where)
    return now


def write_state(folder: Path, state: SealedState) -> None:
    """Write `state.json` atomically."""
    write_encoded(folder, [encode_state(state)])


def encode_state(state: SealedState) -> bytes:
    """The bytes of `state.json` for this state."""
    return msgspec.json.encode(state)


def write_encoded(folder: Path, parts: Iterable[bytes | memoryview]) -> None:
    """Write `state.json` atomically. `parts`: its bytes, in pieces."""
    _write(folder, STATE_FILE, parts)


def is_unfinished(folder: Path) -> bool:
    """Whether `folder` contains only a part of a link, because the process that wrote it was killed."""
    if [path.name for path in folder.iterdir()] != [FOLDER] or not (folder / FOLDER).is_dir():
        return False
    names = {path.name for path in (folder / FOLDER).iterdir()}
    return all(_UNFINISHED.fullmatch(name) for name in names - {ID_FILE, UNVERSIONED_FILE})


def sweep(folder: Path) -> None:
    """Remove the temporary files that killed processes left in `.svc`. The caller holds the folder's lock."""
    for path in (folder / FOLDER).iterdir():
        if _UNFINISHED.fullmatch(path.name):
            path.unlink(missing_ok=True)


def _read(folder: Path, name: str, kind: type[FileT]) -> FileT:
    path = folder / FOLDER / name
    try:
        value = msgspec.json.decode(path.read_bytes(), type=kind)
    except FileNotFoundError:
        raise NotLinked(str(folder)) from None
    except (OSError, msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise LinkDamaged(path, str(error)) from None
    if value.v != 1:
        raise LinkDamaged(path, f"it has version {value.v}; this svc reads version 1")
    return value


def _write(folder: Path, name: str, parts: Iterable[bytes | memoryview]) -> None:
    directory = folder / FOLDER
    if directory.is_file():
        raise ClientError(
            f"{folder} holds keys of a device or a relay ({directory} says so) and is never pushed; "
            "link another folder"
        )
    directory.mkdir(exist_ok=True)
    if not os.path.lexists(directory / UNVERSIONED_FILE):
        _replace(directory, UNVERSIONED_FILE, [UNVERSIONED])
    _replace(directory, name, parts)


def _replace(directory: Path, name: str, parts: Iterable[bytes | memoryview]) -> None:
    temporary = directory / f"{name}.{os.urandom(4).hex()}"
    try:
        with temporary.open("xb") as file:
            file.writelines(parts)
            file.flush()
            os.fchmod(file.fileno(), FILE_MODE)
            os.fsync(file.fileno())
        temporary.replace(directory / name)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
