"""Two machines change the same text: what comes out is what somebody wrote, through every door."""

from __future__ import annotations

import os
import signal

from svc.api.sync_transport import BranchTransport
from tests.campaign.conftest import Place
from tests.campaign.world import Machine

APP = "import os\n\ntimeout = 30\nretries = 3\n\n\ndef main():\n    return timeout\n"


def both(place: Place, name: str, text: str) -> tuple[Machine, Machine]:
    """Two machines that have this file."""
    place.write(place.ann, name, text)
    place.ann.ok("push", "-m", "first")
    return place.ann, place.machine("bob")


def copies(machine: Machine, stem: str) -> dict[str, str]:
    return {
        path: data.decode()
        for path, data in machine.files().items()
        if path.startswith(f"{stem}.sync-conflict-")
    }


def test_the_same_edit_on_two_machines_is_one_edit(place: Place) -> None:
    ann, bob = both(place, "app.py", APP)
    edited = APP.replace("30", "60").replace("retries = 3\n", "retries = 3\ndelay = 1\n")
    for machine in (ann, bob):
        place.write(machine, "app.py", edited)
    ann.ok("push", "-m", "sixty")
    bob.ok("pull", "--merge")
    assert bob.files()["app.py"].decode() == edited


def test_two_values_for_one_setting_are_never_mixed(place: Place) -> None:
    ann, bob = both(place, "app.py", APP)
    place.write(ann, "app.py", APP.replace("30", "45"))
    place.write(bob, "app.py", APP.replace("30", "60"))
    ann.ok("push", "-m", "forty-five")
    done = bob.conflicting("pull", "--merge")
    assert bob.files()["app.py"].decode() == APP.replace("30", "45")
    [(name, kept)] = copies(bob, "app").items()
    assert kept == APP.replace("30", "60")
    said = (
        f"conflict in app.py, line 3: @{place.handle}'s version stays; yours (line 3) is kept whole as {name}"
    )
    assert said in done.err


def test_both_indent_the_same_files_again_and_they_still_compile(place: Place) -> None:
    source = "def f(a):\n    if a:\n        return [\n            a,\n        ]\n    return None\n"
    for number in range(10):
        place.write(place.ann, f"m{number}.py", source)
    place.ann.ok("push", "-m", "first")
    bob = place.machine("bob")
    for machine in (place.ann, bob):
        for number in range(10):
            place.write(machine, f"m{number}.py", source.replace("    ", "  "))
    place.ann.ok("push", "-m", "two spaces")
    bob.ok("pull", "--merge")
    assert set(bob.files().values()) == {source.replace("    ", "  ").encode()}


def dies_before_sealing() -> None:
    """This process is killed when its edits are live and not sealed."""
    BranchTransport.prepare = lambda *_: os.kill(os.getpid(), signal.SIGKILL)  # type: ignore


def test_a_push_that_meets_a_live_edit_merges_it_or_stops_before_sealing(place: Place) -> None:
    ann, bob = both(place, "app.py", APP)
    place.write(ann, "app.py", APP.replace("import os\n", "import os\nimport re\n"))
    assert ann.run("push", "-m", "live", before=dies_before_sealing).code == -signal.SIGKILL
    place.write(bob, "app.py", APP.replace("return timeout", "return timeout * 2"))
    done = bob.ok("push", "-m", "twice")
    assert f"app.py: merged with @{place.handle}'s edit" in done.err
    ann.ok("pull", "--merge")
    assert ann.files() == bob.files()

    place.write(ann, "app.py", ann.files()["app.py"].replace(b"30", b"45"))
    assert ann.run("push", "-m", "live", before=dies_before_sealing).code == -signal.SIGKILL
    place.write(bob, "app.py", bob.files()["app.py"].replace(b"30", b"60"))
    refused = bob.run("push", "-m", "sixty")
    said = (
        f"svc: not sealed: app.py conflicts with @{place.handle}'s live edit; look at both files, then push "
    )
    assert (refused.code, refused.err.splitlines()[-1]) == (1, said + "again")
    [(name, kept)] = copies(bob, "app").items()
    assert "timeout = 60" in kept
    assert (
        f"conflict in app.py, line 4: @{place.handle}'s version stays; yours (line 4) is kept whole as {name}"
        in refused.err
    )
    again = bob.run("push", "-m", "both")
    assert (again.code, f"app.py is in conflict, and your version is {name}" in again.err) == (1, True)
    bob.keep_both()
    bob.ok("push", "-m", "both")
    ann.ok("pull", "--merge")
    assert ann.files() == bob.files()


def test_json_names_conflicts_for_scripts(place: Place) -> None:
    ann, bob = both(place, "app.py", APP)
    place.write(ann, "app.py", APP.replace("30", "45"))
    place.write(bob, "app.py", APP.replace("30", "60"))
    ann.ok("push", "-m", "forty-five")
    found = bob.conflicting("pull", "--merge", "--json", "conflicts").json()["conflicts"]
    [name] = copies(bob, "app")
    assert found == [{"path": "app.py", "kept_as": name, "lines": "3", "kept_lines": "3", "by": place.handle}]
