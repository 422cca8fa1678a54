"""Finds the apps that this machine knows. svc stores about each app:

SVC_HOME/apps/ID/      where ID is the id of the app, with + in place of /
    app.json      its folder, and the repository that it was installed from
    allowed       the digest of the launch that the user has allowed
    lock          held by the supervisor (the process that runs the app) until it ends
    state.json    the state that the supervisor reports
    log           the app's output, if it has no terminal
    files/        the folder of an installed app"""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

import msgspec

from localstore.core import manifest as manifests
from localstore.core.errors import UsageError
from localstore.core.launch import Launch
from localstore.core.manifest import RepoManifest
from localstore.core.model.limits import MANIFEST_BYTES
from localstore.core.names import MANIFEST
from localstore.core.paths import terminal_safe
from localstore.disk_errors import translated_disk_errors
from localstore.models import store
from localstore.models.errors import AppMissing, NoLaunch

LOCK, STATE, LOG, ALLOWED = "lock", "state.json", "log", "allowed"
_RECORD, _FILES = "app.json", "files"
_ID = re.compile(r"(?:[A-Za-z0-9][A-Za-z0-9._-]*/)?[A-Za-z0-9][A-Za-z0-9._-]*")
_OTHERS = re.compile(r"[^A-Za-z0-9._-]+")


class App(msgspec.Struct, frozen=True, kw_only=True):
    """An app. `id` is OWNER/NAME if the app was installed from `server`. For any other app it is made from
    the name of its folder."""

    id: str
    folder: str
    installed: bool = False
    server: str | None = None


class Apps:
    """The apps that are known in an SVC_HOME."""

    def __init__(self, home: Path) -> None:
        self.root = home.absolute() / "apps"

    def folder(self, id: str) -> Path:
        """Return the path of the folder in which svc stores its own files about an app."""
        return self.root / id.replace("/", "+")

    def files(self, id: str) -> Path:
        """Return the path of the folder that contains an installed app."""
        return self.folder(id) / _FILES

    def all(self) -> list[App]:
        apps = []
        for path in sorted(self.root.glob(f"*/{_RECORD}")):
            try:
                app = msgspec.json.decode(path.read_bytes(), type=App)
            except (OSError, msgspec.MsgspecError):
                continue
            if _ID.fullmatch(app.id) and self.folder(app.id) == path.parent:
                apps.append(app)
        return apps

    def find(self, typed: str, base: Path) -> App:
        """Find the app that the user typed: by its id, by the end of its id, or by its folder relative to
        `base`. For a folder that svc does not know yet, returns a new App that is not recorded. Raises
        AppMissing if nothing matches, NoLaunch if the folder has no app, and UsageError if several apps
        match."""
        apps = self.all()
        is_path = typed.startswith((".", "/", "~"))
        matches = [app for app in apps if app.id == typed] or [
            app for app in apps if app.id.endswith(f"/{typed}")
        ]
        if matches and not is_path:
            if len(matches) > 1:
                names = ", ".join(app.id for app in matches)
                raise UsageError(f"'{terminal_safe(typed[:80])}' means several apps: {names}")
            return matches[0]
        folder = _folder_at(base, typed)
        if folder is None:
            raise AppMissing(
                f"no app '{terminal_safe(typed[:80])}' is on this machine, and no folder of that name; "
                "install it: svc app install OWNER/NAME"
            )
        for app in apps:
            if Path(app.folder) == folder:
                return app
        if not _is_text(str(folder)):
            raise UsageError(
                f"the path {terminal_safe(str(folder))} is not UTF-8, so svc cannot record it; "
                "rename the folder"
            )
        app = App(id=self._new_id(folder, {app.id for app in apps}), folder=str(folder))
        if not (folder / MANIFEST).is_file():
            manifest_of(app)  # raises
        return app

    def record(self, app: App) -> None:
        """Store what svc knows about an app, in the app's folder in SVC_HOME. Raises DiskError."""
        folder = self.folder(app.id)
        with translated_disk_errors(folder, folder):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            store.write(folder / _RECORD, msgspec.json.encode(app))

    def is_allowed(self, app: App, launch: Launch) -> bool:
        """Return whether the user has allowed this launch of the app."""
        try:
            return (self.folder(app.id) / ALLOWED).read_text("ascii") == digest_of(app, launch)
        except (OSError, ValueError):
            return False

    def allow(self, app: App, launch: Launch) -> None:
        """Record that the user has allowed this launch of the app. Raises DiskError."""
        self.record(app)
        with translated_disk_errors(self.folder(app.id), self.folder(app.id)):
            store.write(self.folder(app.id) / ALLOWED, digest_of(app, launch).encode())

    def _new_id(self, folder: Path, taken: set[str]) -> str:
        name = _OTHERS.sub("-", folder.name).strip("-._")[:80] or "app"
        if name not in taken:
            return name
        return f"{name}-{hashlib.sha256(str(folder).encode()).hexdigest()[:8]}"


def digest_of(app: App, launch: Launch) -> str:
    """Return the digest of an app's command and folder. It also changes if another folder is put at the same
    path. Raises OSError if the folder cannot be examined."""
    status = Path(app.folder).stat()
    where = [os.fsencode(app.folder).hex(), status.st_dev, status.st_ino]
    return hashlib.sha256(msgspec.json.encode([*where, launch])).hexdigest()


def is_own(app: App) -> bool:
    """Return whether the app's folder belongs to the user who runs svc. If it does not, its owner could
    change the program at any time."""
    try:
        return Path(app.folder).stat().st_uid == os.getuid()
    except OSError:
        return False


def _folder_at(base: Path, typed: str) -> Path | None:
    """Return the typed folder, relative to `base`; None if there is no such folder."""
    try:
        folder = (base / Path(typed).expanduser()).resolve()
        return folder if folder.is_dir() else None
    except (OSError, RuntimeError, ValueError):  # a name too long, a user or link that leads nowhere, NUL
        return None


def _is_text(path: str) -> bool:
    """Return whether a path is valid UTF-8. Python represents other bytes of a path as surrogates."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def manifest_of(app: App) -> RepoManifest:
    """Return the manifest (`.svc.yaml`) in the app's folder. Raises NoLaunch if it cannot be read, Invalid if
    it is malformed."""
    file = Path(app.folder) / MANIFEST
    try:
        with file.open("rb") as source:
            return manifests.parse(source.read(MANIFEST_BYTES + 1))
    except OSError as error:
        raise NoLaunch(
            f"{terminal_safe(str(file))}, which says how an app is launched, cannot be read: {error.strerror}"
        ) from None


def launch_of(app: App, manifest: RepoManifest) -> Launch:
    """Return how the app's manifest says to start it. Raises NoLaunch if the manifest does not say so."""
    if manifest.launch is None:
        raise NoLaunch(
            f"{MANIFEST} in {terminal_safe(app.folder)} has no launch:, which says how the app is started; "
            "add launch: {command: [PROGRAM, WORD]}"
        )
    return manifest.launch
