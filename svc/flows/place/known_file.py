"""The files in SVC_HOME with what this machine has listed of a repository, such as the names of branches.

No command depends on such a file: it may be missing or damaged, and the next listing writes it again."""

from __future__ import annotations

from contextlib import suppress
from hashlib import blake2b
from pathlib import Path

from localstore.home import Home


def read_known(home: Home, kind: str, repo_id: str) -> bytes:
    """Return the content of the file of a repository. `kind` is its folder, such as `refs`. Raises OSError if
    there is none or it cannot be read."""
    return _file(home, kind, repo_id).read_bytes()


def write_known(home: Home, kind: str, repo_id: str, content: bytes) -> None:
    """Replace the file of a repository in a single step. If that fails, the old one stays."""
    from localstore.folder.writer import replace_file  # which a completion does not need

    with suppress(OSError):
        target = _file(home, kind, repo_id)
        home.root.mkdir(parents=True, exist_ok=True, mode=0o700)
        target.parent.mkdir(exist_ok=True, mode=0o700)
        replace_file(target, content)


def _file(home: Home, kind: str, repo_id: str) -> Path:
    """Return the path of the file for a repository. The file name is a digest of the id. The id itself comes
    from the server and must not choose a path on this machine."""
    name = blake2b(repo_id.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
    return home.root / kind / name
