"""A short play of the live campaign (`python -m scripts.campaign.live`), and its judge."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.campaign.live import run
from scripts.campaign.live_people import faults_of, text_of
from tests import databases


def test_one_history(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    faults = run(60.0, 7, 2, databases.variables(tmp_path), histories=1)
    assert not faults, capsys.readouterr().out


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"a": text_of("1", b"wa0x")}, "wb1x is lost"),
        ({"a": text_of("1", b"wa0x wb1x wb1x")}, "wb1x stands 2 times"),
        ({"a": text_of("1", b"wa0x wb1x"), "b": text_of("2", b"wb1x")}, "wb1x is in documents"),
    ],
)
def test_the_judge_finds(files: dict[str, bytes], words: str) -> None:
    faults, _ = faults_of(files, [b"wa0x", b"wb1x", b"wb2x"], b"deleted: wb2x")
    assert [fault for fault in faults if words in fault]
    assert len(faults) == 1


def test_the_judge_lets_pass_what_two_renamed() -> None:
    files = {"a": text_of("1", b"wa0x"), "b": text_of("1", b"wa0x wb1x")}
    assert faults_of(files, [b"wa0x", b"wb1x"], b"") == ([], 1)
