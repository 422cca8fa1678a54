"""Installs apps from repositories, updates them and removes them."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Mapping
from pathlib import Path

from localstore.core.errors import UsageError
from localstore.core.model.repo import Repo
from localstore.core.paths import terminal_safe
from localstore.errors import DiskError, FolderNotEmpty
from svc.flows.apps.place import App, Apps, launch_of, manifest_of
from svc.flows.place.folder import copy_for_pulling
from svc.flows.place.target import clone_into
from svc.flows.place.where import Where
from svc.flows.pull import PullResult
from svc.flows.pull import pull as pull_copy

_REMOVED = ".removed-"


def install(where: Where, apps: Apps, repo: Repo) -> tuple[App, bool]:
    """Clone an app's repository. Returns the app, and whether it is new. If the repository does not say how
    to launch the app, the cloned files are removed and NoLaunch is raised."""
    app = App(id=repo.full_name, folder=str(apps.files(repo.full_name)), installed=True, server=where.server)
    for known_app in apps.all():
        if known_app.id == app.id:
            _require_same_server(known_app, where.server)
            return known_app, False
    apps.folder(app.id).mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        clone_into(where, repo, repo.default_branch, apps.files(app.id))
    except FolderNotEmpty:  # left by an installation that was killed before the app was recorded
        uninstall(apps, app)
        apps.folder(app.id).mkdir(parents=True, exist_ok=True, mode=0o700)
        clone_into(where, repo, repo.default_branch, apps.files(app.id))
    try:
        launch_of(app, manifest_of(app))
    except BaseException:
        shutil.rmtree(apps.folder(app.id), ignore_errors=True)
        raise
    apps.record(app)
    return app, True


def _require_same_server(app: App, server: str) -> None:
    if app.server != server:
        raise UsageError(
            f"{app.id} was installed from {terminal_safe(app.server or '')}; uninstall it before you install "
            f"the one of {server}"
        )


def update(environment: Mapping[str, str], app: App, where: Where) -> PullResult:
    """Pull the newest seal into the folder of an installed app. Returns the result of the pull. Raises the
    errors of a pull."""
    inner = Where(environment, Path(app.folder), where.note, where.progress, "svc app update")
    try:
        with copy_for_pulling(inner) as copy:
            return pull_copy(copy, "plain")
    finally:
        inner.close()


def uninstall(apps: Apps, app: App) -> None:
    """Delete what svc stores about an app and, if svc installed the app, its folder. If this is interrupted,
    the app is either still complete or no longer known. In the second case the next call deletes the rest.
    Raises DiskError."""
    for remains in apps.root.glob(f"{_REMOVED}*"):
        shutil.rmtree(remains, ignore_errors=True)
    removed = apps.root / f"{_REMOVED}{secrets.token_hex(8)}"
    try:
        apps.folder(app.id).rename(removed)
        shutil.rmtree(removed)
    except FileNotFoundError:
        return
    except OSError as error:
        raise DiskError(
            f"{app.id} cannot be removed: {error.strerror}; see the rights of its folder"
        ) from None
