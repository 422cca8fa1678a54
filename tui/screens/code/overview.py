"""The overview of a repository: its README, latest seal, state, catalog listing, stars and watchers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual.app import ComposeResult

from localstore.core.model.check import SealChecks
from localstore.core.model.history import Blob, SealSummary, Tree
from localstore.core.model.listing import Listing
from localstore.core.model.repo import Repo
from svc.flows.git.address import git_address
from tui import contents, reads
from tui.highlight import ColouredText, colour_text, plain
from tui.screens.base import THREE_PANES, TWO_PANES
from tui.screens.code.words import counts, describe_listing
from tui.screens.facts import FACTS, FRAME, Facts, beside_facts, fact_rows, facts_width, frame, wrap_facts
from tui.screens.proposal.words import sign_of_check
from tui.screens.view import View
from tui.text import Part, ago, fold, safe
from tui.texts import Texts, is_markdown, item, linked_path
from tui.widgets.lines import Item, Lines, sequence
from tui.widgets.made import LazyRows

if TYPE_CHECKING:
    from tui.markdown.words import Row as TextRow
    from tui.screens.repo_page import RepoPage

SEALS = 5  # that stand beside the README
TEXT = 96  # columns of a README at most
FOLDED = 2000  # lines of a README; longer ones are cut at the edge, so that a resize stays quick
NAMED = ("listing", "git clone")  # facts that need their name in a line
NO_README: tuple[tuple[Part, ...], ...] = ((("no README; a file README.md is shown here", "dim"),),)
READMES = ("readme.md", "readme", "readme.txt", "readme.rst")


class Overview(View):
    OF_SEAL = True
    DEFAULT_CSS = "Overview #overview { padding: 0 1; }"

    def __init__(self, of: RepoPage) -> None:
        super().__init__(of)
        self._repo = of.repo
        self._listing: Listing | None = None
        self._seal: SealSummary | None = None
        self._checks: SealChecks | None = None
        self._seals: list[SealSummary] = []  # the newest of the shown branch
        self._text = ""  # of the README
        self._path = ""
        self._lines: Sequence[tuple[Part, ...]] = ()  # of one that is no Markdown
        self._readme: Sequence[TextRow | tuple[Part, ...]] = ()  # its rows
        self.texts: Texts = Texts(self, self._fold)

    def compose(self) -> ComposeResult:
        yield from beside_facts(Lines(marked=False, linked=True, id="overview"))

    def on_mount(self) -> None:
        self.load_seal()

    def open_tab(self) -> None:
        self.do_refresh()

    def do_refresh(self) -> None:
        self.svc.load(reads.repo(self._repo.id), self._paint_repo)

    def _paint_repo(self, repo: Repo, at: float) -> None:
        self._repo = repo
        if repo.listing_id is None:
            self._listing = None
        else:
            self.svc.load(contents.listing(repo.id), self._paint_listing)
        self.paint()

    def _paint_listing(self, listings: list[Listing], at: float) -> None:
        self._listing = listings[0] if listings else None
        self.paint()

    def load_seal(self) -> None:
        repo, seal = self.of.repo, self.of.seal
        self.paint()
        if seal is None:
            return
        self.svc.load(contents.seal(repo.id, seal), self._paint_seal)
        self.svc.load(contents.tree(repo.id, seal), self._paint_tree)
        self.svc.load(contents.seal_checks(repo.id, seal), self._paint_checks)
        if self.app.size.width >= THREE_PANES:
            self.svc.load(contents.recent(repo.id, self.of.ref_name), self._paint_seals)

    def _paint_seals(self, seals: list[SealSummary], at: float) -> None:
        self._seals = seals
        self.paint()

    def _newest(self) -> list[Item]:
        """Returns the newest seals of the branch, and the numbers of branches and tags, as rows for the
        column of facts."""
        seals: list[tuple[Part, ...]] = []
        for seal in self._seals[:SEALS]:
            message = safe(seal.message.partition("\n")[0])
            who = f"@{safe(seal.provenance.who.handle or '?')} {ago(seal.created_at, self.svc.clock())}"
            seals += [((message, "text"),), ((f"{seal.id[:8]}  ", "accent"), (who, "dim"))]
        kinds = Counter(ref.type for ref in self.of.refs)
        words = f"{kinds['branch']} branch{'' if kinds['branch'] == 1 else 'es'}"
        words += f", {kinds['tag']} tag{'' if kinds['tag'] == 1 else 's'}" if kinds["tag"] else ""
        return [*fact_rows("newest seals", *seals), *fact_rows("refs", [(words, "text")] if kinds else [])]

    def _paint_seal(self, seal: SealSummary, at: float) -> None:
        self._seal = seal
        self.paint()

    def _paint_checks(self, checks: SealChecks, at: float) -> None:
        self._checks = checks
        self.paint()

    def _check_facts(self) -> list[Item]:
        """Returns the checks of the shown seal, as rows for the column of facts."""
        checks = self._checks
        if checks is None or checks.seal_id != self.of.seal:
            return []
        lines = [(sign_of_check(check), (f" {safe(check.name)}", "text")) for check in checks.items]
        return fact_rows("checks", *lines)

    def _paint_tree(self, tree: Tree, at: float) -> None:
        repo, seal = self.of.repo, self.of.seal
        readme = next((entry for entry in tree.entries if entry.path.casefold() in READMES), None)
        if readme is None or seal is None:
            self._text, self._path, self._lines = "", "", NO_README
            self._fold()
            return
        self.svc.load(contents.file(repo.id, seal, readme.path), self._paint_readme)

    def _paint_readme(self, blob: Blob, at: float) -> None:
        text = blob.content if blob.encoding == "utf-8" and blob.content else ""
        before, self._text = self._text, text
        if text == before:  # asked again after a push that left it
            return
        self._path, self._lines = blob.path, plain(text)
        self._fold()
        if is_markdown(blob.path):
            return

        def work() -> None:
            lines = colour_text(text, blob.path)
            if lines is not None:
                self.app.call_from_thread(self._paint_colours, text, lines)

        self.app.run_worker(work, thread=True, group="readme", exclusive=True, exit_on_error=False)

    def _paint_colours(self, text: str, lines: ColouredText) -> None:
        if text == self._text and self.is_attached:
            self._lines = lines
            self._fold()

    def path_of(self, target: str) -> str | None:
        return linked_path(self._path, target)

    def on_resize(self) -> None:
        self._fold()

    @property
    def _has_facts(self) -> bool:
        """Whether there is room for the column of facts."""
        return self.app.size.width >= TWO_PANES

    @property
    def _facts_width(self) -> int:
        """The width of the column of facts, with its frame, in columns of the terminal."""
        return facts_width(self.app.size.width) if self.app.size.width >= THREE_PANES else FACTS

    def _place_frames(self) -> None:
        """Draw the frames of the README and of the facts. The one with the focus is bright."""
        facts, readme = self.query_one("#facts", Facts), self.query_one("#overview", Lines)
        facts.styles.width = self._facts_width
        frame(readme, safe(self._path), not facts.has_focus, self._has_facts)
        frame(facts, "facts", facts.has_focus, self._has_facts)

    def on_descendant_focus(self) -> None:
        self._place_frames()

    def on_descendant_blur(self) -> None:
        self._place_frames()

    def _fold(self) -> None:
        """Make the rows of the README for the present width. Long lines are wrapped."""
        beside = self._facts_width + 2 if self._has_facts else 0
        width = max(20, min(TEXT, self.size.width - 2 - beside))
        if is_markdown(self._path):
            self._readme = self.texts.rows(self._text, width, breaks=False)
        elif len(self._lines) > FOLDED:
            self._readme = self._lines
        else:
            self._readme = [row for line in self._lines for row in fold(line, width)]
        self.paint()

    def paint(self) -> None:
        repo = self._repo
        about: Part = (safe(repo.description) or "no description", "text" if repo.description else "dim")
        facts: list[tuple[str, tuple[Part, ...]]] = [
            ("about", (about,)),
            (
                "kind",
                (
                    (f"{repo.visibility} {repo.kind}", "text"),
                    (f", {repo.state}" if repo.state != "active" else "", "warn"),
                ),
            ),
            ("attention", _attention(repo)),
        ]
        if self._listing is not None:
            facts.append(("listing", ((describe_listing(self._listing), "text"),)))
        if address := git_address(repo, self.svc.client.origin):
            facts.append(("git clone", ((safe(address), "text"),)))
        if self._seal is not None:
            message, _, _ = self._seal.message.partition("\n")
            who = safe(self._seal.provenance.who.handle or "?")
            newest: tuple[Part, ...] = (
                (f"{self._seal.id[:8]} ", "accent"),
                (f"«{safe(message)}» ", "text"),
                (f"@{who} {ago(self._seal.created_at, self.svc.clock())}", "dim"),
            )
            facts.append(("newest seal", newest))
        elif self.of.seal is None and self.of.read:
            how = "nothing is sealed yet; in a folder: svc repo init, svc push -m MESSAGE"
            facts.append(("newest seal", ((how, "dim"),)))
        column = self.query_one("#facts", Facts)
        column.display = self._has_facts
        self._place_frames()
        first: list[tuple[Part, ...]] = []
        if self._has_facts:
            items = [row for name, fact in facts for row in fact_rows(name, fact)]
            items += [*self._check_facts(), *self._newest()]
            column.show(sequence(wrap_facts(items, self._facts_width - FRAME)))
        else:
            first = [((f"{name} ", "dim"), *fact) if name in NAMED else fact for name, fact in facts]
            first.append((("", "text"),))
        above, readme = len(first), self._readme

        def row(place: int) -> Item:
            return item(place, first[place] if place < above else readme[place - above])

        rows = LazyRows(range(above + len(readme)), row, lambda place: place)
        self.query_one("#overview", Lines).show(rows)


def _attention(repo: Repo) -> tuple[Part, ...]:
    """Returns the counts of a repository (stars, watchers and forks) as parts. They also say whether the
    account has starred the repository or watches it."""
    viewer = repo.viewer
    own = (("starred", viewer.starred), ("watching", viewer.watching)) if viewer is not None else ()
    mine = " and ".join(word for word, holds in own if holds)
    return (counts(repo), "text"), (f"  you: {mine}" if mine else "", "dim")
