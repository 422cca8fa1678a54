"""No message is a dead end: every command that an error names is run, and helps.

`docs/reference/errors.md` says which commands the sentences of each error name. Each pair has a row in
`WAYS_OUT`: a scenario that meets the error, runs the command, and does then what was refused.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from scripts.reference_remedies import remedies, sentences
from tests.campaign import ways_out, world
from tests.campaign.conftest import Place
from tests.campaign.ways_out import WAYS_OUT, Scenario
from tests.campaign.ways_out_of import (  # noqa: F401 - they fill the table
    branches,
    catalog,
    checks,
    cloud,
    forks,
    git,
    merges,
    merging,
    models,
    orgs,
    proposals,
    protection,
    sign_in,
    webhooks,
    work,
)
from tests.campaign.ways_out_of.sentences import ROW, SENTENCES

PAIRS = [(code, command) for code, commands in remedies().items() for command in commands]


@pytest.mark.parametrize(("code", "command"), PAIRS)
def test_every_command_that_an_error_names_has_a_scenario(code: str, command: str) -> None:
    assert (code, command) in WAYS_OUT, (
        f"the error {code} tells people to run svc {command}: show that it helps"
    )


@pytest.mark.parametrize(
    "scenario", dict.fromkeys(WAYS_OUT.values()), ids=lambda one: one.__name__.strip("_")
)
def test_the_command_that_an_error_names_helps(
    scenario: Scenario, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = ways_out.SAID
    said.clear()
    checked = world.check

    def check(done: world.Ran) -> None:
        said.append(done.err)
        checked(done)

    monkeypatch.setattr(world, "check", check)
    scenario(place)
    for pair in (pair for pair, one in WAYS_OUT.items() if one is scenario):
        for piece in (piece for piece, how in SENTENCES.get(pair, {}).items() if how == ROW):
            pattern = ".*".join(map(re.escape, piece.split("…")))
            assert any(re.search(pattern, text) for text in said), (pair, piece)


def test_every_sentence_that_names_a_command_has_a_row_or_the_situation_of_one() -> None:
    found: dict[tuple[str, str], list[str]] = {}
    for code, command, sentence in sorted(sentences()):
        found.setdefault((code, command), []).append(sentence)
    several = {pair: texts for pair, texts in found.items() if len(texts) > 1 or pair in SENTENCES}
    alone = [("stale_head", "pull", "run: svc pull")]  # the end of a sentence that its caller begins
    without = [
        (*pair, text)
        for pair, texts in several.items()
        for text in texts
        if (*pair, text) not in alone and not any(piece in text for piece in SENTENCES.get(pair, {}))
    ]
    assert without == [], "show in ways_out_of/sentences.py where each is said, or whose situation it shares"
    gone = [
        (*pair, piece)
        for pair, pieces in SENTENCES.items()
        for piece in pieces
        if not any(piece in text for text in found.get(pair, []))
    ]
    assert gone == []


def test_the_reference_names_the_same_commands() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs/reference/errors.md").read_text("utf-8")
    for code, command in PAIRS:
        (line,) = [one for one in page.splitlines() if one.startswith(f"| `{code}` |")]
        assert f"`svc {command}`" in line
