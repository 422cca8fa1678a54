"""The line mode: the app for terminals without cursor movement, as numbered choices, one on each line.

    svc tui --plain          also if TERM is dumb or a stream is not a terminal

The user types a number, `b` to go back, `r` to refresh, `/word` to filter, `:` and a command line of svc, or
`q` to quit."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from typing import TextIO, TypeVar

from localstore.core.errors import SvcError
from localstore.core.model.history import SealSummary
from localstore.core.model.repo import Repo
from localstore.core.numbers import whole_number
from svc.flows.git.address import git_address
from tui import contents, reads
from tui.client import Client, sentence
from tui.pages import Choice, Page, Pages
from tui.reads import Read
from tui.screens.code.words import counts, describe_listing
from tui.text import ago, lines_of, safe
from tui.widgets.patch import Patches

T = TypeVar("T")

PAGE = 20  # choices or lines printed at once
HINT = "number, b back, r refresh, /word filter, :command, q quit"


class LineMode:
    """The line mode of the app. `folder`: id of the repository that the linked folder belongs to. `run`
    returns when the user quits or the input ends."""

    def __init__(
        self, client: Client, now: Callable[[], float], source: TextIO, out: TextIO, folder: str = ""
    ) -> None:
        self._folder = folder
        self._client, self._now, self._in, self._out = client, now, source, out
        self._pages = Pages(self._read, now)

    def run(self) -> None:
        pages: list[Callable[[], Page]] = [self.home]
        while pages:
            try:
                page = pages[-1]()
            except SvcError as error:
                self._say(sentence(error))
                if len(pages) == 1:
                    return
                pages.pop()
                continue
            answer = self._visit(page)
            if answer is None:
                return
            if answer == "back":
                pages.pop()
            elif callable(answer):
                pages.append(answer)

    def home(self) -> Page:
        repos = self._read(reads.repos(self._client.account, self._folder))
        repos.sort(key=lambda repo: repo.id != self._folder)
        choices = self._list_repos(repos)
        if self._client.account:
            named = {repo.full_name: repo for repo in repos}
            choices.append(Choice("inbox", lambda: self._pages.inbox(named)))
            choices.append(Choice("other repositories", lambda: self.others({repo.id for repo in repos})))
        return Page(f"Repositories {len(repos)}", (), choices)

    def others(self, own_ids: set[str]) -> Page:
        """Returns the page of repositories that the account may see but has no role in. `own_ids`: the ids of
        those in which it has a role."""
        repos = [repo for repo in self._read(reads.visible_repos()) if repo.id not in own_ids]
        return Page(f"Other repositories {len(repos)}", (), self._list_repos(repos))

    def _list_repos(self, repos: list[Repo]) -> list[Choice]:
        return [
            Choice(f"{safe(repo.full_name)}  {repo.visibility} {repo.kind}", partial(self.repo, repo))
            for repo in repos
        ]

    def repo(self, repo: Repo) -> Page:
        repo = self._read(reads.repo(repo.id))
        refs = self._read(contents.refs(repo.id))
        head = next((ref.head for ref in refs if ref.name == repo.default_branch), None)
        if head is None:
            lines = [*self._about(repo), "nothing is sealed yet"]
            return Page(safe(repo.full_name), lines, self._pages.of(repo, None))
        seal = head
        return Page(
            f"{safe(repo.full_name)}, {safe(repo.default_branch)} at {seal[:8]}",
            self._about(repo),
            [
                Choice("files", lambda: self.folder(repo, seal, "")),
                Choice("history", lambda: self.history(repo)),
                *self._pages.of(repo, seal),
            ],
        )

    def _about(self, repo: Repo) -> list[str]:
        entries = self._read(contents.listing(repo.id)) if repo.listing_id is not None else []
        description = [safe(repo.description)] if repo.description else []
        address = git_address(repo, self._client.origin)
        cloned = [f"git clone {safe(address)}"] if address else []
        return [
            *description,
            counts(repo),
            *cloned,
            *(f"listing {describe_listing(entry)}" for entry in entries),
        ]

    def folder(self, repo: Repo, seal: str, folder: str) -> Page:
        tree = self._read(contents.tree(repo.id, seal, folder))
        choices = []
        for entry in sorted(tree.entries, key=lambda entry: (entry.kind != "dir", entry.path)):
            name = safe(entry.path.rsplit("/", 1)[-1])
            if entry.kind == "dir":
                choices.append(Choice(f"{name}/", partial(self.folder, repo, seal, entry.path)))
            else:
                choices.append(Choice(name, partial(self.file, repo, seal, entry.path)))
        return Page(safe(folder) + "/" if folder else "files", (), choices)

    def file(self, repo: Repo, seal: str, path: str) -> Page:
        blob = self._read(contents.file(repo.id, seal, path))
        if blob.encoding != "utf-8" or blob.content is None:
            return Page(safe(path), [f"{blob.size:,} bytes, not text"])
        lines = lines_of(blob.content)
        return Page(f"{safe(path)}, {len(lines)} lines", [safe(line) for line in lines])

    def history(self, repo: Repo) -> Page:
        seals = self._read(contents.history(repo.id, repo.default_branch, None))
        choices = [
            Choice(
                f"{seal.id[:8]} {safe(seal.message.partition(chr(10))[0])}  "
                f"@{safe(seal.provenance.who.handle or '?')} {ago(seal.created_at, self._now())}",
                partial(self.seal, repo, seal),
            )
            for seal in seals
        ]
        return Page("history", (), choices)

    def seal(self, repo: Repo, seal: SealSummary) -> Page:
        compare = self._read(contents.changes_made(repo.id, seal.id))
        lines = ["".join(text for text, _ in item.left) for item in Patches(compare.files)]
        return Page(f"seal {seal.id[:8]}, {len(compare.files)} files", lines)

    def _visit(self, page: Page) -> Callable[[], Page] | str | None:
        """Print the page and read one input. Returns what comes next: a function that makes the page to open,
        "back", "again", or None to quit."""
        choices = list(page.choices)
        start = 0
        while True:
            numbered = [f"{number:>4} {choice.text}" for number, choice in enumerate(choices, 1)]
            lines = [*page.lines, *numbered]
            self._say(page.title)
            for line in lines[start : start + PAGE]:
                self._say(line)
            more = len(lines) - start - PAGE
            self._say(f"{f'{more} more: enter; ' if more > 0 else ''}{HINT}")
            typed = self._in.readline()
            word = typed.strip()
            if not typed or word == "q":
                return None
            if not word and more > 0:
                start += PAGE
            elif word == "b" or not word:
                return "back"
            elif word == "r":
                return "again"
            elif word.startswith("/"):
                page, choices = self._filter_page(page, word[1:])
                start = 0
            elif word.startswith(":"):
                self._command(word[1:])
            elif (number := whole_number(word)) is not None and 0 < number <= len(choices):
                opened = choices[number - 1].page
                if opened is not None:
                    return opened
            else:
                self._say(f"{safe(word)} is none of the choices")

    def _filter_page(self, page: Page, text: str) -> tuple[Page, list[Choice]]:
        """Applies the text that the user typed after `/`. Returns the page, and its choices that match."""
        if page.search is None:
            return page, [choice for choice in page.choices if text.casefold() in choice.text.casefold()]
        try:
            page = page.search(text)
        except SvcError as error:
            self._say(sentence(error))
        return page, list(page.choices)

    def _command(self, line: str) -> None:
        try:
            words = shlex.split(line)
        except ValueError as error:
            self._say(f"the command line cannot be read: {error}")
            return
        self._out.flush()
        environment = {**os.environ, "SVC_SERVER": self._client.origin}
        command = [sys.executable, "-P", "-m", "svc", *words]
        subprocess.run(command, env=environment, check=False)  # a person typed it

    def _read(self, read: Read[T]) -> T:
        """Makes a request and returns the server's answer. If the server cannot be reached, returns the
        cached answer."""
        cached = self._client.read_cached(read)
        if cached is not None and read.final:
            return cached[0]
        try:
            return self._client.fetch(read)[0]
        except SvcError as error:
            if cached is None:
                raise
            self._say(f"offline, as of {ago_seconds(self._now() - cached[1])}: {sentence(error)}")
            return cached[0]

    def _say(self, text: str) -> None:
        print(safe(text), file=self._out, flush=True)


def ago_seconds(seconds: float) -> str:
    """Returns an age as text in its largest unit, such as `3 h ago`. `seconds`: the age in seconds."""
    for length, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= length:
            return f"{int(seconds // length)} {unit} ago"
    return "just now"
