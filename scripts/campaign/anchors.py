"""Checks whether comments on lines stay on their lines. It makes random texts and rounds of mixed edits, and
compares three ways to follow the lines.

    python -m scripts.campaign.anchors [--seed N] [--files N] [--rounds N]

Each line of a file has a unique word, so that its position is known after it was edited, moved or indented.
`log` follows the edits as devices made them, `text` compares the texts before and after a round, `lines` maps
line numbers through a line diff.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Sequence
from typing import NamedTuple

from localstore.core.diff import anchors, line_diff
from localstore.core.diff.anchors import Span
from localstore.core.diff.text_edits import Edit, apply
from localstore.core.lane.crdt import Delta
from localstore.core.lane.lane import Lane

REPLICA = 7
WORDS = [
    "value",
    "name",
    "path",
    "entry",
    "seal",
    "count",
    "index",
    "total",
    "size",
    "begin",
    "end",
    "open",
    "close",
    "read",
    "write",
]


class Result(NamedTuple):
    """The result of the measurement. `anchors`: number of comments whose line still exists. `kept`: how many
    of these comments each way of following lines left on their line. `seconds`: how long each way took. A way
    is `log`, `text` or `lines`."""

    anchors: int
    kept: dict[str, int]
    seconds: dict[str, float]


class TaggedText:
    """A text in which every line has a unique word."""

    def __init__(self, rng: random.Random, length: int) -> None:
        self.rng, self.made = rng, 0
        self.lines = [self.line() for _ in range(length)]

    def line(self) -> str:
        """Make a line that resembles code: words occur in many lines, and some lines differ only a little."""
        self.made += 1
        left, right = self.rng.choices(WORDS, k=2)
        return f"{' ' * self.rng.choice((0, 4, 4, 8))}{left} = {right}(id{self.made})"

    def word(self, line: str) -> str:
        return line[line.index("id") :].split(")", maxsplit=1)[0]

    def text(self) -> bytes:
        return "".join(f"{line}\n" for line in self.lines).encode()

    def edit(self, at: int) -> None:
        """Make one random edit at or near line `at`."""
        at = min(max(at, 0), len(self.lines) - 1)
        kind = self.rng.choice(
            ("insert", "insert", "delete", "words", "words", "indent", "split", "replace", "move")
        )
        if kind == "insert":
            self.lines[at:at] = [self.line() for _ in range(self.rng.randint(1, 6))]
        elif kind == "delete" and len(self.lines) > 20:
            del self.lines[at : at + self.rng.randint(1, 2)]
        elif kind == "words":
            line = self.lines[at]
            head, _, tail = line.partition(" = ")
            indent = head[: len(head) - len(head.lstrip())]
            self.lines[at] = f"{indent}{self.rng.choice(WORDS)}_{self.rng.choice(WORDS)} = {tail}"
        elif kind == "indent":
            for n in range(at, min(at + self.rng.randint(1, 5), len(self.lines))):
                self.lines[n] = "    " + self.lines[n]
        elif kind == "split":
            self.lines[at] = self.lines[at].replace("(id", f"({self.rng.choice(WORDS)}, id", 1)
        elif kind == "replace":
            self.lines[at] = self.lines[at] + f"  # {self.rng.choice(WORDS)} {self.rng.choice(WORDS)}"
        elif kind == "move":
            size = self.rng.randint(2, 4)
            taken = self.lines[at : at + size]
            del self.lines[at : at + size]
            to = self.rng.randint(0, len(self.lines))
            self.lines[to:to] = taken


def measure(seed: int, files: int, rounds: int, each: int = 20, edits: int = 9) -> Result:
    """Follow comments on `each` lines of every file through rounds of `edits` edits. A third of the edits are
    near a comment. Returns the result."""
    rng = random.Random(seed)
    kept = {"log": 0, "text": 0, "lines": 0}
    seconds = dict.fromkeys(kept, 0.0)
    total = 0
    for number in range(files):
        file = TaggedText(rng, rng.randint(60, 400))
        words = [file.word(line) for line in rng.sample(file.lines, each)]
        start = file.text()
        spans = {way: [_span(file, start, word) for word in words] for way in ("log", "text")}
        quotes = [start[one.start : one.end] for one in spans["log"]]
        numbers: list[int | None] = [anchors.lines_of(start, one)[0] for one in spans["log"]]
        for epoch in range(rounds):
            before = file.text()
            lane = Lane.genesis(f"branch{number}", 1, epoch, before, REPLICA)
            log = []
            for _ in range(edits):
                near = rng.random() < 1 / 3
                at = _near(rng, file, words) if near else rng.randrange(len(file.lines))
                file.edit(at)
                update = lane.edit(REPLICA, file.text())
                log += [update] if update is not None else []
            after = file.text()
            began = time.process_time()
            replayed = _changes(Lane.genesis(f"branch{number}", 1, epoch, before), log)
            spans["log"] = follow_spans(before, spans["log"], quotes, replayed)
            seconds["log"] += time.process_time() - began
            began = time.process_time()
            spans["text"] = _find_moved_spans(
                before, after, anchors.follow(before, after, spans["text"]), quotes
            )
            seconds["text"] += time.process_time() - began
            began = time.process_time()
            numbers = _by_lines(before, after, numbers)
            seconds["lines"] += time.process_time() - began
        end = file.text()
        living = {file.word(line): n for n, line in enumerate(file.lines, 1)}
        for way in ("log", "text"):
            for word, span in zip(words, spans[way], strict=True):
                kept[way] += word in living and anchors.lines_of(end, span)[0] == living[word]
        kept["lines"] += sum(w in living and n == living[w] for w, n in zip(words, numbers, strict=True))
        total += sum(word in living for word in words)
    return Result(total, kept, seconds)


def follow_spans(
    text: bytes, spans: Sequence[Span], quotes: Sequence[bytes], log: Sequence[Sequence[Edit]]
) -> list[Span]:
    """The positions of `spans`, which are parts of `text`, after all edits in `log`, applied one after the
    other. `quotes`: the content of each span, by which it is found again if it was moved."""
    before, found = text, list(spans)
    for edits in log:
        after = apply(text, list(edits))
        found = anchors.follow(text, after, found, edits)
        text = after
    return _find_moved_spans(before, text, found, quotes)


def _changes(lane: Lane, updates: Sequence[bytes]) -> list[list[Edit]]:
    """The edits of each update that changed the text, as offsets in the text before that update."""
    return [edits for delta in lane._deltas(updates) if (edits := _edits(delta))]


def _edits(delta: Delta) -> list[Edit]:
    """The edits in a delta of the CRDT library. An insertion and a deletion side by side are one edit."""
    found: list[Edit] = []
    at = 0  # in the text before
    for step in delta:
        if "retain" in step:
            at += step["retain"]
            continue
        deleted = step.get("delete", 0)
        inserted = step["insert"].encode() if "insert" in step else b""
        if found and found[-1].offset + found[-1].deleted == at:
            last = found.pop()
            found.append(Edit(last.offset, last.deleted + deleted, last.inserted + inserted))
        else:
            found.append(Edit(at, deleted, inserted))
        at += deleted
    return found


def _find_moved_spans(
    before: bytes, after: bytes, spans: Sequence[Span], quotes: Sequence[bytes]
) -> list[Span]:
    return [
        anchors.elsewhere(before, after, span, quote) or span
        for span, quote in zip(spans, quotes, strict=True)
    ]


def _span(file: TaggedText, text: bytes, word: str) -> Span:
    at = next(n for n, line in enumerate(file.lines, 1) if file.word(line) == word)
    found = anchors.of_lines(text, at, at)
    assert found is not None
    return found


def _near(rng: random.Random, file: TaggedText, words: Sequence[str]) -> int:
    word = rng.choice(words)
    at = next(
        (n for n, line in enumerate(file.lines) if file.word(line) == word), rng.randrange(len(file.lines))
    )
    return at + rng.randint(-1, 1)


def _by_lines(before: bytes, after: bytes, numbers: Sequence[int | None]) -> list[int | None]:
    """Map line numbers through a line diff of the texts `before` and `after`. A line that was changed gets
    None."""
    hunks = line_diff.opcodes(line_diff.lines(before), line_diff.lines(after))
    made: list[int | None] = []
    for number in numbers:
        at = None if number is None else number - 1
        by = 0
        for hunk in hunks:
            if at is None or hunk.old_start > at:
                break
            if hunk.old_start <= at < hunk.old_end:
                at = None
                break
            by = hunk.new_end - hunk.old_end
        made.append(None if at is None else at + by + 1)
    return made


def main() -> None:
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("--seed", type=int, default=1)
    reader.add_argument("--files", type=int, default=30)
    reader.add_argument("--rounds", type=int, default=6)
    asked = reader.parse_args()
    found = measure(asked.seed, asked.files, asked.rounds)
    print(f"{found.anchors} anchors whose line is there still, {asked.files} files, {asked.rounds} rounds")
    steps = asked.files * asked.rounds * 20
    for way, count in found.kept.items():
        share, took = 100 * count / found.anchors, found.seconds[way] / steps * 1e6
        print(f"{way:>6}: {share:.1f} % on their line, {took:.0f} µs for an anchor and round")


if __name__ == "__main__":
    main()
