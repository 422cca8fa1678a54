"""The overview of a repository: its README, latest seal, state, catalog listing, stars and watchers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from textual.app import ComposeResult

from localstore.core.model.check import SealChecks
from localstore.core.model.history import Blob, SealSummary, Tree
from localstore.core.model.listing import Listing
from localstore.core.model.protection import Protection
from localstore.core.model.release import Release
from localstore.core.model.repo import Repo
from localstore.core.words import count, first_line
from svc.flows.git.address import git_address
from svc.flows.place.rights import refusal
from tui import contents, reads
from tui.actions import Action
from tui.highlight import ColouredText, colour_text, plain
from tui.screens.base import THREE_PANES, TWO_PANES
from tui.screens.code.clipboard import copy
from tui.screens.code.words import SEARCH, counts, describe_listing
from tui.screens.facts import FACTS, FRAME, Facts, beside_facts, facts_width, frame, wrap_facts
from tui.screens.first_steps import first_seal
from tui.screens.proposal.words import checks_of, sign_of_check
from tui.screens.view import View
from tui.text import Part, ago, cut_middle, fold, safe
from tui.texts import Texts, is_markdown, item, linked_path
from tui.widgets.lines import Item, Lines, sequence
from tui.widgets.made import LazyRows

if TYPE_CHECKING:
    from tui.markdown.words import Row as TextRow
    from tui.screens.repo_page import RepoPage

SEALS = 5  # that stand beside the README
TEXT = 96  # columns of a README at most
FOLDED = 2000  # lines of a README; longer ones are cut at the edge, so that a resize stays quick
NO_README: tuple[tuple[Part, ...], ...] = ((("no README; a file README.md is shown here", "dim"),),)
READMES = ("readme.md", "readme", "readme.txt", "readme.rst")


GO = "\0go:"  # begins the target of a fact's link; no link of a README has a NUL
# Where a fact leads → what enter does there.
LEADS = {
    "seal": "open the seal",
    "checks": "open the checks",
    "releases": "open the releases",
    "rules": "open the rules",
    "branches": "choose a branch",
    "clone": "copy the line",
    "attention": "star, watch or fork",
}
TABS = {"checks": 4, "releases": 5, "rules": 6}  # numbers of the tabs that list these
ORDER = ("fail", "cancel", "pending")  # states of checks that are listed first


class Fact(NamedTuple):
    """A fact about the repository. `lines`: its rows. `goes`: where enter leads from its first row, a name in
    LEADS; "" if it leads nowhere."""

    name: str
    lines: tuple[tuple[Part, ...], ...]
    goes: str = ""


class Overview(View):
    OF_SEAL = True
    ACTIONS = (
        Action("newest", ("o",), "newest seal", "svc show {seal}", footer=True),
        Action("facts", ("f",), "facts", footer=True),
        Action("find_file", ("t",), "find file", footer=True),
        Action("search_files", ("F",), "search in all files", footer=True),
        Action("history", ("h",), "history", "svc log", footer=True),
        Action("pane", ("tab",), "next link or pane", footer=True),
        Action("copy", ("y",), "copy the line to clone it", "svc repo clone {repo}"),
        Action("attention", ("asterisk",), "star, watch or fork"),
    )
    DEFAULT_CSS = "Overview #overview { padding: 0 1; }"

    def __init__(self, of: RepoPage) -> None:
        super().__init__(of)
        self._repo = of.repo
        self._listing: Listing | None = None
        self._seal: SealSummary | None = None
        self._checks: SealChecks | None = None
        self._seals: list[SealSummary] = []  # the newest of the shown branch
        self._releases: list[Release] | None = None
        self._rules: list[Protection] | None = None
        self._text = ""  # of the README
        self._path = ""
        self._is_unread = False  # whether its place says that it could not be read
        self._lines: Sequence[tuple[Part, ...]] = ()  # of one that is no Markdown
        self._readme: Sequence[TextRow | tuple[Part, ...]] = ()  # its rows
        self._has_links = False  # whether the README has any
        self.texts: Texts = Texts(self, self._fold)

    def compose(self) -> ComposeResult:
        yield from beside_facts(Lines(marked=False, linked=True, id="overview"))

    def on_mount(self) -> None:
        self._column.linked = True
        self.load_seal()

    @property
    def _column(self) -> Facts:
        return self.query_one("#facts", Facts)

    @property
    def opens(self) -> bool:
        return bool(self.of.lines and self.of.lines.target)

    def label_of(self, action: Action) -> str:
        """Returns the label of an action in the line of keys. Without a seal there are no files."""
        if action.id in ("newest", "find_file", "search_files", "history") and self.of.seal is None:
            return ""
        on_facts = self._column.has_focus
        if action.id == "facts" and on_facts:
            return "README"
        if action.id == "pane":
            links = self._has_links or not self._has_facts
            return "next fact or README" if on_facts else "next link" if links else "facts"
        return SEARCH if action.id == "search_files" else action.label

    def link_label(self, target: str) -> str:
        return LEADS.get(target.removeprefix(GO), "")

    def open_tab(self) -> None:
        self.do_refresh()

    def do_refresh(self) -> None:
        self.svc.load(reads.repo(self._repo.id), self._paint_repo)
        self.svc.load(contents.releases(self._repo.id), self._paint_releases)
        if not refusal("protection.list", self._repo):
            self.svc.load(contents.protections(self._repo.id), self._paint_rules)

    def _paint_releases(self, releases: list[Release], at: float) -> None:
        self._releases = releases
        self.paint()

    def _paint_rules(self, rules: list[Protection], at: float) -> None:
        self._rules = rules
        self.paint()

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

    @property
    def _is_empty(self) -> bool:
        """Whether nothing is sealed on the branch yet."""
        return self.of.read and self.of.seal is None

    def say_unread(self, text: str) -> None:
        if not self._is_empty and not self._text and self._lines is not NO_README:
            self._path, self._lines, self._is_unread = "", (((safe(text), "dim"),),), True
            self._fold()

    def load_seal(self) -> None:
        repo, seal = self.of.repo, self.of.seal
        self.paint()
        if seal is None:
            if self._is_empty:
                self._text, self._path, self._is_unread = "", "", True
                self._lines = first_seal(repo.full_name)
                self._fold()
            return
        self.svc.load(contents.seal(repo.id, seal), self._paint_seal)
        self.svc.load(contents.tree(repo.id, seal), self._paint_tree)
        self.svc.load(contents.seal_checks(repo.id, seal), self._paint_checks)
        if self.app.size.width >= THREE_PANES:
            self.svc.load(contents.recent(repo.id, self.of.ref_name), self._paint_seals)

    def _paint_seals(self, seals: list[SealSummary], at: float) -> None:
        self._seals = seals
        self.paint()

    def _newest(self) -> Fact:
        """Returns the seals below the newest one."""
        seals: list[tuple[Part, ...]] = []
        for seal in self._seals[1:SEALS]:
            message = safe(first_line(seal.message))
            who = f"@{safe(seal.provenance.who.handle or '?')} {ago(seal.created_at, self.svc.clock())}"
            seals += [((message, "text"),), ((f"{seal.id[:8]}  ", "accent"), (who, "dim"))]
        return Fact("seals before it", tuple(seals))

    def _branches(self) -> Fact:
        kinds = Counter(ref.type for ref in self.of.refs)
        words = [count(kinds["branch"], "branch", "branches")]
        words += [count(kinds["tag"], "tag")] if kinds["tag"] else []
        return Fact("branches", (((", ".join(words), "link"),),) if kinds else (), "branches")

    def _paint_seal(self, seal: SealSummary, at: float) -> None:
        self._seal = seal
        self.paint()

    def _paint_checks(self, checks: SealChecks, at: float) -> None:
        self._checks = checks
        self.paint()

    def _check_fact(self) -> Fact:
        """Returns the checks of the shown seal. The first row sums them up."""
        checks = self._checks
        if checks is None or checks.seal_id != self.of.seal or not checks.items:
            return Fact("checks", ())
        words, role = checks_of(checks.rollup, checks.items)
        items = sorted(checks.items, key=lambda item: (*ORDER, item.state).index(item.state))
        each = [(sign_of_check(check), (f" {safe(check.name)}", "text")) for check in items]
        counted = count(len(checks.items), "check")
        return Fact("checks", (((counted, "link"), (f" {words}", role)), *each), "checks")

    def _release_fact(self) -> Fact:
        releases = self._releases or []
        if not releases:
            return Fact("releases", ())
        newest: tuple[Part, ...] = (
            (safe(releases[0].version), "link"),
            (f" {ago(releases[0].created_at, self.svc.clock())}", "dim"),
            (f", {len(releases) - 1} before it" if len(releases) > 1 else "", "dim"),
        )
        return Fact("newest release", (newest,), "releases")

    def _rule_fact(self) -> Fact:
        rules = self._rules
        if rules is None:
            return Fact("rules", ())
        words = ", ".join(safe(rule.pattern) for rule in rules) if rules else "none"
        role = "text" if rules else "dim"
        counted = count(len(rules), "rule")
        return Fact(
            "protection rules", (((counted, "link"), (f"  {words}" if rules else "", role)),), "rules"
        )

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
        if text == before and not self._is_unread:  # asked again after a push that left it
            return
        self._is_unread = False
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
        frame(
            readme,
            "first steps" if self._is_empty else safe(self._path),
            not facts.has_focus,
            self._has_facts,
        )
        frame(facts, "facts", facts.has_focus, self._has_facts)
        self._say_more()

    def _say_more(self) -> None:
        """Say in the frame of the facts how many rows are hidden below the visible ones."""
        column = self._column
        if self._has_facts and column.size.height:
            hidden = len(column.rows) - column.top - column.fits - 1  # the last row is empty
            column.name_frame("facts", f"↓ {hidden} more" if hidden > 0 else "")

    def on_lines_moved(self, event: Lines.Moved) -> None:
        self._say_more()

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
        self._has_links = any(getattr(row, "targets", ()) for row in self._readme)
        self.paint()

    def paint(self) -> None:
        column = self._column
        column.display = self._has_facts
        self._place_frames()
        first: list[Item] = []
        if self._has_facts:
            column.show(sequence(self._column_rows()))
            self.call_after_refresh(self._say_more)
        else:
            first = self._first_rows()
        above, readme = len(first), self._readme

        def row(place: int) -> Item:
            return first[place] if place < above else item(place, readme[place - above])

        rows = LazyRows(range(above + len(readme)), row, lambda place: place)
        self.query_one("#overview", Lines).show(rows)

    def _column_rows(self) -> list[Item]:
        """Returns the rows of the column of facts. The first row of a fact that leads somewhere is a link."""
        rows: list[Item] = []
        for name, lines, goes in self._facts():
            lines = tuple(line for line in lines if any(text.strip() for text, _ in line))
            if not lines:
                continue
            rows.append(Item(None, ((name, "dim"),)))
            wrapped = wrap_facts([Item(None, line) for line in lines], self._facts_width - FRAME)
            if goes:
                wrapped[0] = Item((name, goes), wrapped[0].left, targets=(GO + goes,))
            rows += [*wrapped, Item(None, (("", "text"),))]
        return rows

    def _facts(self) -> list[Fact]:
        """Returns the facts about the repository, in the order of the column."""
        return [
            Fact("about", (self._about(),)),
            Fact("kind", (self._kind(),)),
            Fact("attention", (_attention(self._repo),), "attention"),
            Fact("listing", (((describe_listing(self._listing), "text"),),) if self._listing else ()),
            Fact("git clone", (((self._short_address, "link"),),) if self._address else (), "clone"),
            self._seal_fact(),
            self._check_fact(),
            self._release_fact(),
            self._rule_fact(),
            self._newest(),
            self._branches(),
        ]

    def _first_rows(self) -> list[Item]:
        """Returns the rows above the README on a screen without room for the column of facts."""
        seal = self._seal_fact()
        rows: list[tuple[tuple[Part, ...], tuple[str, ...]]] = [
            (self._about(), ()),
            ((*self._kind(), ("  ", "text"), *_attention(self._repo)), ("attention",)),
        ]
        if self._listing is not None:
            rows.append(((("listing ", "dim"), (describe_listing(self._listing), "text")), ()))
        if self._address:
            rows.append(((("git clone ", "dim"), (self._address, "link")), ("clone",)))
        rows += [(tuple(part for line in seal.lines for part in line), (seal.goes,) if seal.goes else ())]
        others = (self._check_fact(), self._release_fact(), self._rule_fact(), self._branches())
        leading = [fact for fact in others if fact.lines]
        parts: list[Part] = []
        for fact in leading:
            label = () if fact.goes != "releases" else (("release ", "dim"),)
            parts += [*([("  ", "text")] if parts else []), *label, *fact.lines[0][:2]]
        rows += [(tuple(parts), tuple(fact.goes for fact in leading)), ((("", "text"),), ())]
        return [
            Item(place, parts, targets=tuple(GO + goes for goes in targets))
            for place, (parts, targets) in enumerate(rows)
            if parts
        ]

    def _about(self) -> tuple[Part, ...]:
        about = self._repo.description
        return ((safe(about) or "no description", "text" if about else "dim"),)

    def _kind(self) -> tuple[Part, ...]:
        repo = self._repo
        state = f", {repo.state}" if repo.state != "active" else ""
        return ((f"{repo.visibility} {repo.kind}", "text"), (state, "warn"))

    @property
    def _address(self) -> str:
        """The address for git, "" if the repository has none."""
        return safe(git_address(self._repo, self.svc.client.origin) or "")

    @property
    def _short_address(self) -> str:
        """The address for git, cut in its middle if the column of facts has no room for it."""
        return cut_middle(self._address, self._facts_width - FRAME)

    def _seal_fact(self) -> Fact:
        seal = self._seal
        if seal is not None:
            message = first_line(seal.message)
            who = f"@{safe(seal.provenance.who.handle or '?')} {ago(seal.created_at, self.svc.clock())}"
            newest: tuple[Part, ...] = ((seal.id[:8], "link"), (f" «{safe(message)}» ", "text"))
            return Fact("newest seal", (newest, ((who, "dim"),)), "seal")
        if self._is_empty:
            return Fact("newest seal", ((("nothing is sealed yet", "dim"),),))
        return Fact("newest seal", ())

    # --- what leads on

    def go_to(self, target: str) -> bool:
        """Go where the link of a fact leads."""
        goes = target.removeprefix(GO)
        if not target.startswith(GO):
            return False
        if goes in TABS:
            self.of.lead_to_tab(TABS[goes])
        elif goes == "seal":
            self.do_newest()
        elif goes == "branches":
            self.of.do_ref()
        elif goes == "clone":
            self.do_copy()
        else:
            self.do_attention()
        return True

    def do_newest(self) -> None:
        """Open the seal that the screen shows."""
        from tui.screens.code.seal import SealScreen
        from tui.screens.code.seal_rows import names_of

        if self.of.seal is None:
            self.of.say("nothing is sealed yet", "warn")
        else:
            self.app.push_screen(SealScreen(self._repo, self.of.seal, names=names_of(self.of.refs)))

    def do_facts(self) -> None:
        """Move the cursor to the facts, or from there back to the README. On a screen without the column of
        facts, move it to the first fact above the README."""
        column, readme = self._column, self.query_one("#overview", Lines)
        if self._has_facts:
            self.of.set_focus(readme if column.has_focus else column)
        else:
            readme.go(0)
            readme.step_link()
            self.of.show_keys()

    def do_find_file(self) -> None:
        self.of.act_in_code("do_find_file")

    def do_search_files(self) -> None:
        self.of.act_in_code("do_search_files")

    def do_history(self) -> None:
        self.of.act_in_code("show_history_of_branch")

    def do_copy(self) -> None:
        """Copy the command line that clones the repository."""
        words = f"git clone {self._address}" if self._address else f"svc repo clone {self._repo.full_name}"
        copy(self.of, words)

    def do_attention(self) -> None:
        """Let the user choose whether to star, watch or fork the repository."""
        from tui.screens.choose import Choose

        repo, viewer = self._repo, self._repo.viewer
        starred, watching = (viewer.starred, viewer.watching) if viewer is not None else (False, False)
        ways = {
            "repo unstar" if starred else "repo star": "take the star back" if starred else "star it",
            "repo unwatch" if watching else "repo watch": "watch it no longer" if watching else "watch it",
            "repo fork": "fork it",
        }

        def chosen(command: str) -> None:
            self.svc.run_here([*command.split(), repo.full_name], ways[command])

        items = [Item(command, ((words, "text"),)) for command, words in ways.items()]
        self.app.push_screen(Choose(f"{safe(repo.full_name)}: {counts(repo)}", items, chosen))


def _attention(repo: Repo) -> tuple[Part, ...]:
    """Returns the counts of a repository (stars, watchers and forks) as parts. They also say whether the
    account has starred the repository or watches it."""
    viewer = repo.viewer
    own = (("starred", viewer.starred), ("watching", viewer.watching)) if viewer is not None else ()
    mine = " and ".join(word for word, holds in own if holds)
    return (counts(repo), "link"), (f"  you: {mine}" if mine else "", "dim")
