"""No message is a dead end: every command that an error names is run, and helps.

`docs/reference/errors.md` says which commands the sentences of each error name. Each pair has a row in
`WAYS_OUT`: a scenario that meets the error, runs the command, and does then what was refused.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.reference_remedies import remedies
from tests.campaign import (  # noqa: F401 - they fill the table
    ways_out_branches,
    ways_out_merging,
    ways_out_sign_in,
    ways_out_work,
)
from tests.campaign.conftest import Place
from tests.campaign.ways_out import WAYS_OUT, Scenario

PAIRS = [(code, command) for code, commands in remedies().items() for command in commands]


@pytest.mark.parametrize(("code", "command"), PAIRS)
def test_every_command_that_an_error_names_has_a_scenario(code: str, command: str) -> None:
    assert (code, command) in WAYS_OUT, (
        f"the error {code} tells people to run svc {command}: show that it helps"
    )


@pytest.mark.parametrize(
    "scenario", dict.fromkeys(WAYS_OUT.values()), ids=lambda one: one.__name__.strip("_")
)
def test_the_command_that_an_error_names_helps(scenario: Scenario, place: Place) -> None:
    scenario(place)


def test_the_reference_names_the_same_commands() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs/reference/errors.md").read_text("utf-8")
    for code, command in PAIRS:
        (line,) = [one for one in page.splitlines() if one.startswith(f"| `{code}` |")]
        assert f"`svc {command}`" in line
