"""The form of a new release: version, branch or seal, files and notes."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile
from typing import Any

from localstore.core.model.history import SealSummary
from localstore.core.model.ref import Ref
from localstore.core.model.release import Release
from localstore.core.model.repo import Repo
from localstore.core.words import first_line
from tui import contents
from tui.actions import Action
from tui.screens.talk.composing import NONE, Composing
from tui.text import Part, safe
from tui.widgets.lines import Item


class NewRelease(Composing):
    """The form of a new release. `refs`: the branches and tags to choose from. `taken`: versions that are
    released already. `sent`: the version that the user has sent. Its draft is deleted once the version is
    released. A command of svc makes the release, because the files are read and signed on this machine."""

    ACTIONS = (
        Action("open", ("enter",), "change", "svc repo release create", "signed_in", footer=True),
        Action(
            "send",
            ("S", "ctrl+s"),
            "publish",
            "svc repo release create VERSION",
            "signed_in",
            True,
            "release.create",
        ),
        Action("write", ("E",), "notes in $EDITOR", "", "signed_in"),
        Action("seals", ("f",), "notes from seals", footer=True),
        Action("discard", ("D",), "discard", footer=True),
    )
    NOUN = FORM = "release"
    TITLE, BODY, TEXT = "version", "notes", "notes"

    def __init__(
        self,
        repo: Repo,
        refs: Sequence[Ref],
        taken: Sequence[str],
        begun: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(repo, begun=begun)
        self._taken = frozenset(taken)
        self._refs = [ref.name for ref in refs if ref.head is not None]

    def begin(self) -> None:
        version = self.value("version").strip()
        if version in self._taken and version == self.value("sent"):
            self._values = {}
            self.forget()

    @property
    def _ref(self) -> str:
        return self.value("ref") or self.repo.default_branch

    def fields(self) -> list[tuple[str, tuple[Part, ...], Callable[[], None]]]:
        files = self.value("files")
        signed: Part = ("✓ yes", "good") if self._values.get("sign") else ("no", "dim")
        return [
            self.title_field(),
            ("of", ((safe(self._ref), "accent"),), self._choose_ref),
            self.text_field(),
            ("files", ((safe(files), "text") if files else NONE,), self._ask_files),
            ("signed", (signed,), lambda: self.put("sign", not self._values.get("sign"))),
        ]

    def facts_of(self) -> list[Part]:
        return [("of ", "dim"), (safe(self._ref), "accent"), *self.author_parts()]

    def do_seals(self) -> None:
        """Add a line to the notes for each seal that was made since the last release."""
        before = self.value("notes").rstrip()

        def read_seals(releases: list[Release], at: float) -> None:
            released = {release.seal_id for release in releases}
            self.svc.load(contents.recent(self.repo.id, self._ref), lambda seals, at: fill(released, seals))

        def fill(released: set[str], seals: list[SealSummary]) -> None:
            """Fill the notes. Called first with cached data, and then with the server's answer."""
            new = list(takewhile(lambda seal: seal.id not in released, seals))
            lines = [f"- {first_line(seal.message)}" for seal in new]
            self.put("notes", "\n".join([*([before, ""] if before and lines else [before]), *lines]).strip())
            if not lines:
                self.say(f"nothing was sealed on {self._ref} since the last release", "warn")

        self.svc.load(contents.releases(self.repo.id), read_seals)

    def _choose_ref(self) -> None:
        from tui.screens.choose import Choose

        items = [Item(name, ((safe(name), "text"),), cuts_middle_of=0) for name in self._refs]
        self.app.push_screen(Choose("branch or tag that it is of", items, lambda name: self.put("ref", name)))

    def _ask_files(self) -> None:
        words = "files to upload, with blanks between them"
        self.ask_in_row(
            "files", words, lambda text: self.put("files", text.strip()), value=self.value("files")
        )

    def do_send(self) -> None:
        version = self.value("version").strip()
        try:
            files = shlex.split(self.value("files"))
        except ValueError:
            self.say("a quote is open in the files", "bad")
            return
        if not version or (self._values.get("sign") and not files):
            self.listed.go_to("files" if version else "version")
            lacking = "only files are signed: name some here, or turn signed off"
            self.say(lacking if version else "a release needs a version", "warn")
            return
        words = ["repo", "release", "create", "-R", self.repo.full_name, f"--from={self._ref}"]
        words += [f"--notes={self.value('notes')}"] if self.value("notes").strip() else []
        words += ["--sign"] if self._values.get("sign") else []
        self.put("sent", version)
        self.below.expect_new(self.NOUN, version)
        self.app.pop_screen()
        self.svc.run_here([*words, "--", version, *files], f"making {version}")
