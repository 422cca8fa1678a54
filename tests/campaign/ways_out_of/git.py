"""Ways out of errors that people meet who clone with git."""

from __future__ import annotations

import shutil
import subprocess

from localstore.core.identity.bearer import format_script_token
from localstore.core.identity.keys import DeviceKey
from tests.campaign.conftest import Place
from tests.campaign.ways_out import SAID, first_push, refused, row
from tests.svc.conftest import clean_environment


def _clone(place: Place, user: str = "") -> subprocess.CompletedProcess[str]:
    """`git clone` of the private repository, as Ann, with settings of git that are hers alone."""
    settings = {**place.ann.environment, "SVC_HOME": str(place.ann.home), "GIT_TERMINAL_PROMPT": "0"}
    shutil.rmtree(place.base / "clone", ignore_errors=True)
    address = f"{place.node.address}/{place.repo}.git".replace("://", f"://{user}")
    done = subprocess.run(
        ["git", "clone", "-q", address, str(place.base / "clone")],
        env=clean_environment(**settings),
        capture_output=True,
        text=True,
    )
    SAID.append(done.stderr)
    return done


@row("sign_in_required", "auth setup-git")
def _a_whole_script_token_is_no_password(place: Place) -> None:
    place.ann.environment = {"GIT_CONFIG_GLOBAL": str(place.base / "gitconfig")}
    first_push(place)
    whole = format_script_token(place.node.address, b"a token", DeviceKey.generate())
    assert "svc auth setup-git" in _clone(place, f"svc:{whole}@").stderr
    place.ann.ok("auth", "setup-git")
    assert _clone(place).returncode == 0
    assert (place.base / "clone/a.txt").read_bytes() == b"one\n"


@row("usage", "auth setup-git")
def _git_is_not_there_yet(place: Place) -> None:
    place.ann.environment = {"GIT_CONFIG_GLOBAL": str(place.base / "gitconfig"), "PATH": "/nonexistent"}
    refused(
        place.ann,
        *("login", "--device-key", "--handle", place.handle, "--git-credential"),
        says="auth setup-git",
    )
    del place.ann.environment["PATH"]
    first_push(place)
    place.ann.ok("auth", "setup-git")
    assert _clone(place).returncode == 0
