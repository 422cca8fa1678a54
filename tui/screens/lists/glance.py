"""The preview of a repository: its newest seals, the checks of the newest seal, and its README."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, TypeVar

from localstore.core.model.check import SealChecks
from localstore.core.model.history import Blob, SealSummary, Tree
from localstore.core.model.repo import Repo
from localstore.core.words import count, first_line
from tui import contents, reads
from tui.reads import Read
from tui.screens.code.overview import READMES
from tui.screens.facts import fact_rows
from tui.screens.first_steps import first_seal, missing
from tui.screens.proposal.words import checks_of, sign_of_check
from tui.text import Part, ago, brief, fold, safe
from tui.texts import beginning, is_markdown
from tui.widgets.lines import Item

if TYPE_CHECKING:
    from tui.markdown.words import Row
    from tui.screens.split import Panes

Line = tuple[Part, ...]
T = TypeVar("T")
SEALS = 5  # that are previewed
TOP, SIZE = 100, 4 * 1024  # lines and characters of a README that are previewed


def seal_line(seal: SealSummary, now: float) -> Line:
    """Returns a seal as one line of a list: the beginning of its id, the first line of its message, its
    author, and its age."""
    return (
        (f"{seal.id[:8]} ", "accent"),
        (safe(first_line(seal.message)), "text"),
        (f"  @{safe(seal.provenance.who.handle or '?')} {brief(seal.created_at, now)}", "dim"),
    )


class Glance:
    """The preview of a repository. Its parts are requested one after the other. Each appears as soon as it
    has arrived."""

    def __init__(
        self,
        panes: Panes,
        key: Hashable,
        repo_id: str,
        first: Sequence[Line] = (),
        on_checks: Callable[[str, Part], None] | None = None,
        facts: Sequence[Item] = (),
    ) -> None:
        """Preview the repository of a row. `panes`: the screen with the list and the preview. `key`: the key
        of the row. `first`: rows at the top of the preview. `on_checks`: called with the id of the repository
        and the state of the checks of its default branch. `facts`: rows above the facts about the
        repository."""
        self._panes, self._key, self._repo_id = panes, key, repo_id
        self._first, self._on_checks = first, on_checks
        self._given_facts = facts
        self._repo: Repo | None = None
        self._seals: list[SealSummary] = []
        self._is_empty = False  # whether nothing is sealed on its default branch yet
        self._checks: SealChecks | None = None
        self._readme: Blob | None = None

    def begin(self) -> None:
        self._load(reads.repo(self._repo_id), self._paint_repo, self._miss_repo)

    def _load(
        self,
        read: Read[T],
        paint: Callable[[T, float], None],
        failed: Callable[[BaseException], None] | None = None,
    ) -> None:
        """Make a request for the preview. Does nothing if the cursor has left the row. `paint`: called with
        the answer, and with the time at which it was read. `failed`: called with the error if there is no
        answer."""
        if self._panes.is_attached and self._panes.listed.key == self._key:
            self._panes.front.svc.load(read, paint, failed)

    def _miss_repo(self, error: BaseException) -> None:
        if self._repo is None:
            self._panes.show_preview(
                self._key, "", [*self._first, *missing(error, self._panes.preview_width)], self._given_facts
            )

    def _paint_repo(self, repo: Repo, at: float) -> None:
        before, self._repo = self._repo, repo
        if repo != before:
            self._paint()
        if before is None:
            self._load(contents.recent(self._repo_id, repo.default_branch), self._paint_seals)

    def _paint_seals(self, seals: list[SealSummary], at: float) -> None:
        if not seals and not self._is_empty:
            self._is_empty = True
            self._paint()
        if not seals or seals == self._seals:
            return
        self._seals, self._is_empty = seals, False
        self._paint()
        self._load(contents.tree(self._repo_id, seals[0].id), self._paint_tree)
        self._load(contents.seal_checks(self._repo_id, seals[0].id), self._paint_checks)

    def _paint_checks(self, checks: SealChecks, at: float) -> None:
        before, self._checks = self._checks, checks
        if self._on_checks is not None:
            self._on_checks(self._repo_id, checks_of(checks.rollup, checks.items))
        if checks != before:
            self._paint()

    def _paint_tree(self, tree: Tree, at: float) -> None:
        entry = next((listed for listed in tree.entries if listed.path.casefold() in READMES), None)
        if entry is not None:
            self._load(contents.file(self._repo_id, self._seals[0].id, entry.path), self._paint_readme)

    def _paint_readme(self, readme: Blob, at: float) -> None:
        self._readme = readme
        self._paint()

    def _paint(self) -> None:
        repo, panes = self._repo, self._panes
        if repo is None:
            return
        now, width = panes.front.svc.clock(), panes.preview_width
        rows: list[Row | Line] = [*self._first, *_head(repo, width)]
        if self._is_empty:
            rows += [(("", "text"),), *first_seal(repo.full_name)]
        if panes.facts_shown:
            rows += self._readme_rows(width)
            facts = [*self._given_facts, *self._facts(repo, now)]
            panes.show_preview(self._key, safe(repo.full_name), rows, facts)
            return
        if self._checks is not None:
            state = checks_of(self._checks.rollup, self._checks.items)
            rows += [((f"{safe(repo.default_branch)}  ", "dim"), state)] if state[0] else []
        rows += [(("", "text"),), *(seal_line(seal, now) for seal in self._seals[:SEALS])]
        panes.show_preview(self._key, safe(repo.full_name), [*rows, *self._readme_rows(width)])

    def _facts(self, repo: Repo, now: float) -> list[Item]:
        """Returns rows for the column of facts: the checks of the newest seal, the newest seals, and how many
        stars, watchers and forks there are."""
        checks = self._checks.items if self._checks is not None else ()
        counts = [(repo.stars, "star"), (repo.watchers, "watcher"), (repo.forks, "fork")]
        words = "  ".join(count(number, noun) for number, noun in counts if number)
        seals: list[Line] = []
        for seal in self._seals[:SEALS]:
            message = safe(first_line(seal.message))
            who = f"@{safe(seal.provenance.who.handle or '?')} {brief(seal.created_at, now)}"
            seals += [((message, "text"),), ((f"{seal.id[:8]}  ", "accent"), (who, "dim"))]
        return [
            *fact_rows(
                f"checks of {safe(repo.default_branch)}",
                *((sign_of_check(check), (f" {safe(check.name)}", "text")) for check in checks),
            ),
            *fact_rows("newest seals", *seals),
            *fact_rows("attention", [(words, "text")]),
            *fact_rows("pushed", [(ago(repo.updated_at, now), "text")]),
        ]

    def _readme_rows(self, width: int) -> list[Row | Line]:
        readme, texts = self._readme, self._panes.texts
        if readme is None or readme.encoding != "utf-8" or not readme.content or texts is None:
            return []
        text = beginning(readme.content, TOP, SIZE)
        rows: list[Row | Line] = [(("", "text"),)]
        if is_markdown(readme.path):
            return [*rows, *texts.rows(text, width, breaks=False)]
        return [*rows, *(((safe(line), "text"),) for line in text.split("\n"))]


def _head(repo: Repo, width: int) -> list[Line]:
    words = f"{repo.visibility} {repo.kind}"
    state = f", {repo.state}" if repo.state != "active" else ""
    rows = fold([(safe(repo.description), "text")], width) if repo.description else []
    return [*rows, ((words, "dim"), (state, "warn"), (f"  {safe(repo.default_branch)}", "accent"))]
