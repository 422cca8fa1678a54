"""The line mode: the app for terminals without cursor movement, as numbered choices, one on each line.

    svc tui --plain          also if TERM is dumb or a stream is not a terminal

The user types a number, `?` for a list of what else can be typed, or `q` to quit."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import partial
from typing import NamedTuple, TextIO, TypeVar

from localstore.core.errors import SvcError
from localstore.core.model.history import SealSummary
from localstore.core.model.repo import Repo
from localstore.core.numbers import whole_number
from localstore.core.words import count, first_line
from svc.flows.git.address import git_address
from tui import contents, reads
from tui.client import Client, sentence
from tui.commands import SEAL, Commands, known_values, parse_values, words_of
from tui.page_acts import Act, Missing
from tui.pages import OF_REPO, Choice, Page, Pages, changed_lines, page_of
from tui.reads import Read
from tui.screens.code.words import counts, describe_listing
from tui.text import ago, lines_of, safe

T = TypeVar("T")

PAGE = 20  # choices or lines printed at once
HINT = "number, b back, r refresh, /word filter, :command, ? help, q quit"
IN_TEXT = HINT.replace("filter", "find")
COMPARED = 2000  # lines of a page of which only the new ones are printed after a change
AGE = re.compile(r"just now|\b\d+ \w+ ago")
CHANGED, AGAIN, BACK = "changed", "again", "back"


@dataclass
class Visit:
    """A page that is open. `make`: makes it. `filter`: the text that the user typed after `/` last. `start`:
    the first line that was printed last. `before`: what the page said before something was changed; only what
    is new is printed then."""

    make: Callable[[], Page]
    filter: str = ""
    start: int = 0
    before: Sequence[str] | None = None


class Printed(NamedTuple):
    """What is printed of a page. `choices`: those that are left by the filter. `lines`: the lines, with the
    numbered choices. `texts`: the same without numbers."""

    page: Page
    choices: Sequence[Choice]
    lines: Sequence[str]
    texts: Sequence[str]

    def after(self, start: int) -> int:
        """Returns how many lines follow those that are printed from `start` on."""
        return len(self.lines) - start - PAGE


class LineMode:
    """The line mode of the app. `folder`: id of the repository that the linked folder belongs to. `commands`:
    the commands of svc, to fill in what a typed line lacks. `run` returns when the user quits or the input
    ends."""

    def __init__(
        self,
        client: Client,
        now: Callable[[], float],
        source: TextIO,
        out: TextIO,
        folder: str = "",
        commands: Commands | None = None,
    ) -> None:
        self._folder, self._commands = folder, commands
        self._client, self._now, self._in, self._out = client, now, source, out
        self._pages = Pages(self._read, now, client.account)

    def run(self) -> None:
        visits = [Visit(self.home)]
        while visits:
            visit = visits[-1]
            try:
                page = visit.make()
            except SvcError as error:
                self._say(sentence(error))
                if len(visits) == 1:
                    return
                visits.pop()
                continue
            answer = self._visit(page, visit)
            if answer is None:
                return
            if answer == BACK:
                visits.pop()
            elif callable(answer):
                visits.append(Visit(answer))

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
            return page_of(repo, safe(repo.full_name), lines, self._pages.of(repo, None))
        seal = head
        return page_of(
            repo,
            f"{safe(repo.full_name)}, {safe(repo.default_branch)} at {seal[:8]}",
            self._about(repo),
            [
                Choice("files", lambda: self.folder(repo, seal, "")),
                Choice("history", lambda: self.history(repo)),
                *self._pages.of(repo, seal),
            ],
            commands=OF_REPO,
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
        return page_of(
            repo,
            safe(folder) + "/" if folder else "files",
            (),
            choices,
            partial(self._search_paths, repo, seal, folder),
        )

    def _search_paths(self, repo: Repo, seal: str, folder: str, text: str) -> Page:
        """Returns the page of all files below a folder whose path contains the text. `folder`: "" for the
        root."""
        tree = self._read(contents.tree(repo.id, seal, recursive=True))
        prefix, sought = f"{folder}/" if folder else "", text.casefold()
        paths = [
            entry.path for entry in tree.entries if entry.kind != "dir" and entry.path.startswith(prefix)
        ]
        choices = [
            Choice(safe(path.removeprefix(prefix)), partial(self.file, repo, seal, path))
            for path in paths
            if sought in path.removeprefix(prefix).casefold()
        ]
        title = f"{safe(prefix) or 'files'} with {safe(text)}, {len(choices)}"
        return page_of(repo, title, [] if choices else ["no path has it; / lists all"], choices)

    def file(self, repo: Repo, seal: str, path: str) -> Page:
        blob = self._read(contents.file(repo.id, seal, path))
        if blob.encoding != "utf-8" or blob.content is None:
            return page_of(repo, safe(path), [f"{blob.size:,} bytes, not text"])
        lines = lines_of(blob.content)
        return page_of(
            repo,
            f"{safe(path)}, {count(len(lines), 'line')}",
            [safe(line) for line in lines],
            text=True,
            commands=[safe(f"{name} {shlex.quote(path)}") for name in ("blame", "log")],
        )

    def history(self, repo: Repo) -> Page:
        seals = self._read(contents.history(repo.id, repo.default_branch, None))
        choices = [
            Choice(
                f"{seal.id[:8]} {safe(first_line(seal.message))}  "
                f"@{safe(seal.provenance.who.handle or '?')} {ago(seal.created_at, self._now())}",
                partial(self.seal, repo, seal),
            )
            for seal in seals
        ]
        return page_of(repo, "history", (), choices)

    def seal(self, repo: Repo, seal: SealSummary) -> Page:
        compare = self._read(contents.changes_made(repo.id, seal.id))
        who = f"by @{safe(seal.provenance.who.handle or '?')} {ago(seal.created_at, self._now())}"
        message = [safe(line) for line in seal.message.strip().split("\n")]
        return page_of(
            repo,
            f"seal {seal.id[:8]}, {count(len(compare.files), 'file')}",
            [*message, who, *changed_lines(compare)],
            text=True,
            seal=seal.id,
        )

    def _visit(self, page: Page, visit: Visit) -> Callable[[], Page] | str | None:
        """Print the page and read what the user types. Returns what comes next: a function that makes the
        page to open, BACK, AGAIN to print the page anew, CHANGED to print what has changed, or None to
        quit."""
        printed = self._show(page, visit)
        while True:
            more = printed.after(visit.start)
            hint = IN_TEXT if page.text else HINT
            self._say(f"{f'{more} more: enter; ' if more > 0 else ''}{hint}")
            typed = self._in.readline()
            word = typed.strip()
            if not typed or word == "q":
                return None
            if word == "b":
                return BACK
            if word.startswith(":"):
                self._command(word[1:], page)
                visit.before = printed.texts
                return CHANGED
            if word == "r" or (word.startswith("/") and not page.text):
                visit.start, visit.filter = 0, visit.filter if word == "r" else word[1:]
                return AGAIN
            number = whole_number(word)
            if number is not None and 0 < number <= len(printed.choices):
                opened, act = printed.choices[number - 1].page, printed.choices[number - 1].act
                if opened is not None:
                    return opened
                if act is None:
                    self._say("there is nothing to open")
                elif self._do(act):
                    visit.before = printed.texts
                    return CHANGED
            else:
                self._read_on(word, number, printed, visit)

    def _show(self, page: Page, visit: Visit) -> Printed:
        """Print a page from where the visit is or, after a change, what is new on it."""
        choices = page.choices
        if visit.filter and not page.text:
            page, choices = self._filter_page(page, visit.filter)
        numbered = [f"{number:>4} {choice.text}" for number, choice in enumerate(choices, 1)]
        texts = [*page.lines, *(choice.text for choice in choices)]
        printed = Printed(page, choices, [*page.lines, *numbered], texts)
        self._say(page.title)
        if visit.before is not None:
            for place in _new_places(visit.before, texts):
                self._say(printed.lines[place])
            visit.before = None
        else:
            visit.start = min(visit.start, max(0, len(texts) - 1))
            self._print(printed.lines, visit)
        return printed

    def _read_on(self, word: str, number: int | None, printed: Printed, visit: Visit) -> None:
        """Print what the user wants to read of the page: the next lines, those from a line on, or what can be
        typed."""
        page, lines = printed.page, printed.lines
        if not word and printed.after(visit.start) > 0:
            visit.start += PAGE
            self._print(lines, visit)
        elif not word:
            self._say("that was all of it")
        elif word == "?":
            for line in self._help(printed, visit):
                self._say(line)
        elif word.startswith("/"):
            self._find(word[1:].strip(), lines, visit)
        elif number is not None and page.text and not printed.choices and 0 < number <= len(lines):
            visit.start = number - 1
            self._print(lines, visit)
        else:
            self._say(f"{safe(word)} is none of the choices; ? lists what can be typed")

    def _print(self, lines: Sequence[str], visit: Visit) -> None:
        """Print the lines from where the visit is."""
        if visit.start:
            self._say(f"line {visit.start + 1} of {len(lines)}")
        for line in lines[visit.start : visit.start + PAGE]:
            self._say(line)

    def _help(self, printed: Printed, visit: Visit) -> list[str]:
        """Returns lines that say what can be typed on a page."""
        page, choices = printed.page, printed.choices
        lines = ["what can be typed here:"]
        if choices:
            lines.append(f"a number{_up_to(len(choices))}: open that choice, or do it")
            lines += [line for line in printed.lines[-len(choices) :] if page.text]
        elif page.text and printed.lines:
            lines.append(f"a number{_up_to(len(printed.lines))}: read from that line")
        if printed.after(visit.start) > 0:
            lines.append(f"enter: the next {PAGE} lines")
        if page.text:
            lines.append("/word: read from the next line with that word; / alone: the same word again")
        else:
            words = " ".join(page.words)
            takes = f"; {words} take a value" if words else ""
            lines.append(f"/word: only the choices with that word{takes}; / alone: all")
        lines += ["b: back to the page before", "r: ask the server, and read from the beginning"]
        numbers = [f"#{page.facts[name]}" for name in ("issue", "pr") if name in page.facts]
        about = " and ".join([*numbers, *([page.facts["repo"]] if "repo" in page.facts else [])])
        filled = f"; {safe(about)} may be left out" if about and self._commands is not None else ""
        lines.append(f":command: any command of svc{filled}")
        return [*lines, *(f"  such as :{command}" for command in page.commands), "q: quit"]

    def _find(self, word: str, lines: Sequence[str], visit: Visit) -> None:
        """Print the page from the next line that contains the word. Without one, the word that was looked for
        last is taken."""
        after = visit.start
        if word and word.casefold() != visit.filter.casefold():
            after = visit.start - 1
        visit.filter = word or visit.filter
        sought = visit.filter.casefold()
        places = [place for place, line in enumerate(lines) if sought and sought in line.casefold()]
        later = [place for place in places if place > after]
        if not places:
            self._say(f"no line has {safe(visit.filter)}" if sought else "/ takes a word")
            return
        if not later:
            self._say("from the beginning again")
        visit.start = (later or places)[0]
        self._print(lines, visit)

    def _filter_page(self, page: Page, text: str) -> tuple[Page, Sequence[Choice]]:
        """Applies the text that the user typed after `/`. Returns the page, and its choices that match."""
        if page.search is None:
            matching = [choice for choice in page.choices if text.casefold() in choice.text.casefold()]
            if not matching:
                self._say(f"no choice has {safe(text)}; / lists all")
            return page, matching
        try:
            page = page.search(text)
        except SvcError as error:
            self._say(sentence(error))
        return page, page.choices

    def _do(self, act: Act) -> bool:
        """Ask for the texts that an action needs, and do it. Returns False if the user leaves it."""
        words = [*act.words]
        for missing in act.missing:
            text = self._ask(missing)
            if text is None or (missing.required and not text.strip()):
                self._say("nothing was sent")
                return False
            if text.strip():
                words.append(f"{missing.option}={text}")
        self._run(words)
        return True

    def _ask(self, missing: Missing) -> str | None:
        """Returns the text that the user types. Returns None if they leave it, or if the input ends."""
        if not missing.several:
            self._say(f"{missing.words}:")
            typed = self._in.readline()
            return typed.rstrip("\r\n") if typed else None
        self._say(f"{missing.words}; a line with only a dot ends it, a line with only ! leaves it:")
        lines: list[str] = []
        while typed := self._in.readline():
            line = typed.rstrip("\r\n")
            if line == ".":
                return "\n".join(lines).strip()
            if line == "!":
                return None
            lines.append(line)
        return None

    def _command(self, line: str, page: Page) -> None:
        """Run a command line that the user typed. What it lacks is taken from the page."""
        try:
            words = shlex.split(line.strip().removeprefix("svc "))
        except ValueError as error:
            self._say(f"the command line cannot be read: {error}")
            return
        self._run(self._complete(words, page.facts))

    def _complete(self, words: list[str], facts: Mapping[str, str]) -> list[str]:
        """Returns the words of a command line, with the values that it lacks and the page has."""
        path = self._commands.path_in(words) if self._commands is not None else ""
        if self._commands is None or not path or "--help" in words or "-h" in words:
            return words
        fields = self._commands.fields(path)
        typed = parse_values(fields, words[len(path.split()) :])
        if typed is None:
            return words
        from_page = known_values(path, fields, facts, facts.get("repo", ""), linked=False)
        from_page.pop(SEAL, None)
        return words_of(path, fields, {**from_page, **typed})

    def _run(self, words: list[str]) -> None:
        """Run a command of svc in this terminal."""
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


def _up_to(last: int) -> str:
    return f" from 1 to {last}" if last > 1 else ", 1"


def _new_places(before: Sequence[str], after: Sequence[str]) -> list[int]:
    """Returns the places of the lines of a page that it did not have before, apart from ages. Returns the
    first lines if it is too long to compare."""
    if max(len(before), len(after)) > COMPARED:
        return [*range(min(PAGE, len(after)))]
    old, new = ([AGE.sub("", line) for line in lines] for lines in (before, after))
    blocks = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    return [place for tag, _, _, start, end in blocks if tag != "equal" for place in range(start, end)]
