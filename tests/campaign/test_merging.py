"""Two machines change the same text: what comes out is what somebody wrote, through every door."""

from __future__ import annotations

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
    done = bob.ok("pull", "--merge")
    assert bob.files()["app.py"].decode() == APP.replace("30", "45")
    [(name, kept)] = copies(bob, "app").items()
    assert kept == APP.replace("30", "60")
    said = (
        f"conflict in app.py, line 3: @{place.handle}'s version stays; yours (line 3) is kept whole as {name}"
    )
    assert said in done.err
