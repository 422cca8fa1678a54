"""Markdown that is painted while it arrives."""

from __future__ import annotations

import random

import pytest

from svc.console.markdown import MarkdownStream

BOLD, CODE, PLAIN = "\x1b[1m", "\x1b[36m", "\x1b[0m"
TEXT = """# Title
Some **bold** and `code` and 2 * 3 and a_b.

```python
x = "**not bold**"  # no heading
```
* a list
"""
PAINTED = f"""{BOLD}# Title{PLAIN}
Some {BOLD}bold{PLAIN} and {CODE}code{PLAIN} and 2 * 3 and a_b.

{CODE}```python
x = "**not bold**"  # no heading
```{PLAIN}
* a list
"""


def painted(pieces: list[str]) -> str:
    stream = MarkdownStream()
    return "".join(map(stream.feed, pieces)) + stream.end()


def test_what_it_looks_like() -> None:
    assert painted([TEXT]) == PAINTED


@pytest.mark.parametrize("seed", range(20))
def test_however_it_is_cut(seed: int) -> None:
    rng, pieces, rest = random.Random(seed), [], TEXT
    while rest:
        length = rng.randrange(1, 8)
        pieces.append(rest[:length])
        rest = rest[length:]
    assert painted(pieces) == PAINTED


@pytest.mark.parametrize("text", ["**open", "`open", "# open", "```\nopen", "*", "`", "a **"])
def test_it_ends_plain(text: str) -> None:
    done = painted([text])
    assert done.endswith(PLAIN) or "\x1b" not in done
    assert done.replace(BOLD, "").replace(CODE, "").replace(PLAIN, "").strip("*`") == text.strip("*`")


def test_escapes_of_a_model_do_not_reach_the_terminal() -> None:
    assert "\x1b]" not in painted(["\x1b]0;owned\x07"])
