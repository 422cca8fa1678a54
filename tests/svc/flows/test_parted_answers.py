"""Objects that come in several answers, because one answer of the relay holds only a part of them."""

from __future__ import annotations

import random
from pathlib import Path

from relay.objects.export import REFRAMED
from tests.svc.conftest import Svc
from tests.svc.flows.test_large_files import made, pushed

SIZE = 100_000  # bytes of a text: five share a frame


def test_a_tree_whose_frames_have_all_lost_a_file_is_cloned_whole(alice: Svc, tmp_path: Path) -> None:
    """Each stored frame holds a text that was replaced, so the relay frames all others anew, with a limit
    for one answer."""
    full = made(alice, "lib")
    source = random.Random(5)
    count = REFRAMED * 5 // 4 // SIZE + 10
    for number in range(count):
        Path(f"{number:03}.txt").write_text(source.randbytes(SIZE // 2).hex())
    pushed(alice)
    for number in range(0, count, 5):
        Path(f"{number:03}.txt").write_text(f"replaced {number}")
    pushed(alice)
    assert alice("repo", "clone", full, str(tmp_path / "b")).code == 0
    assert {one.name: one.read_bytes() for one in (tmp_path / "b").glob("*.txt")} == {
        one.name: one.read_bytes() for one in Path().glob("*.txt")
    }
