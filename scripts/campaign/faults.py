"""Puts ten faults into the sources, one at a time, and checks that the chosen tests find each.

python -m scripts.campaign.faults [NAME …]

There are two faults in each room. For each fault, the tests that `./scripts/test` would choose after that
change run, the nearest first, until one fails; then the file is restored. A fault that none of these tests
finds counts as a failure. The files with faults must have no uncommitted changes, and nothing else may use
this checkout meanwhile.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from typing import NamedTuple

from scripts.chosen_tests import ROOT, choose, distances, test_files


class Fault(NamedTuple):
    """A fault to put into a file: the text `right`, which the file has exactly once, is replaced by
    `wrong`."""

    name: str
    file: str
    right: str
    wrong: str


FAULTS = (
    Fault(
        "svc-rounds",
        "svc/agent/rounds.py",
        "self._state.due.paths_to_resend.update(held_paths)",
        "self._state.due.paths_to_resend.update(held_paths[1:])",
    ),
    Fault(
        "svc-age",
        "svc/console/table.py",
        'return f"in {distance}" if ahead else f"{distance} ago"',
        'return f"{distance} ago" if ahead else f"in {distance}"',
    ),
    Fault(
        "tui-filters",
        "tui/filters.py",
        'words[name] = value.removeprefix("@") if',
        "words[name] = value if",
    ),
    Fault(
        "tui-safe",
        "tui/text.py",
        'return terminal_safe(text.replace("\\t", " " * TAB).replace("\\n", " "), keep="\\u200d\\u200c")',
        'return text.replace("\\t", " " * TAB).replace("\\n", " ")',
    ),
    Fault(
        "relay-label",
        "relay/domain/discussion/label.py",
        "return text[-6:].lower()",
        "return text.lower()",
    ),
    Fault(
        "relay-keyset",
        "relay/db/engine/keyset.py",
        "return columns < there if descending else columns > there",
        "return columns > there if descending else columns < there",
    ),
    Fault(
        "localstore-removals",
        "localstore/core/removals.py",
        "removed * 2 > tree",
        "removed * 2 >= tree",
    ),
    Fault(
        "localstore-names",
        "localstore/core/names.py",
        '_REF_FORBIDDEN = frozenset(" ~^:?*[\\\\")',
        '_REF_FORBIDDEN = frozenset(" ~^:?*[")',
    ),
    Fault(
        "llm-guard",
        "llm/guard.py",
        "if not _HOST.fullmatch(host):",
        "if not _HOST.match(host):",
    ),
    Fault(
        "llm-cutting",
        "llm/cutting.py",
        "del messages[old]",
        "del messages[-1]",
    ),
)


def main() -> int:
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # the source is put back
    names = sys.argv[1:]
    if unknown := set(names) - {fault.name for fault in FAULTS}:
        sys.exit(f"no such fault: {', '.join(sorted(unknown))}")
    unfound = [fault.name for fault in FAULTS if (not names or fault.name in names) and not is_found(fault)]
    print(f"not found: {', '.join(unfound)}" if unfound else "all were found")
    return 1 if unfound else 0


def is_found(fault: Fault) -> bool:
    """Whether one of the chosen test files fails when the fault is in the sources. Raises ValueError if the
    fault does not fit the file."""
    path = ROOT / fault.file
    source = path.read_bytes()
    if subprocess.run(["git", "diff", "--quiet", "HEAD", "--", fault.file], cwd=ROOT).returncode != 0:
        raise ValueError(f"{fault.file} has changes; commit them first")
    if source.count(fault.right.encode()) != 1:
        raise ValueError(f"{fault.file} does not hold this once: {fault.right}")
    tests = test_files(ROOT)
    distance = distances([fault.file], tests)
    chosen = choose([fault.file], distance).files
    chosen.sort(key=lambda file: distance.get(file, len(tests)))  # those that every change runs come last
    began = time.monotonic()
    try:
        path.write_bytes(source.replace(fault.right.encode(), fault.wrong.encode()))
        for number, file in enumerate(chosen, 1):
            run = [sys.executable, "-m", "pytest", "-q", "-x", file]
            if subprocess.run(run, cwd=ROOT, stdout=subprocess.DEVNULL).returncode == 1:
                print(f"{fault.name}: {file}, {number} of {len(chosen)}, {time.monotonic() - began:.0f} s")
                return True
    finally:
        path.write_bytes(source)
    print(f"{fault.name}: none of {len(chosen)} files failed")
    return False


if __name__ == "__main__":
    sys.exit(main())
