"""The context of a command: folder, server, repository and session.

Several things can name the server or repository, and the first that is present counts: an option, the
environment (SVC_SERVER, SVC_REPO, SVC_TOKEN), the linked folder, a `svc://` git remote, the server that
SVC_TOKEN is for, and the server of the last sign-in."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from localstore.core.errors import NotFound, SvcError, Unauthorized, UsageError
from localstore.core.names import SCHEME, RepoAddress, parse_repo
from localstore.errors import FolderGone, NotLinked
from localstore.progress import Progress, silent
from svc.http.remote import link as link_of_ssh

if TYPE_CHECKING:
    from localstore.core.model.repo import Repo
    from localstore.folder.link import RepoLink
    from localstore.home import Home
    from svc.api import Api
    from svc.flows.outbox.actions import Queue
    from svc.http.session import Sessions

_GIT_URL = r"(?m)^\s*url\s*=\s*\"?(svc://[^\s\"]+)"
_GIT_CONFIG_MAX = 1024 * 1024


class Where:
    """The context of one command. `given` has the global options that the user typed, by name; this class
    uses `repo` and `server`. `note` prints a note to the user. `progress` is called with the progress of the
    command. `command` is the command's name, which is shown to other commands that wait for the folder's
    lock."""

    def __init__(
        self,
        environment: Mapping[str, str],
        folder: Path,
        note: Callable[[str], None] = lambda _: None,
        progress: Progress = silent,
        command: str = "svc",
    ) -> None:
        self.environment, self.folder = environment, folder
        self.note, self.progress, self.command = note, progress, command
        self.given: dict[str, Any] = {}
        self.can_queue = True  # whether `--queue` would take what the command was asked to do
        self.gone = False  # whether the current folder was deleted, and `folder` only stands for it
        self.reported_moved_back = False  # whether the user has read that the branch moved back
        self.held: int | None = None  # the state folder, against upgrades

    @cached_property
    def home(self) -> Home:
        from localstore.home import Home
        from svc.flows.place import in_use

        home = Home.default(self.environment)
        self.held = in_use.hold(home.root)
        return home

    @cached_property
    def sessions(self) -> Sessions:
        from svc.http.session import Sessions

        return Sessions(self.home.root)

    def close(self) -> None:
        """Close the connections, and release the lock on SVC_HOME that a running command holds."""
        for name in ("api", "reader"):
            if name in vars(self):
                vars(self)[name].http.close()
        if self.held is not None:
            os.close(self.held)
            self.held = None

    def format_error(self, error: SvcError) -> str:
        """Return the sentence of an error, for the user."""
        return error.detail

    @property
    def knows_server(self) -> bool:
        """Whether an option, the environment, the folder or a sign-in names a server."""
        try:
            return bool(self.server)
        except SvcError:
            return False

    @cached_property
    def linked(self) -> tuple[Path, RepoLink] | None:
        """The linked folder that is or contains the current folder, and its link. None if there is none."""
        from localstore.folder import link

        if self.gone:
            return None
        try:
            root = link.find(self.folder)
            return root, link.read_repo(root)
        except NotLinked:
            return None

    def below(self, typed: str) -> Path:
        """Return the path of a new folder. Raises FolderGone if it is relative to a folder that was
        deleted."""
        if self.gone and not Path(typed).is_absolute():
            raise FolderGone
        return self.folder / typed

    @cached_property
    def named_repo(self) -> RepoAddress | None:
        """The repository that -R or SVC_REPO names; None if neither is set."""
        typed = self.given.get("repo") or self.environment.get("SVC_REPO")
        return read_address(typed) if typed else None

    @cached_property
    def server(self) -> str:
        """The origin of the server to use. Raises UsageError if no server is named."""
        from svc.http.origin import parse_origin

        if self._typed_server() is None and self.linked:
            return parse_origin(self.linked[1].server)
        return self.chosen_server

    @property
    def chosen_server(self) -> str:
        """The origin of the server that the user chose with an option, the environment or a sign-in. Files in
        the folder are not considered, because they may come from a stranger. Raises UsageError if there is
        none."""
        from svc.http.origin import parse_origin
        from svc.http.session import script_token

        typed = self._typed_server()
        if typed:
            return parse_origin(typed[1])
        script = script_token()
        origin = script.origin if script else self.sessions.default_server()
        if origin is None:
            raise UsageError("no server is known yet; sign in to one: svc login --server https://NODE")
        return origin

    @property
    def sign_in_server(self) -> str:
        """The server to sign in to. Raises UsageError if only the folder names a server, and this machine was
        never signed in to that server."""
        server = self.server
        by_folder = self.linked is not None and self._typed_server() is None
        if by_folder and server != self.sessions.default_server() and self.sessions.find(server) is None:
            raise UsageError(
                f"this folder names the server {server}, and nobody has signed in there from this machine; "
                f"if you trust it, run: svc login --server {server}"
            )
        return server

    def _typed_server(self) -> tuple[str, str] | None:
        """Return the option or variable that names the server, and its value. None if none does. Raises
        UsageError if two of them contradict each other."""
        flag, variable = self.given.get("server"), self.environment.get("SVC_SERVER")
        named = (self._names_repo, self.named_repo.host) if self.named_repo and self.named_repo.host else None
        beside = ("--server", flag) if flag else None
        if beside is None and variable and self._names_repo == "SVC_REPO":
            beside = ("SVC_SERVER", variable)
        if named and beside and not _same_address(named[1], beside[1]):
            raise UsageError(
                f"{named[0]} names a repository on {named[1]}, and {beside[0]} says {beside[1]}; "
                "use one of them"
            )
        return named or beside or (("SVC_SERVER", variable) if variable else None)

    @property
    def _names_repo(self) -> str:
        """The name of the option or variable that names the repository, which is -R or SVC_REPO."""
        return "-R" if self.given.get("repo") else "SVC_REPO"

    def linked_folder(self) -> tuple[Path, RepoLink]:
        """Return the linked folder and its link. From then on the command uses the link's server. Raises
        NotLinked, or UsageError if an option or variable names another repository or server."""
        if self.linked is None:
            raise FolderGone if self.gone else NotLinked(str(self.folder))
        link = self.linked[1]
        self.require_server_of_link(link, "or go to a folder of that server")
        named = self.named_repo
        if named is not None and f"{named.owner}/{named.name}" != link.repo:
            self.use_server(link.server)
            self._require_same(named, link)
        self.use_server(link.server)
        return self.linked

    def _require_same(self, named: RepoAddress, link: RepoLink) -> None:
        """Raise UsageError unless `named` is the current or a former name of the linked repository."""
        try:
            repo_id = self.reader.repo.find(named.owner, named.name).id
        except NotFound:
            repo_id = None
        if repo_id != link.repo_id:
            what = self._names_repo
            raise UsageError(
                f"{what} names {named.owner}/{named.name}, and this command works on the folder you stand "
                f"in, which is linked to {link.repo}; omit {what}, or go to another folder"
            )

    def require_server_of_link(
        self, link: RepoLink, remedy: str = "or name a repository there: -R OWNER/NAME"
    ) -> None:
        """Raise UsageError if an option or variable names another server than the folder's link. `remedy` is
        the end of the error's sentence."""
        typed = self._typed_server()
        if typed and not _same_address(typed[1], link.server):
            raise UsageError(
                f"this folder is linked to {link.repo} on {link.server}, and {typed[0]} says {typed[1]}; "
                f"omit {typed[0]}, {remedy}"
            )

    def set_repository(self, typed: str) -> None:
        """Use the repository that an argument of the command names. "" changes nothing. Raises UsageError if
        -R names another repository."""
        if not typed:
            return
        address = read_address(typed)
        if self.given.get("repo") and self.named_repo != address:
            raise UsageError(f"{typed} and -R {self.given['repo']} are two repositories; name one")
        self.given["repo"], self.named_repo = typed, address

    def use_server(self, origin: str) -> None:
        """Use this server from now on, with new connections."""
        from svc.http.origin import parse_origin

        server = parse_origin(origin)
        if vars(self).get("server") != server:
            for name in ("api", "reader"):
                if name in vars(self):
                    vars(self).pop(name).http.close()
        vars(self)["server"] = server

    def _connect(self, *, anonymous: bool = False) -> Api:
        from svc.api import connect
        from svc.http.slow import Slow

        api = connect(self.server, self.sessions, anonymous=anonymous)
        api.http.waiting = Slow(self.server, self.note).waiting
        return api

    @cached_property
    def reader(self) -> Api:
        """The API for reading. It uses this machine's session if that is valid. Otherwise it has no session,
        which is enough for public data."""
        try:
            return self._connect()
        except Unauthorized as ended:
            if self.environment.get("SVC_TOKEN"):
                raise
            self.note(f"svc: {self.format_error(ended)}; reading without it")
            return self._connect(anonymous=True)

    @cached_property
    def api(self) -> Api:
        """The API with a session. Raises Unauthorized (exit code 4) if there is none. With `--queue` the
        session may have ended, because nothing is sent now."""
        if self.queues:
            queue = self._queue()
            api = self._connect(anonymous=True)
            api.http.hold = queue.hold
            return api
        api = self._connect()
        if not api.signed_in:
            raise Unauthorized(
                f"this needs a session on {self.server}; run: svc login --server {self.server}"
            )
        return api

    @property
    def queues(self) -> bool:
        """Whether changes are put into the outbox instead of being sent (option `--queue`)."""
        return bool(self.given.get("queue"))

    def _queue(self) -> Queue:
        """Return the outbox for actions of this machine's session. Raises Unauthorized if there is no
        session, or if a script token is used."""
        from svc.flows.outbox.actions import Queue, open_outbox

        session = self.sessions.find(self.server)
        if session is None and not self.environment.get("SVC_TOKEN"):
            raise Unauthorized(
                f"this needs a session on {self.server}; run: svc login --server {self.server}"
            )
        if session is None or self.environment.get("SVC_TOKEN"):
            raise Unauthorized(
                "queued actions are sent with this machine's sign-in, not with SVC_TOKEN; unset it and run: "
                f"svc login --server {self.server}"
            )
        return Queue(open_outbox(self.home), session, self.linked[1].repo if self.linked else "")

    def repo(self, connect: Callable[[], Api]) -> Repo:
        """Return the repository that the command is about. It is looked up with the API that `connect`
        returns."""
        if self.named_repo is None and self.linked:
            link = self.linked[1]
            self.require_server_of_link(link)
            return _as_linked(link) if self.queues else connect().repo.find_linked(link.repo_id, link.repo)
        if self.queues:
            raise UsageError(
                "--queue asks no server and knows only the repository of a linked folder; run this there, "
                "without -R"
            )
        address = self.named_repo or self._git_remote()
        if address is None:
            if self.gone:
                raise FolderGone
            if link_of_ssh(self.environment) is not None:  # where there are no folders
                raise UsageError("which repository? Name it with -R OWNER/NAME")
            raise UsageError(
                "which repository? Name it with -R OWNER/NAME, or work in a linked folder "
                "(svc repo init, svc repo clone)"
            )
        return connect().repo.find(address.owner, address.name)

    def _git_remote(self) -> RepoAddress | None:
        for folder in (self.folder, *self.folder.parents):
            config = folder / ".git" / "config"
            if config.is_file() and config.stat().st_size <= _GIT_CONFIG_MAX:
                match = re.search(_GIT_URL, config.read_text("utf-8", "replace"))
                return read_address(match[1]) if match else None
        return None

    @property
    def readable_repo(self) -> Repo:
        """The repository that the command is about. It is looked up without a session if this machine has
        none."""
        return self.repo(lambda: self.reader)

    def branch_of(self, repo: Repo) -> str:
        """Return the branch of the linked folder if the folder is linked to `repo`. Otherwise return the
        default branch of `repo`."""
        linked = self.linked
        return linked[1].branch if linked and linked[1].repo_id == repo.id else repo.default_branch

    def path_in_repo(self, typed: str) -> str:
        """Return a path that the user typed, relative to the current folder, as a path in the repository."""
        linked = self.linked
        if linked is None or self.named_repo is not None:
            return typed
        whole = Path(os.path.normpath(self.folder / typed))
        for above in (*reversed(whole.parents), whole):  # a link below the folder is a path, not a way out
            if above.resolve() == linked[0]:
                return whole.relative_to(above).as_posix()
        try:
            return whole.resolve().relative_to(linked[0]).as_posix()
        except ValueError:
            raise UsageError(f"{typed} is outside of the linked folder {linked[0]}") from None


def read_address(typed: str) -> RepoAddress:
    """Parse the address `[HOST/]OWNER/NAME` or `svc://OWNER/NAME` of a repository. Raises UsageError if it is
    malformed."""
    from svc.http.checked import argument

    return argument(parse_repo, typed if typed.startswith(SCHEME) else typed.strip("/"))


def _as_linked(link: RepoLink) -> Repo:
    """Return the linked repository with what the link states: its id, name and class. Its other fields are
    not known. Used if no server is asked."""
    from localstore.core.model.repo import Repo

    owner, _, name = link.repo.partition("/")
    visibility = "public" if link.class_ in ("published_public", "public_fork") else "private"
    names = {"id": link.repo_id, "owner": owner, "name": name, "full_name": link.repo, "class": link.class_}
    rest = {"kind": "app", "default_branch": link.branch, "description": "", "visibility": visibility}
    state = {"archived": False, "state": "active", "created_at": "", "updated_at": ""}
    return msgspec.convert({**names, **rest, **state}, Repo)


def _same_address(first: str, other: str) -> bool:
    from svc.http.origin import parse_origin, same_server

    return same_server(parse_origin(first), parse_origin(other))
