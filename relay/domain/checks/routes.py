"""Checks of a repository and their states on a seal; runs of checks."""

from __future__ import annotations

from localstore.core.model import check, run
from relay.domain.checks import check as checks
from relay.domain.checks import run as runs
from relay.http.routing import serves

serves(check.LIST, operation="check.list", name="check.list_checks")(checks.page)
serves(check.ENABLE, operation="check.enable", name="check.enable_check", errors=(409,))(checks.enable)
serves(check.DISABLE, operation="check.disable", name="check.disable_check")(checks.disable)
serves(check.OF_SEAL, operation="check.list", name="check.list_seal_checks")(checks.of_seal)
serves(run.LIST, operation="run.list", name="run.list_runs")(runs.page)
serves(run.CREATE, operation="run.create", name="run.create_run", errors=(409,))(runs.create)
serves(run.GET, operation="run.get", name="run.get_run")(runs.get)
serves(run.UPDATE, operation="run.update", name="run.update_run", errors=(409,))(runs.update)
serves(run.CANCEL, operation="run.cancel", name="run.cancel_run", errors=(409,))(runs.cancel)
serves(run.RERUN, operation="run.rerun", name="run.rerun_run", errors=(409,))(runs.rerun)
