"""Lines around matches, compared with those of grep."""

from __future__ import annotations

import random
import shutil
import subprocess

import pytest

from svc.flows.search.context import Around, FoundLine, add_context
from svc.flows.search.lines import compile_pattern


def shown(text: str, around: Around) -> list[str]:
    lines = text.split("\n")[:-1]
    found = (FoundLine("a", line, lines) for line in compile_pattern("x").lines_of(text))
    return [
        "--" if row is None else f"{row.line.number}{':' if row.matches else '-'}{row.line.text}"
        for row in add_context(found, around)
    ]


@pytest.mark.skipif(shutil.which("grep") is None, reason="there is no grep")
@pytest.mark.parametrize("seed", range(40))
def test_they_are_those_of_grep(seed: int) -> None:
    chance = random.Random(seed)
    text = "".join(f"{chance.choice('abcdex')}\n" for _ in range(chance.randrange(1, 40)))
    around = Around(chance.randrange(4), chance.randrange(1, 4))
    words = ["grep", "-n", f"-B{around.before}", f"-A{around.after}", "x"]
    expected = subprocess.run(words, input=text, capture_output=True, text=True, env={"LC_ALL": "C"})
    assert shown(text, around) == expected.stdout.splitlines()
