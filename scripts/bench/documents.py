"""The time to open a document of many edits, from what a relay stores of it: a snapshot and the last updates.

    python -m scripts.bench.documents [EDITS]

Each edit replaces one word of a text of 300 words. The figure is the median of the openings, wall time.
"""

from __future__ import annotations

import random
import statistics
import sys
import time

from localstore.core.document.document import Document
from localstore.core.limits import DOCUMENT_UPDATES

EDITS, WORDS, OPENINGS = 100_000, 300, 21


def stored(edits: int) -> tuple[list[bytes], str]:
    """(snapshot and last updates of a document of so many edits, its text)."""
    drawn, words = random.Random(1), [f"word{at}" for at in range(WORDS)]
    document, updates, snapshot = Document(1), [], b""
    for number in range(edits):
        words[drawn.randrange(WORDS)] = f"w{number}"
        updates.append(document.write({"text": " ".join(words)}))
        if number == edits - DOCUMENT_UPDATES:
            snapshot, updates = document.state(), []
    return [snapshot, *updates] if snapshot else updates, " ".join(words)


def main(edits: int = EDITS) -> int:
    updates, text = stored(edits)
    seconds = []
    for _ in range(OPENINGS):
        began = time.perf_counter()
        content = Document(1, updates).content()
        seconds.append(time.perf_counter() - began)
        if content != {"text": text}:
            print("the document is not what was written", file=sys.stderr)
            return 1
    size = sum(map(len, updates))
    print(f"{edits} edits, {size} bytes: opened in {statistics.median(seconds) * 1000:.1f} ms")
    return 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
