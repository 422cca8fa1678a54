"""The transcripts in tests/transcripts are documentation, and true: they run here against a real relay.

In a ```console block a line `$ command` is run by bash and the lines after it are what it must print. `…`
stands for any text within a line, a line of `…` alone for any lines, `<name>` for any word; the same
`<name>` is the same word throughout the file and may be used in later commands. `# on NAME` turns to
another machine, with its own home and folder; `# the relay stops` and `# the relay starts` do that to a relay
of this file's own. `[N]` at the end of a block's output is the exit code; without
it the code must be 0. Output is that of a terminal unless the command is piped.
"""

from __future__ import annotations

import errno
import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from scripts.live.devices import Relay
from tests.svc import forks
from tests.svc.conftest import ROOT, clean_environment

FOLDER = ROOT / "tests" / "transcripts"
INTERPRETED = ("first-use.md", "scripting.md")  # here each command starts an interpreter, as everywhere else
STOPS, STARTS = "# the relay stops", "# the relay starts"
PLACEHOLDER = re.compile(r"<([a-z][a-z0-9-]*)>")


@dataclass
class Step:
    machine: str
    command: str
    expected: list[str] = field(default_factory=list)
    code: int = 0


def steps_of(text: str) -> list[Step]:
    """The commands of a transcript with what they must print."""
    found: list[Step] = []
    machine = "laptop"
    for block in re.findall(r"```console\n(.*?)```", text, re.DOTALL):
        for line in block.splitlines():
            if line.startswith("# on "):
                machine = line.removeprefix("# on ").strip()
            elif line in (STOPS, STARTS):
                found.append(Step(machine, line))
            elif line.startswith("$ "):
                found.append(Step(machine, line[2:]))
            elif line.startswith("> "):
                found[-1].command += "\n" + line[2:]
            elif re.fullmatch(r"\[\d+\]", line):
                found[-1].code = int(line[1:-1])
            else:
                found[-1].expected.append(line)
    return found


def filled(command: str, known: dict[str, str]) -> str:
    """The command with the words that earlier output gave."""
    return PLACEHOLDER.sub(lambda match: known.get(match[1], match[0]), command)


def pattern_of(expected: list[str], known: dict[str, str]) -> re.Pattern[str]:
    """What the output must match. Each new placeholder becomes a group; its name is its index here."""
    seen: set[str] = set()

    def placeholder(match: re.Match[str]) -> str:
        name = match[1]
        if name in known:
            return re.escape(known[name])
        group = name.replace("-", "_")
        if name in seen:
            return f"(?P={group})"
        seen.add(name)
        return rf"(?P<{group}>\S+?)"

    lines = []
    for line in expected:
        if line.strip() == "…":
            lines.append(r"(?:[^\n]*\n)*?")
            continue
        parts = re.split(r"(<[a-z][a-z0-9-]*>|…)", line)
        text = "".join(
            "[^\\n]*"
            if part == "…"
            else PLACEHOLDER.sub(placeholder, part)
            if PLACEHOLDER.fullmatch(part)
            else re.escape(part)
            for part in parts
        )
        lines.append(text + r"[ \t]*\n")
    return re.compile("".join(lines))


def on_terminal(command: str, environment: dict[str, str], folder: Path) -> tuple[int, str]:
    """Run by bash with a terminal for stdout and stderr, and nobody to answer questions."""
    near, far = pty.openpty()
    with subprocess.Popen(
        ["bash", "-c", command], stdin=subprocess.DEVNULL, stdout=far, stderr=far, env=environment, cwd=folder
    ) as process:
        os.close(far)
        seen = b""
        while True:
            try:
                piece = os.read(near, 65536)
            except OSError as error:
                assert error.errno == errno.EIO
                break
            if not piece:
                break
            seen += piece
        code = process.wait(60)
    os.close(near)
    return code, seen.decode().replace("\r\n", "\n")


@pytest.mark.parametrize("name", sorted(path.name for path in FOLDER.glob("*.md")))
def test_transcript(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    steps = steps_of((FOLDER / name).read_text())
    assert steps
    if not any(step.command == STOPS for step in steps):
        play(name, steps, request.getfixturevalue("node"), tmp_path, {})
        return
    relay = Relay(tmp_path / "relay")
    relay.start()
    try:
        play(name, steps, relay.server, tmp_path, {STOPS: relay.kill, STARTS: relay.start})
    finally:
        relay.kill()


def play(
    name: str, steps: list[Step], node: str, tmp_path: Path, relay: dict[str, Callable[[], None]]
) -> None:
    """Run the steps of a transcript. `relay`: what stops and starts the relay at `node`."""
    tools = tmp_path / "bin"
    tools.mkdir()
    if name in INTERPRETED:
        (tools / "svc").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m svc "$@"\n')
        (tools / "svc").chmod(0o755)
    else:
        forks.program(tools, forks.forking())
    known = {"server": node}
    for step in steps:
        if step.command in relay:
            relay[step.command]()
            continue
        folder = tmp_path / step.machine
        (folder / "work").mkdir(parents=True, exist_ok=True)
        environment = clean_environment(
            SVC_HOME=str(folder / "home"),
            HOME=str(folder),
            PATH=f"{tools}:{os.environ['PATH']}",
            TERM="dumb",
            COLUMNS="110",
            LC_ALL="C.UTF-8",
        )
        command = filled(step.command, known)
        where = folder / "where"
        start = Path(where.read_text()) if where.exists() else folder / "work"
        code, out = on_terminal(f"{command}\ncode=$?; pwd > {where}.new; exit $code", environment, start)
        where.write_text(Path(f"{where}.new").read_text().strip())
        found = pattern_of(step.expected, known).fullmatch(out)
        shown = (
            f"{name}: $ {command}\n--- expected\n"
            + "\n".join(step.expected)
            + f"\n--- printed, exit {code}\n{out}"
        )
        assert found, shown
        assert code == step.code, shown
        known |= {key.replace("_", "-"): value for key, value in found.groupdict().items()}
