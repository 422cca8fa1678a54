"""Checks what the service specification states, by commands of svc and HTTP requests: `python -m scripts.rows
[PART...]`.

Each part is a file of this folder, `PART.rows`, and runs with its own relay. `env NAME=VALUE` sets a variable
of the relay, and a part with `edition NAME` runs only with a build of that edition. alice, bob and carol are
signed in with `svc`, each with a folder of their own; anon has no session. Each line is a step:

    IDS | WHO | EXPECTED | COMMAND | CHECK | CHECK …

COMMAND is the words of `svc`; or, after `$ `, a line for the shell in the person's folder; or a method and a
path, for a request without a session. EXPECTED is the exit code, or the status of the answer. CHECK is `has
REGEX` or `lacks REGEX`, about everything that was printed. `NAME= COMMAND` stores stdout for `{NAME}` in
later lines. IDS are the ids of the specification's statements that the step proves, with spaces between; `-`
stands for a step that only prepares other steps.

Prints `ID holds` or `ID fails: HOW` for each id, and exits with 1 if a step failed.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import httpx

from relay.base.edition import EDITION
from scripts.tour import ROOT, start_relay

PEOPLE = ("alice", "bob", "carol")
METHODS = ("GET", "PUT", "POST", "PATCH", "DELETE", "HEAD")
NAMED = re.compile(r"\{([A-Z][A-Z0-9_]*)\}")
USUAL = {"TR_RATE_LIMITS": "off", "TR_REPO_MERGE_ENABLED": "true"}
SVC = f"{shlex.quote(sys.executable)} -P -m svc"


class StepRunner:
    """What the steps of one file share: a relay's address, a folder for each person, and the stored outputs
    by name."""

    def __init__(self, base: Path, server: str) -> None:
        self.base, self.server = base, server
        self.kept = {"SERVER": server, "HOST": server.split("//")[1]}

    def enter(self) -> None:
        for name in (*PEOPLE, "anon"):
            (self.base / name).mkdir()
        for name in PEOPLE:
            code, _, said = self.do(name, f"login --device-key --handle {name}")
            if code:
                raise SystemExit(f"{name} cannot sign in: {said}")

    def do(self, who: str, command: str) -> tuple[int, str, str]:
        """Run a command as the person `who`. Returns (exit code or status, stdout, everything that was
        printed)."""
        command = NAMED.sub(lambda m: self.kept.get(m[1], m[0]), command)
        method, _, path = command.partition(" ")
        if method in METHODS:
            answer = httpx.request(method, self.server + path, trust_env=False, timeout=60)
            return answer.status_code, answer.text, answer.text
        line = command[2:] if command.startswith("$ ") else f"svc {command}"
        folder = self.base / who / "demo"
        done = subprocess.run(
            ["bash", "-c", f'svc() {{ {SVC} "$@"; }}\n{line}'],
            cwd=folder if folder.is_dir() else self.base / who,
            env={
                **{key: value for key, value in os.environ.items() if not key.startswith("SVC_")},
                "SVC_HOME": str(self.base / f"{who}.home"),
                "SVC_SERVER": self.server,
                "PYTHONPATH": str(ROOT),
                "PYTHON_KEYRING_BACKEND": "keyring.backends.null.Keyring",
                "EDITOR": "false",
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=180,
        )
        return done.returncode, done.stdout, done.stdout + done.stderr

    def step(self, line: str, loud: bool) -> tuple[list[str], str]:
        """Run one line of a file of steps. `loud`: print the command with its output. Returns (ids of the
        statements that the line proves, what failed or "")."""
        ids, who, expected, command, *checks = re.split(r"\s\|\s", line.strip())
        name, _, rest = command.partition("= ")
        keep = name if re.fullmatch(r"[A-Z][A-Z0-9_]*", name) else ""
        code, output, said = self.do(who, rest if keep else command)
        if keep:
            self.kept[keep] = output.strip()
        if loud:
            print(f"    {who} {command} → {code}\n{said.rstrip()[:2000]}", flush=True)
        wrong = [] if str(code) in expected.split(",") else [f"{code} instead of {expected}"]
        for check in checks:
            kind, _, pattern = check.partition(" ")
            pattern = re.sub(
                r"\{([A-Z][A-Z0-9_]*)\}", lambda m: re.escape(self.kept.get(m[1], m[0])), pattern
            )
            if bool(re.search(pattern, said, re.S)) is not (kind == "has"):
                wrong.append(check)
        how = f"{who}: {command}: {'; '.join(wrong)}: {' '.join(said.split())[:300]}" if wrong else ""
        return ([] if ids == "-" else ids.split()), how


def play_part(part: Path, loud: bool) -> Iterator[tuple[list[str], str]]:
    """Run the steps of the file `part` with a new relay. `loud`: print each command with its output. Yields,
    for each step, (ids of the statements that it proves, what failed or "")."""
    lines = [line for line in part.read_text().splitlines() if line.strip() and not line.startswith("#")]
    if any(line.startswith("edition ") and line.split()[1] != EDITION for line in lines):
        print(f"{part.stem} is not played: this build is {EDITION}", flush=True)
        return
    asked = dict(line[4:].split("=", 1) for line in lines if line.startswith("env "))
    os.environ.update(USUAL | asked)
    base = Path(tempfile.mkdtemp(prefix="svc-rows-"))
    relay, server = start_relay(base / "relay")
    try:
        runner = StepRunner(base, server)
        runner.enter()
        for line in lines:
            if not line.startswith(("env ", "edition ")):
                yield runner.step(line, loud)
    finally:
        relay.terminate()
        relay.wait(20)
        shutil.rmtree(base, ignore_errors=True)
        for name in asked:
            del os.environ[name]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m scripts.rows", description=__doc__.splitlines()[0])
    here = Path(__file__).parent
    parts = sorted(path.stem for path in here.glob("*.rows"))
    parser.add_argument("part", nargs="*", default=parts, choices=parts)
    parser.add_argument("-v", "--verbose", action="store_true", help="print what each command says")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the relay is ended too
    failed: dict[str, str] = {}
    seen: dict[str, None] = {}
    for part in options.part:
        for ids, how in play_part(here / f"{part}.rows", options.verbose):
            seen |= dict.fromkeys(ids)
            if how:
                print(f"FAILS {how}", flush=True)
                for id in ids:
                    failed.setdefault(id, how)
    for id in seen:
        print(f"{id} fails: {failed[id]}" if id in failed else f"{id} holds")
    print(f"{len(seen)} rows: {len(seen) - len(failed)} hold, {len(failed)} fail")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
