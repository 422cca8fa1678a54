"""Compares the terminal app with its budgets: bytes to the terminal and CPU of the app.

    python -m scripts.bench.app_bars [--size 80x24] [--rounds 5]

It makes its own relay and repositories: dense texts, 300 issues, a file of 100,000 lines. The app runs on a
real pseudo-terminal. CPU is user and system time of the whole process, measured by its own clock. The figures
are the lowest CPU time of several rounds, so that other work on the machine counts little, and the highest
number of bytes. The exit code is 1 if something is more than 15 % over its budget.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from localstore.core.model import issue as issues
from localstore.core.model.issue import CommentBody, IssueCreate
from scripts.bench.app import LINES, Watched, long_file, relay_on
from scripts.bench.collaboration.folders import environment, make_linked_folder, svc, write
from scripts.bench.ingest import signed_in
from scripts.bench.shared.cpu import anonymous, run
from svc.api import Api

ISSUES = 300
DENSE = 12  # of them, the newest
SPARE = 1.15  # how far over a budget does not count
# Bytes may grow with the screen: 140 × 40 has three times the cells of 80 × 24, 200 × 50 five times.
SCALE = {(80, 24): 1.0, (140, 40): 2.0, (200, 50): 3.0}
"""Size → what the budgets of bytes of whole screens are multiplied by."""


class Bar(NamedTuple):
    """A budget: the highest allowed number of bytes to the terminal, and of milliseconds of CPU."""

    sent: int
    cpu: float


START = Bar(6000, 450)  # its CPU is a factor instead, of what the imports of Textual and Typer take
START_FACTOR = 1.6
SCREEN = Bar(4000, 160)
KEY = Bar(500, 16)
KEY_IN_MANY = Bar(500, 10)
PREVIEW = Bar(2500, 40)
OPEN_MANY = Bar(4000, 300)
MEMORY = 90  # megabytes
IDLE = Bar(0, 4)  # a second


def dense(number: int, size: int) -> str:
    """A Markdown text of `size` characters with all kinds of markup. Each `number` gives another text."""
    block = (
        f"## Part {{n}} of {number}\n\n"
        "It **stalls** when `queue.take()` waits for a *lock* that @bob holds, see #12 and "
        "[the record](docs/guide/README.md), also https://example.test/a/b and ~~not~~ **`now`**.\n\n"
        "- [x] one `a` of **b**\n- [ ] two, see #3\n  - nested *words* of @alice\n\n"
        "| name | cost | when |\n| --- | ---: | --- |\n| `take` | 12 | **always** |\n| put | 7 | @bob |\n\n"
        "```python\ndef take(self, wait: float = 0.5) -> Item | None:\n"
        "    return self._rows.pop(0) if self._rows else None  # {n}\n```\n\n"
        "> quoted, with `code` and **strong** words\n\n"
    )
    text = "".join(block.replace("{n}", str(place)) for place in range(size // len(block) + 1))
    return f"# Text {number}\n\n{text}"[:size]


def source(number: int, mark: str) -> bytes:
    """A Python file of 240 lines, some of which contain `mark`. Each `number` gives another file."""
    return b"".join(
        f"def part_{n}(rows: list[str], wait: float = {n}.5) -> str | None:\n"
        f'    """Part {n} of {number}."""\n'
        f"    return {{'{mark if n % 3 else 'same'}': rows[{n}]}}.get(\"{n}\")  # after {n} rows\n\n".encode()
        for n in range(60)
    )


def furnish(api: Api, base: Path, env: dict[str, str]) -> Path:
    """Make a linked folder whose repository has everything that the benchmark opens, and three more
    repositories. Returns the folder."""
    for number in range(3):
        folder, _ = make_linked_folder(api, base, env, f"other{number}")
        write(folder, {"README.md": dense(number, 8000).encode()})
        svc(folder, env, "push", "-m", "First")
    folder, repo_id = make_linked_folder(api, base, env, "app")
    write(folder, {"README.md": dense(9, 8000).encode(), "long.py": long_file("old")})
    write(folder, {f"src/part{number:02}.py": source(number, "old") for number in range(20)})
    svc(folder, env, "push", "-m", "First")
    for number in range(8):
        write(folder, {f"src/part{number:02}.py": source(number, "new")})
        svc(folder, env, "push", "-m", f"Change part {number}")
    write(folder, {"long.py": long_file("new")})
    svc(folder, env, "push", "-m", "Change the long one")
    svc(folder, env, "repo", "branch", "topic")
    svc(folder, env, "switch", "topic")
    write(folder, {f"src/part{number:02}.py": source(number, "topic") for number in range(8, 14)})
    svc(folder, env, "push", "-m", "Third")
    svc(folder, env, "pr", "create", "--base", "main", "-t", "Parts", "-b", dense(1, 3000))
    svc(folder, env, "switch", "main")
    for number in range(ISSUES):
        body = dense(number, 4000) if number >= ISSUES - DENSE else "It hangs\n" * 30
        made = api.send(issues.CREATE, IssueCreate(title=f"Stall {number}", body=body), id=repo_id)
        for place in range(4 if number >= ISSUES - DENSE else 0):
            text = CommentBody(body=dense(number * 10 + place, 1000))
            api.send(issues.COMMENT, text, id=repo_id, n=str(made.number))
    return folder


class Table:
    """The printed rows for one size of terminal. `over`: how many of them exceed their budget."""

    def __init__(self, size: tuple[int, int]) -> None:
        self._scale = SCALE.get(size, 3.0)
        self.over = 0
        print(f"\n{size[0]} x {size[1]:<22} {'bytes':>7} {'bar':>7}   {'ms':>7} {'bar':>5}")

    def row(self, name: str, sent: int, cpu: float, bar: Bar) -> None:
        """Print a measurement beside its budget. A row that exceeds its budget is counted in `over`."""
        scale = self._scale / 2 if bar is PREVIEW else self._scale if bar.sent > KEY.sent else 1.0
        most = int(bar.sent * scale)
        over = sent > most * SPARE or cpu > bar.cpu * SPARE
        self.over += over
        sign = "  OVER" if over else ""
        print(f"{name:<28} {sent:>7} {most:>7}   {cpu:>7.1f} {bar.cpu:>5.0f}{sign}", flush=True)


class Timed(Watched):
    """The app on a terminal. Its CPU time is read from the clock of its process, which is exact."""

    @property
    def cpu(self) -> float:
        return 1000 * time.clock_gettime((~self.pid << 3) | 2)  # as clock_getcpuclockid makes it

    def least(self, keys: Sequence[str], quiet: float = 0.15) -> tuple[int, float]:
        """Type the keys one after the other. A key is done when the app has sent nothing for `quiet` seconds.
        Returns (highest number of bytes for one key, lowest CPU milliseconds of one key)."""
        costs = [self.one(key, quiet) for key in keys]
        return max(sent for sent, _ in costs), min(cpu for _, cpu in costs)

    def one(self, key: str, quiet: float) -> tuple[int, float]:
        """Type one key, and wait until the app has sent nothing for `quiet` seconds. Returns (bytes sent by
        the app, CPU milliseconds)."""
        before = self.cpu
        sent = self.keys(key, quiet) + self.still(quiet)
        return sent, self.cpu - before

    def back_to(self, words: str) -> None:
        """Press Escape until the words are on the screen."""
        for _ in range(6):
            if self.shows(words, 1.0):
                return
            self.one("\x1b", 0.2)
        self.expect(words)


def imports() -> float:
    """The CPU milliseconds of a Python process that only imports Textual and Typer."""
    return 1000 * run([sys.executable, "-c", "import textual.app, typer"], Path.cwd()).cpu


def start_app(folder: Path, env: dict[str, str], size: tuple[int, int]) -> tuple[Timed, int, float]:
    """Start the app. Returns (the app after its first complete screen, bytes sent, CPU milliseconds)."""
    app, sent = Timed(folder, env, size), 0
    while "Repositories" not in app.text:
        sent += app.read(0.01, 0.02)
    return app, sent, app.cpu


def measure(folder: Path, env: dict[str, str], size: tuple[int, int], rounds: int) -> int:
    """Print the table for one size of terminal. Returns the number of exceeded budgets."""
    table = Table(size)
    starts, imported = [], []
    for _ in range(rounds + 2):
        imported.append(imports())
        app, sent, cpu = start_app(folder, env, size)
        starts.append((sent, cpu))
        app.still(1.0)
        app.close()
    wide = size[0] >= 100
    bar = START._replace(cpu=START_FACTOR * min(imported) + (PREVIEW.cpu if wide else 0.0))
    table.row("start, first screen", max(sent for sent, _ in starts), min(cpu for _, cpu in starts), bar)
    app, _, _ = start_app(folder, env, size)
    app.still(1.0)
    if wide:
        app.one("G", 0.6)
        app.one("g", 0.6)
        table.row("preview of a README, again", *app.least("jkjkjkjk", 0.5), PREVIEW)
    screens(app, table, rounds)
    lists(app, table, wide=wide)
    many(app, table, wide=wide)
    app.one("1", 0.5)
    before = app.cpu
    sent = app.read(5.0, 5.1)
    table.row("idle, a second", sent, (app.cpu - before) / 5, IDLE)
    own = anonymous([app.pid]) >> 20
    table.over += own > MEMORY * SPARE
    print(f"{'memory, MB':<28} {own:>7} {MEMORY:>7}")
    app.close()
    return table.over


def screens(app: Timed, table: Table, rounds: int) -> None:
    """Measure what it costs to open each screen, several times each. The app is in a repository at the
    end."""
    for name, key in (("inbox", "i"), ("sync", "s"), ("machine", "M"), ("all actions", " "), ("keys", "?")):
        costs = []
        for _ in range(rounds):
            costs.append(app.one(key, 0.4))
            app.back_to("q quit")
        table.row(f"open {name}", max(sent for sent, _ in costs), min(cpu for _, cpu in costs), SCREEN)
    costs = []
    for _ in range(rounds):
        costs.append(app.one("\r", 0.4))
        app.back_to("q quit")
    table.row("open a repository", max(sent for sent, _ in costs), min(cpu for _, cpu in costs), SCREEN)
    app.one("/", 0.3)
    app.one("bench/app", 0.4)
    app.one("\r", 0.4)
    app.one("\r", 0.6)
    app.expect("8 Set")
    costs_of: dict[str, list[tuple[int, float]]] = {}
    for _ in range(rounds):
        for tab in "12345678":
            costs_of.setdefault(tab, []).append(app.one(tab, 0.4))
    for tab, each in costs_of.items():
        table.row(f"tab {tab}", max(sent for sent, _ in each), min(cpu for _, cpu in each), SCREEN)


def lists(app: Timed, table: Table, *, wide: bool) -> None:
    """Measure what keys and previews cost in the lists of issues, of seals, and of the files of a proposal.
    `wide`: the terminal is wide enough to show previews."""
    app.one("3", 0.5)
    app.expect("Stall 299")
    app.one("G", 0.5)
    app.one("g", 0.5)
    if wide:
        first = app.least("j" * (DENSE - 1), 0.5)
        table.row("preview of a dense issue", *first, PREVIEW)
        table.row("preview of it, again", *app.least("k" * (DENSE - 1), 0.5), PREVIEW)
        app.one("P", 0.4)
    app.one("\x04", 0.3)
    table.row("a key in 300 rows", *app.least("jjjjjkkkkk"), KEY)
    table.row("half a page of them", *app.least(["\x04", "\x15"] * 4), Bar(4000, 16))
    app.one("/", 0.3)
    table.row("a key of a filter of them", *app.least("stall 12"), Bar(4000, 16))
    app.one("\x1b", 0.3)
    if wide:
        app.one("P", 0.4)
    app.one("g", 0.5)
    costs = []
    for _ in range(5):
        costs.append(app.one("\r", 0.4))
        app.one("\x1b", 0.4)
    table.row("open a dense issue", max(sent for sent, _ in costs), min(cpu for _, cpu in costs), SCREEN)
    app.one("p", 0.5)
    app.expect("Parts")
    costs = []
    for _ in range(5):
        costs.append(app.one("\r", 0.4))
        app.one("\x1b", 0.4)
    table.row("open a proposal", max(sent for sent, _ in costs), min(cpu for _, cpu in costs), SCREEN)
    app.one("\r", 0.5)
    table.row("open its files", *app.one("\r", 0.6), SCREEN)
    app.expect("part08")
    files = app.least("}}}}{{{{", 0.5)
    table.row("the next file of it", *files, SCREEN)
    if wide:
        table.row("preview of a dense diff", *app.least("jjjkkkjjj", 0.5), PREVIEW)
        app.one("\t", 0.5)
    table.row("a line of a diff", *app.least("jjjjjkkkkk"), KEY)
    app.back_to("8 Set")
    app.one("p", 0.4)
    app.one("2", 0.4)


def many(app: Timed, table: Table, *, wide: bool) -> None:
    """Measure keys in a file of 100,000 lines, and in a comparison of its versions."""
    app.one("2", 0.5)
    app.expect("long.py")
    app.one("/", 0.3)
    app.one("long", 0.4)
    app.one("\r", 0.8)
    table.row("open 100,000 lines", *app.one("\r", 0.6), OPEN_MANY)
    app.expect(f"{LINES}")
    table.row("a key in 100,000 lines", *app.least("jjjjjkkkkk"), KEY_IN_MANY)
    table.row("half a page of them", *app.least(["\x04", "\x15"] * 4), Bar(4000, 16))
    app.one("h", 0.8)
    app.expect("Change the long one")
    app.one("g", 0.8)
    costs = []
    for _ in range(3):
        costs.append(app.one("\r", 0.8))
        app.expect("M long.py")
        app.one("\x1b", 0.6)
    table.row(
        "open their comparison", max(sent for sent, _ in costs), min(cpu for _, cpu in costs), OPEN_MANY
    )
    app.one("\r", 0.8)
    if wide:
        app.one("\t", 0.3)  # from the files to their changes
    table.row("a key in 150,000 rows", *app.least("jjjjjkkkkk"), KEY_IN_MANY)
    table.row("half a page of them", *app.least(["\x04", "\x15"] * 4), Bar(4000, 16))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--size", action="append")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    over = 0
    with tempfile.TemporaryDirectory(prefix="svc-bench-") as made:
        base = Path(made)
        with relay_on(base / "relay") as url:
            env = environment(base, url)
            api, _ = signed_in(base, url)
            folder = furnish(api, base, env)
            for size in options.size or ["80x24", "140x40", "200x50"]:
                width, height = map(int, size.split("x"))
                over += measure(folder, env, (width, height), options.rounds)
            svc(folder, env, "watch", "stop", "--all")
    raise SystemExit(1 if over else 0)


if __name__ == "__main__":
    main()
