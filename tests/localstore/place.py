"""A person's machine for tests: a folder, a home, a key, and the commands they run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from localstore.core.identity.keys import DeviceKey
from localstore.folder import link
from localstore.folder.link import RepoLink, SealedState
from localstore.home import Home
from localstore.sync.owning import open_copy
from localstore.sync.transfer.transport import Transport
from localstore.sync.working_copy import WorkingCopy
from svc.flows.pull import Mode, PullResult, pull
from svc.flows.push import PushResult, push
from tests.localstore.model_relay import REPO_ID, ModelRelay

LINK = RepoLink(server="http://localhost", repo_id=REPO_ID, repo="a/b", branch="main", class_="public")
Wrap = Callable[[Transport], Transport]


class Place:
    """One working copy of one person. `wrap` may put faults between it and the relay."""

    def __init__(self, root: Path, relay: ModelRelay, name: str, branch: str = "main") -> None:
        self.folder, self.relay, self.branch = root / name, relay, branch
        self.home = Home(root / f"{name}-home")
        self.key = DeviceKey.generate(name.encode().ljust(32, b"."))
        self.wrap: Wrap = lambda transport: transport
        self.folder.mkdir()
        link.write_repo(self.folder, RepoLink(**{**_members(LINK), "branch": branch}))
        link.write_state(self.folder, SealedState(last_seal=None, tree={}))

    @contextmanager
    def device(self) -> Iterator[WorkingCopy]:
        transport = self.wrap(self.relay.transport(self.branch, self.key))
        with open_copy(self.folder, self.home, transport, self.key, _frozen) as device:
            yield device

    def push(self, message: str = "work", **options: bool) -> PushResult:
        with self.device() as device:
            return push(device, message, **options)

    def pull(self, mode: Mode = "plain", **options: bool) -> PullResult:
        with self.device() as device:
            return pull(device, mode, **options)

    def write(self, path: str, data: bytes | str) -> None:
        target = self.folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data if isinstance(data, bytes) else data.encode())

    def read(self, path: str) -> bytes:
        return (self.folder / path).read_bytes()

    def files(self) -> dict[str, bytes]:
        """Every file of the folder but the link."""
        return {
            path.relative_to(self.folder).as_posix(): path.read_bytes()
            for path in sorted(self.folder.rglob("*"))
            if path.is_file() and ".svc" not in path.relative_to(self.folder).parts
        }


def _members(repo: RepoLink) -> dict[str, str]:
    return {
        "server": repo.server, "repo_id": repo.repo_id, "repo": repo.repo, "branch": repo.branch,
        "class_": repo.class_,
    }  # fmt: skip


def _frozen() -> datetime:
    return datetime(2026, 11, 21, 6, 0, 0, tzinfo=UTC)
