"""The campaign of faults fits the sources: each of its texts stands once, and every room has some."""

from __future__ import annotations

import pytest

from scripts.campaign.faults import FAULTS, Fault
from scripts.chosen_tests import OURS, ROOT


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_the_text_that_a_fault_replaces_stands_once(fault: Fault) -> None:
    assert (ROOT / fault.file).read_text("utf-8").count(fault.right) == 1
    assert fault.right != fault.wrong


def test_each_room_has_two_faults() -> None:
    rooms = [fault.file.partition("/")[0] for fault in FAULTS]
    assert sorted(rooms) == sorted(OURS * 2)
