"""`svc repo init`: links a folder to a repository, and finds out which version of the repository the folder's
files belong to."""

from __future__ import annotations

from pathlib import Path

import msgspec

from localstore.core.identity.keys import DeviceKey
from localstore.disk_errors import translated_disk_errors
from localstore.folder import link
from localstore.folder.identity import prepare_link
from localstore.folder.link import RepoLink, SealedState
from localstore.home import Home
from localstore.sync.owning import Turn, open_copy
from localstore.sync.recognise import recognise
from localstore.sync.transfer.transport import Transport


class LinkResult(msgspec.Struct):
    """The result of `init`. `base` is the seal that most files match, or None if none does. `head` is the
    branch's newest seal. `recognised` is the number of files that equal a version on the branch. `unknown`
    are the other files; a pull keeps them as conflict copies."""

    folder: Path
    base: str | None
    head: str | None
    recognised: int
    unknown: list[str]


def init(
    transport: Transport,
    home: Home,
    repo: RepoLink,
    folder: Path,
    key: DeviceKey | None = None,
    kind: str = "",
) -> LinkResult:
    """Link `folder` to a branch of `repo`. No file in the folder changes. `key` is the user's device key, or
    None if the user may only read. `kind` is the repository's kind, which decides how large files may be, or
    "" if it is unknown."""
    with translated_disk_errors(folder, home.root):
        prepare_link(folder)
        link.write_repo(folder, repo)
        link.write_state(folder, SealedState(last_seal=None, tree={}))
    with open_copy(folder, home, transport, key, turn=Turn("svc repo init")) as copy:
        comparison = recognise(copy)
        if kind:
            copy.db.put("repo_kind", kind)
    return LinkResult(folder, comparison.base, comparison.head, comparison.known, comparison.unknown)
