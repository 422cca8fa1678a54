"""`python -m svc.flows.apps.supervisor ID`: runs and supervises an app in the background."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from localstore.core.errors import SvcError
from localstore.core.paths import terminal_safe
from localstore.folder.lock import AlreadyLocked
from localstore.models.log import Log
from svc.flows.apps.place import LOG, Apps
from svc.flows.apps.supervise import Supervisor
from svc.flows.place.where import Where

ALREADY = 4


def main() -> int:
    """Run the supervisor. Returns the exit code: that of the app, 1 if the app did not start, or ALREADY if
    it is already running."""
    where = Where(os.environ, Path("/"), command="svc app launch")
    apps = Apps(where.home.root)
    app = next(app for app in apps.all() if app.id == sys.argv[1])
    where.folder = Path(app.folder)
    log = Log(apps.folder(app.id) / LOG)

    def note(sentence: str) -> None:
        log.write(f"svc: {terminal_safe(sentence)}\n".encode())

    where.note = note
    try:
        return Supervisor(where, app, log=log, note=note, report=lambda completed, total: None).run()
    except AlreadyLocked:
        return ALREADY
    except SvcError as error:
        note(error.detail)
        return 1


if __name__ == "__main__":
    sys.exit(main())
