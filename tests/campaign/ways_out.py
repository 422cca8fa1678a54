"""What the scenarios of `test_ways_out.py` share: the table, and how an error is met."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from tests.campaign.conftest import Place
from tests.campaign.world import Machine, Ran, Running

Scenario = Callable[[Place], None]
WAYS_OUT: dict[tuple[str, str], Scenario] = {}
SAID: list[str] = []  # what the commands of the running scenario, or a relay in it, printed


def row(code: str, *commands: str) -> Callable[[Scenario], Scenario]:
    """The scenario shows that these commands help against this error."""

    def keep(scenario: Scenario) -> Scenario:
        for command in commands:
            assert (code, command) not in WAYS_OUT, "the earlier scenario would not run any more"
            WAYS_OUT[code, command] = scenario
        return scenario

    return keep


def refused(machine: Machine, *words: str, says: str, **how: Any) -> Ran:
    """The command fails with one sentence that names `svc SAYS`."""
    done = machine.run(*words, **how)
    assert done.code in (1, 2, 4), (words, done)
    assert f"svc {says}" in done.err, done.err
    return done


def signed_in(place: Place, machine: Machine) -> None:
    """What `svc login` is for somebody without a browser: by a code of a device that is signed in."""
    code = place.ann.ok("auth", "device", "add").out.split()[0]
    machine.ok("login", "--device-key", "--handle", place.handle, "--pair", code)


def first_push(place: Place) -> None:
    place.write(place.ann, "a.txt", "one\n")
    place.write(place.ann, "b.bin", b"\0one")
    place.ann.ok("push", "-m", "first")


def wait_for_a_code(place: Place, running: Running) -> None:
    """Until the relay has given a code to the sign-in, which now waits for a browser."""
    for _ in range(400):
        if place.node.rows("SELECT user_code FROM device_code WHERE state='pending' AND expires_at>0"):
            return
        assert not running.over(), running.wait().err
        time.sleep(0.025)
    raise AssertionError("the relay never gave a code")
