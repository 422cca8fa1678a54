"""What the app uses of this machine: the folder in which the app was started, and the agent of live sync.

machine = Machine(home)
response = machine.invoke("sync_status", SyncStatus)
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import msgspec

from localstore.core.errors import SvcError
from localstore.folder.link import read_repo
from localstore.home import Home
from localstore.record.since_seal import SinceSeal, read_since_seal

if TYPE_CHECKING:
    from localstore.agent.talk import ApiResponse, BranchEvent, PersonOnBranch
    from svc.agent.invoke.sync import SyncStatus
    from tui.listening.looking import Looking
    from tui.listening.writing import AgentEvent, Writing

ANSWER_SECONDS = 10.0
Stamp = tuple[int, ...]  # when a record was written last
T = TypeVar("T")


class Place(NamedTuple):
    """Where the app was started. `folder`: the linked folder, None if it was started in none. The other
    fields are the repository and branch of that folder."""

    folder: Path | None = None
    repo_id: str = ""
    full_name: str = ""
    branch: str = ""

    def read_again(self) -> Place:
        """Reads again to which branch the folder is linked. Returns the place with the present branch, or the
        same place if the folder is not linked any more."""
        if self.folder is None:
            return self
        try:
            link = read_repo(self.folder)
        except SvcError:
            return self
        return Place(self.folder, link.repo_id, link.repo, link.branch)


NOWHERE = Place()


class Machine:
    """Calls the agent of a SVC_HOME. The calls block, so make them on threads. `environment`: the environment
    variables of the app, with which it starts other programs."""

    def __init__(self, home: Home, environment: Mapping[str, str] = os.environ) -> None:
        self._home, self.environment = home, environment
        self._records: dict[tuple[Path, str], Path] = {}  # by linked folder and repository
        self._since: dict[Path, tuple[Stamp, SinceSeal | None]] = {}  # by record

    @property
    def root(self) -> Path:
        """The path of SVC_HOME."""
        return self._home.root

    @property
    def has_models(self) -> bool:
        """Whether there is a folder for language models. Without it, no model is installed or being
        pulled."""
        from localstore.models.place import llm_home

        return llm_home(self.environment).is_dir()

    def invoke(self, command: str, shape: type[T], **args: Any) -> ApiResponse[T] | None:
        """Run a command in the agent. Returns its answer, with data of the type `shape`. Returns None if no
        agent runs or it does not answer. Never starts an agent."""
        from localstore.agent.talk import AgentSilent, ApiResponse  # not before the first paint
        from svc.agent.start import reach

        try:
            agent = reach(self._home)
            if agent is None:
                return None
            with agent:
                response = agent.invoke(command, args, seconds=ANSWER_SECONDS)
        except AgentSilent:
            return None
        if response.success:
            return ApiResponse(True, msgspec.convert(response.data, shape))
        return ApiResponse(False, None, response.error)

    def look(self, origin: str, repo_id: str, branch: str, saw: Callable[[BranchEvent], None]) -> Looking:
        """Follow the live state of a branch until the returned object is closed. `saw`: called with each
        event of the branch. Starts the agent if none runs."""
        from tui.listening.looking import Looking

        return Looking(self._home, origin, repo_id, branch, saw)

    def write(self, folder: Path, path: str, heard: Callable[[AgentEvent], None]) -> Writing:
        """Edit a text in a linked folder until the returned object is closed. `heard`: called with each
        event. Starts the agent if none runs."""
        from tui.listening.writing import Writing  # not before the first paint

        return Writing(self._home, folder, path, heard)

    def status(self) -> SyncStatus | None:
        """Returns the watched folders, and how many actions wait to be sent. Returns None if no agent
        answers."""
        from svc.agent.invoke.sync import SyncStatus  # not before the first paint

        response = self.invoke("sync_status", SyncStatus)
        return response.data if response is not None else None

    def since_seal(self, folder: Path, repo_id: str, branch: str) -> SinceSeal | None:
        """Returns what the branch has that is in no seal yet, as the record of a linked folder says. Returns
        None if the folder is not on that branch."""
        try:
            link = read_repo(folder)
        except SvcError:
            return None
        if (link.repo_id, link.branch) != (repo_id, branch) or link.shown_seal:
            return None
        record = self._records.get((folder, repo_id)) or self._home.find_record(folder, repo_id)
        if record is None:
            return None
        self._records[folder, repo_id] = record
        stamp = _stamp(record)
        if stamp not in ((), self._since.get(record, ((), None))[0]):
            self._since[record] = stamp, read_since_seal(record)
        return self._since[record][1] if record in self._since else None

    def folder_on(self, repo: str, branch: str, origin: str) -> Path | None:
        """Returns a watched folder that is on a branch of a repository of the server `origin`."""
        status = self.status()
        folders = status.folders if status is not None else []
        named = (repo, branch, origin)
        return next(
            (Path(at.folder) for at in folders if (at.repo, at.branch, at.server) == named),
            None,
        )

    def people(self, repo: str, branch: str) -> list[PersonOnBranch]:
        """Returns the people on a branch. They are only known if this machine watches a folder that is on
        that branch."""
        status = self.status()
        folders = status.folders if status is not None else []
        return [
            person
            for folder in folders
            if (folder.repo, folder.branch) == (repo, branch)
            for person in folder.people
        ]


def _stamp(record: Path) -> Stamp:
    """Returns when the database of a record was written last. Returns () if there is none."""
    with suppress(OSError):
        written = [(record / "state.db").stat().st_mtime_ns]
        with suppress(OSError):  # it has no log until it is written to
            log = (record / "state.db-wal").stat()
            written += [log.st_mtime_ns, log.st_size]
        return tuple(written)
    return ()
