"""The releases of a repository with their notes and files: the tab that lists them, and the screen of one
release."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING

from textual.app import ComposeResult

from localstore.core.model.history import SealSummary
from localstore.core.model.release import Asset, Release
from localstore.core.model.repo import Repo
from localstore.core.words import count
from svc.console.table import size
from tui import contents
from tui.actions import Action
from tui.asked import DONE
from tui.drafts import name_draft
from tui.screens.facts import WithFacts, beside_facts, fact_rows
from tui.screens.lists.moving import Moving
from tui.screens.lists.signature import signature
from tui.screens.split import SPLIT_ACTIONS, Split
from tui.screens.tab_keys import TAB_ACTIONS, LeadsToTabs
from tui.text import Part, ago, brief, safe
from tui.texts import Texts, first_words, item
from tui.widgets.lines import Item, Lines, heading, sequence

if TYPE_CHECKING:
    from tui.markdown.words import Row
    from tui.screens.repo_page import RepoPage


def _action(id: str, key: str, label: str, command: str, right: str) -> Action:
    return Action(id, (key,), label, f"svc repo release {command}", "signed_in", True, right)


NAME, SIZE = 60, 11  # columns of the name of a file, at most, and of its size
SEALS = 40  # of a release that are listed


class Releases(Split):
    LIST = "releases"
    WAITING = "asking the server"
    RULED = True
    TWO_LINES = True
    FACTS = True
    ACTIONS = (
        Action("open", ("enter",), "open", "svc repo release view {version}", footer=True),
        _action("add", "a", "new", "create VERSION", "release.create"),
        *SPLIT_ACTIONS,
    )

    def __init__(self, of: RepoPage) -> None:
        super().__init__(of)
        self._releases: dict[str, Release] | None = None
        self._awaits = ""  # the version that the user has made

    def facts(self) -> dict[str, str]:
        version = self.query_one("#releases", Lines).key
        return {"version": str(version)} if version is not None else {}

    def label_of(self, action: Action) -> str:
        return "" if action.id == "open" and self.listed.key is None else action.label

    def open_tab(self) -> None:
        self.do_refresh()

    def do_refresh(self) -> None:
        self.renew()
        self.svc.load(contents.releases(self.of.repo.id), self._paint)

    def _paint(self, releases: list[Release], at: float) -> None:
        self._releases = {release.version: release for release in releases}
        self.paint()

    def paint(self) -> None:
        if not self.is_mounted or self._releases is None:
            return
        releases = list(self._releases.values())
        rows = [self._row(release) for release in releases]
        self.listed.empty = "no releases; a makes one"
        new = self._awaits if self._awaits in self._releases else None
        self._awaits = "" if new else self._awaits
        self.query_one("#releases", Lines).show(sequence(rows), new)
        self.rest()

    def expect_new(self, noun: str, name: str) -> None:
        if noun == "release":
            self._awaits = name

    def on_lines_moved(self, event: Lines.Moved) -> None:
        super().on_lines_moved(event)
        if event.lines.id == self.LIST:
            self._awaits = ""  # the user has gone on

    def make_title(self) -> tuple[Part, ...]:
        return ("Releases ", "title"), (self.count() or "", "dim")

    def count(self) -> str | None:
        return None if self._releases is None else str(len(self._releases) or "")

    def preview_of(self, key: Hashable) -> None:
        release = (self._releases or {}).get(str(key))
        if release is None:
            return
        repo_id, now = self.of.repo.id, self.svc.clock()
        rows: list[Row | tuple[Part, ...]] = []
        if not self.facts_shown:
            rows += [*_head(repo_id, release, now)]
            rows += [_asset(asset) for asset in release.assets]
            rows.append((("", "text"),))
        rows += self.text_rows(release.notes) if release.notes.strip() else [(("no notes", "dim"),)]
        self.show_preview(key, safe(release.version), rows, _fact_items(repo_id, release, now))

    def _row(self, release: Release) -> Item:
        files = len(release.assets)
        first = first_words(release.notes)
        many = f"{count(files, 'file')}  " if files else ""
        if self.two_lines or self.narrow:
            when = ((f"{brief(release.created_at, self.svc.clock())} ", "dim"),)
            head = ((f"{safe(release.version)}  ", "accent"), (safe(first), "text"))
            below = (
                ("  ", "text"),
                (f"{release.seal_id[:8]}  {many}", "dim"),
                self._signature(release),
                (f"@{safe(release.author.handle or '?')}", "dim"),
            )
            return Item(release.version, head, when, f"{release.version} {release.notes}", below=below)
        left: tuple[Part, ...] = (
            (f"{safe(release.version):<16} ", "accent"),
            (f"{release.seal_id[:8]}  ", "dim"),
            (safe(first), "text"),
        )
        right = (
            self._signature(release),
            (f"{many}{ago(release.created_at, self.svc.clock())} ", "dim"),
        )
        return Item(release.version, left, right, f"{release.version} {release.notes}")

    def _signature(self, release: Release) -> Part:
        """Returns the signature of a release for its row. Its text is "" if it is not signed, because most
        releases are not."""
        words, role = _describe_signature(self.of.repo.id, release)
        return ("" if role == "dim" else f"{words}  ", role)

    def do_add(self) -> None:
        from tui.screens.lists.new_release import NewRelease

        self.app.push_screen(NewRelease(self.of.repo, self.of.refs, list(self._releases or ())))

    def on_lines_chosen(self, event: Lines.Chosen) -> None:
        release = (self._releases or {}).get(str(self.listed.key))
        if release is not None:
            self.app.push_screen(ReleaseScreen(self.of.repo, release))


def _head(repo_id: str, release: Release, now: float) -> list[tuple[Part, ...]]:
    """Returns the first rows about a release: its seal, its author, its age, and its signature."""
    who = f"@{safe(release.author.handle or '?')} {ago(release.created_at, now)}"
    return [
        ((f"seal {release.seal_id[:12]}", "accent"), (f"  {who}", "dim")),
        (_describe_signature(repo_id, release), (_signer(release), "dim")),
    ]


def _asset(asset: Asset) -> tuple[Part, ...]:
    return (f"{safe(asset.name)}  ", "text"), (size(asset.size), "dim")


def _fact_items(repo_id: str, release: Release, now: float, files: bool = True) -> list[Item]:
    """Returns the facts about a release as rows. `files`: the rows list its files."""
    who: tuple[Part, ...] = (
        (f"@{safe(release.author.handle or '?')} ", "person"),
        (ago(release.created_at, now), "text"),
    )
    whole = sum(asset.size for asset in release.assets)
    count = f"{len(release.assets)} · {size(whole)}" if release.assets else "none"
    lines = [_asset(asset) for asset in release.assets] if files and release.assets else [((count, "text"),)]
    return [
        *fact_rows("released", who),
        *fact_rows("seal", [(release.seal_id[:12], "accent")]),
        *fact_rows("signature", [_describe_signature(repo_id, release), (_signer(release), "dim")]),
        *fact_rows("files", *lines),
    ]


def _describe_signature(repo_id: str, release: Release) -> Part:
    word, role = signature(repo_id, release)
    return {"good": "✓ ", "bad": "✗ "}.get(role, "") + word, role


def _signer(release: Release) -> str:
    by = release.publication.signed_by
    return f"  by @{safe(by.handle or '?')}" if by is not None else ""


def _is_seal(key: Hashable | None) -> bool:
    """Whether this is the key of the row of a seal."""
    return isinstance(key, tuple) and key[0] == "seal"


class ReleaseScreen(WithFacts, Moving, LeadsToTabs):
    """The screen of one release. Its files are downloaded into the folder in which the app was started."""

    ACTIONS = (
        Action(
            "open",
            ("enter",),
            "download",
            "svc repo release download {version} --pattern {file}",
            footer=True,
        ),
        _action("upload", "u", "upload files", "upload {version} PATHS", "asset.upload"),
        _action("remove", "x", "remove the file", "delete-asset {version} {name}", "asset.delete"),
        _action("edit", "e", "edit the notes", "edit {version}", "release.edit"),
        _action("notes", "E", "notes in a form", "edit {version}", "release.edit"),
        *TAB_ACTIONS,
    )

    def __init__(self, repo: Repo, release: Release) -> None:
        super().__init__()
        self.repo, self.release, self.stale = repo, release, True
        self.texts: Texts = Texts(self, self.paint)
        self._before: Release | None = None  # the release before this one
        self._seals: list[SealSummary] | None = None  # those up to this release, until they are read

    def label_of(self, action: Action) -> str:
        """Returns the label of an action in the line of keys. Opening has one only while a file or a seal is
        under the cursor, and removing only on a file."""
        key = self.query_one("#release", Lines).key
        if action.id == "open" and _is_seal(key):
            return "open the seal"
        on_file = isinstance(key, str)
        return super().label_of(action) if on_file or action.id not in ("open", "remove") else ""

    def do_back(self) -> None:
        if not self.cancel():
            super().do_back()

    def subject(self) -> tuple[Repo | None, bool]:
        return self.repo, False

    def facts(self) -> dict[str, str]:
        return {"version": self.release.version}

    def content(self) -> ComposeResult:
        yield from beside_facts(Lines(linked=True, id="release"))

    def title_parts(self) -> Sequence[Part]:
        return ((f" {safe(self.repo.full_name)} {safe(self.release.version)}", "title"),)

    def page_title(self) -> str:
        return safe(self.release.version)

    def on_mount(self) -> None:
        super().on_mount()
        self.paint()

    def on_resize(self) -> None:
        self.paint()

    def do_refresh(self) -> None:
        self.svc.load(contents.release(self.repo.id, self.release.version), self._take_release)
        self.svc.load(contents.releases(self.repo.id), self._take_releases)
        self.svc.load(contents.history(self.repo.id, self.release.seal_id, None), self._take_seals)

    def _take_releases(self, releases: list[Release], at: float) -> None:
        older = [each for each in releases if each.created_at < self.release.created_at]
        self._before = max(older, key=lambda each: each.created_at, default=None)
        self.paint()

    def _take_seals(self, seals: list[SealSummary], at: float) -> None:
        self._seals = seals
        self.paint()

    def _seal_rows(self) -> list[Item]:
        """Returns a row for each seal that this release has and the one before does not."""
        before, now = self._before, self.svc.clock()
        if self._seals is None:
            return []
        end = before.seal_id if before is not None else ""
        new = list(takewhile(lambda seal: seal.id != end, self._seals))
        title = f"Seals since {safe(before.version)}" if before is not None else "Seals"
        rows = [Item(None, (("", "text"),)), heading(title, len(new))]
        for seal in new[:SEALS]:
            who = f"@{safe(seal.provenance.who.handle or '?')} {brief(seal.created_at, now)} "
            parts = ((f"{seal.id[:8]}  ", "accent"), (safe(first_words(seal.message)), "text"))
            rows.append(Item(("seal", seal.id), parts, ((who, "dim"),), f"{seal.id} {seal.message}"))
        if len(new) > SEALS:
            rows.append(Item(None, ((f"and {len(new) - SEALS} more", "dim"),)))
        return rows

    def _take_release(self, release: Release, at: float) -> None:
        self.release = release
        self.paint()

    def paint(self) -> None:
        release, now = self.release, self.svc.clock()
        head = [] if self.has_facts else _head(self.repo.id, release, now)
        rows = [Item(None, parts) for parts in head]
        wide = min(NAME, max((len(safe(asset.name)) for asset in release.assets), default=0))
        for asset in release.assets:
            parts: tuple[Part, ...] = (
                (f"{safe(asset.name):<{wide}}", "text"),
                (f"{size(asset.size):>{SIZE}}  ", "dim"),
                *self.parts_of(asset.name),
            )
            rows.append(Item(asset.name, parts, (), asset.name))
        rows += [
            Item(None, ((safe(name), "text"), *self.parts_of(name)))
            for name in self.moved
            if name not in {asset.name for asset in release.assets}
        ]
        uploads = next(action for action in self.ACTIONS if action.id == "upload")
        may_change = bool(self.label_of(uploads))
        if not release.assets and not self.moved:
            words = "no files; u uploads some" if may_change else "no files"
            rows.append(Item(None, ((words, "dim"),)))
        rows += [Item(None, (("", "text"),))]
        notes = self.texts.rows(release.notes, self.text_width)
        rows += [item(("note", place), row) for place, row in enumerate(notes)]
        if not release.notes.strip():
            rows.append(Item(None, (("no notes; e writes them", "dim"),)))
        rows += self._seal_rows()
        self.query_one("#release", Lines).show(rows)
        facts = _fact_items(self.repo.id, release, now, files=False)
        if may_change:
            facts += fact_rows("take it back", [(f"svc repo release delete {safe(release.version)}", "dim")])
        self.show_facts(facts)

    def on_screen_suspend(self) -> None:
        self.stale = True  # a command may change it

    def do_edit(self) -> None:
        """Let the user change the notes. The draft is deleted once the server has them."""
        release, drafts = self.release, self.svc.drafts
        draft = name_draft(self.repo.id, 0, "notes", release.version)

        def show_answer(text: str, state: Part) -> None:
            if state[0] == DONE and drafts is not None:
                drafts.keep(draft, "")
            if self.is_attached:
                self.say(first_words(text), "text" if state[0] == DONE else "bad")
                self.do_refresh()

        def send(text: str) -> None:
            if text.strip() != release.notes.strip():
                words = ["repo", "release", "edit", release.version, f"--notes={text.strip()}"]
                self.svc.run_beside([*words, "-R", self.repo.full_name], show_answer)

        self.write(f"notes of {release.version}", send, draft, release.notes)

    def do_notes(self) -> None:
        self.svc.open_form("repo release edit", notes=self.release.notes)

    def do_remove(self) -> None:
        name = self.query_one("#release", Lines).key
        if not isinstance(name, str):
            self.say("put the cursor on a file", "warn")
            return
        words = ["repo", "release", "delete-asset", self.release.version, str(name), "--yes"]
        self.confirm(f"Remove {name} for good?", lambda: self._run(f"removing {name}", *words), destroys=True)

    def on_lines_chosen(self, event: Lines.Chosen) -> None:
        key = event.key
        if isinstance(key, tuple) and _is_seal(key):
            from tui.screens.code.seal import SealScreen

            self.app.push_screen(SealScreen(self.repo, str(key[1])))
            return
        asset = next((asset for asset in self.release.assets if asset.name == event.key), None)
        if asset is not None:
            self.download(asset)

    def _run(self, doing: str, *words: str) -> None:
        self.svc.run_here([*words, "-R", self.repo.full_name], doing)
