"""What a confined process can still do, if its owner has taken it over."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from svc.remote import confine, files
from tests.relay.ssh.place import opened

ALLOWED = {"own file", "socketpair", "a library", "python", "own limit"}
UID = 2_000_100_000


@pytest.mark.skipif(os.geteuid() != 0 or platform.machine() != "x86_64", reason="takes on another uid")
@pytest.mark.skipif(files.version() < files.SCOPED, reason="needs Landlock with scopes")
@pytest.mark.parametrize("own_user", [True, False])
def test_a_confined_process_does_next_to_nothing(own_user: bool) -> None:
    """The victim has the same uid, as the relay has where it is not root."""
    folder = Path(f"/tmp/svc-attempts-{os.getpid()}-{own_user}")
    data = folder / "data"
    own = folder / "own"
    for one in (folder, data, own):
        one.mkdir(mode=0o755)
        os.chown(one, UID, UID)
    (data / "secret").write_text("secret")
    victim = subprocess.Popen(["sleep", "300"], user=UID, group=UID, extra_groups=())
    try:
        become = f"import os, sys; os.setgroups([]); os.setgid({UID}); os.setuid({UID}); "
        attempts = str(Path(__file__).with_name("attempts.py"))
        words = [sys.executable, "-I", attempts, str(own), str(data), str(victim.pid), str(int(own_user))]
        done = subprocess.run(
            [*opened(), sys.executable, "-c", become + "os.execv(sys.executable, sys.argv[1:])", *words],
            capture_output=True,
            text=True,
            env={"PATH": "/usr/bin:/bin:/usr/sbin"},
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        worked = json.loads(done.stdout)
        assert {name for name, good in worked.items() if good} == ALLOWED
        assert victim.poll() is None
    finally:
        victim.kill()
        victim.wait()
        subprocess.run(["rm", "-rf", str(folder)], check=True)


def test_libraries_outside_of_the_prefix_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A .pth file may name other folders of libraries; below a checkout there is more than packages."""
    libraries, checkout = tmp_path / "site-packages", tmp_path / "checkout"
    for folder in (libraries, checkout):
        folder.mkdir()
        monkeypatch.syspath_prepend(str(folder))
    rights = dict(confine._rules())
    assert (rights[libraries], rights[checkout]) == (files.READ, files.READ_DIR)
