"""Repeats merges that other people made: every file that both sides of a merge commit changed.

    python -m scripts.campaign.merges REPOSITORY... [--most 2000]

Walks the merge commits of local git repositories, newest first, and merges each file by svc's rule and with
`git merge-file`. If git merges it without conflict, svc must produce the same bytes. A difference is printed
and makes the exit code 1. Other results are only counted: files that git leaves as a conflict and svc merges,
how often svc's result is what people committed, Python files that no longer parse. The repositories are only
read.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from localstore.core.diff.text_merge import merge
from scripts.campaign.merge_cases import MergeCase, Repository
from scripts.campaign.merge_checks import breaks_python, strange_words

COLUMNS = {
    "merges": "merge commits with such files",
    "files": "files that both sides changed",
    "same": "both sides have the same bytes",
    "clean": "git is clean",
    "not committed": "… and people committed something else",
    "git's bytes": "… and we have the same bytes",
    "other bytes": "… and we have other bytes, or a conflict",
    "conflict": "git has a conflict",
    "joined": "… and we have none",
    "as committed": "… and people committed the same",
    "no Python": "Python files that parsed before, and not as we merged them",
    "strange": "joined files with a word that neither side wrote",
    "repeated": "joined files with a word more often than on either side",
    "skipped": "files that are not text",
}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("repository", nargs="+", type=Path)
    parser.add_argument("--most", type=int, help="merge commits of each repository to look at")
    parser.add_argument("--show", action="store_true", help="name the files that we join and git does not")
    asked = parser.parse_args()
    total: Counter[str] = Counter()
    found = []
    for path in asked.repository:
        with Repository(path) as repository:
            figures = _repeat_merges(repository, asked.most, asked.show)
        found.append((repository.name, figures))
        total += figures
        print(f"{repository.name}: {figures['files']} files", file=sys.stderr, flush=True)
    print("\n".join(_table([*found, ("all", total)])))
    return 1 if total["other bytes"] else 0


def _repeat_merges(repository: Repository, most: int | None, show: bool) -> Counter[str]:
    figures: Counter[str] = Counter()
    seen = None
    for case in repository.cases(most):
        figures["merges"] += case.commit != seen
        seen = case.commit
        for what in _judge_case(case, repository):
            figures[what] += 1
            if what == "other bytes" or (show and what == "joined"):
                print(f"{what}: {repository.name} {case.commit} {case.path}", flush=True)
    figures["skipped"] = repository.skipped
    return figures


def _judge_case(case: MergeCase, repository: Repository) -> Iterator[str]:
    """Yields the names of the columns of the table in which this file is counted."""
    yield "files"
    ours = merge(case.base, case.theirs, case.mine)
    if case.theirs == case.mine:
        yield "same"
    text = repository.merged_by_git(case)
    if text is not None:
        yield "clean"
        yield "git's bytes" if ours.text == text and not ours.conflicts else "other bytes"
        if text != case.committed:
            yield "not committed"
    else:
        yield "conflict"
    if text is None and not ours.conflicts:
        yield "joined"
        if ours.text == case.committed:
            yield "as committed"
        yield from strange_words(case, ours.text)
    if not ours.conflicts and ours.text != text and breaks_python(case, ours.text):
        yield "no Python"


def _table(found: list[tuple[str, Counter[str]]]) -> Iterator[str]:
    for number, (name, meaning) in enumerate(COLUMNS.items(), 1):
        yield f"{number:2} {name}: {meaning}"
    yield ""
    width = max(len(name) for name, _ in found)
    yield " " * width + "".join(f"{number:7}" for number in range(1, len(COLUMNS) + 1))
    for name, figures in found:
        yield name.ljust(width) + "".join(f"{figures[column]:7}" for column in COLUMNS)


if __name__ == "__main__":
    sys.exit(main())
