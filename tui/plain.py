"""The line mode: the app for terminals without cursor movement, as numbered choices, one on each line.

    svc tui --plain          also if TERM is dumb or a stream is not a terminal

The user types a number or words of a choice, `?` for a list of what else can be typed, or `q` to quit. A
terminal shows a long page in parts. In a pipe the lines are a script, and a page is printed whole."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TextIO, TypeVar

from localstore.core.errors import EXIT_INTERRUPTED, ServerUnreachable, SvcError
from localstore.core.model.history import SealSummary
from localstore.core.model.repo import Repo
from localstore.core.numbers import whole_number
from localstore.core.words import count, first_line
from svc.flows.git.address import git_address
from tui import contents, reads
from tui.client import Client, sentence
from tui.commands import Commands
from tui.page import Choice, Page, page_of
from tui.page_acts import Act, Missing
from tui.pages import OF_REPO, Pages, changed_lines
from tui.reads import Read
from tui.screens.code.words import counts, describe_listing
from tui.text import ago, lines_of, safe
from tui.typed_lines import Speech, TypedLines

if TYPE_CHECKING:
    from tui.screens.code.find_text import SealTexts

T = TypeVar("T")

PAGE = 20  # rows that a terminal shows at once, or more if it is higher
PROMPT = 4  # rows of a terminal that stay free for the question and the answer
LISTED = 20  # choices that a message lists
FIRST = "type a number or words of a choice; ? lists all that can be typed, q quits"
QUITS = ("q", ":q", "quit", "exit")
FIRST_PAGE = "this is the first page; q quits"
COMPARED = 2000  # lines of a page of which only the new ones are printed after a change
NAME_END = re.compile(r"[,:]")  # what ends the name of a row
AGE = re.compile(r"just now|\b\d+ \w+ ago")
TEXT = Missing("text to search for, in upper or lower case", "")
CHANGED, AGAIN, BACK = "changed", "again", "back"


@dataclass
class Visit:
    """A page that is open. `make`: makes it. `filter`: the text that the user typed after `/` last. `start`:
    the first line that was printed last. `end`: the line after those. `before`: what the page said before
    something was changed; only what is new is printed then. `name`: how the page is called. `printed`:
    what it said when it was made last, and `is_text` whether that was a text. `returns`: the user comes back
    to it and has read all of it."""

    make: Callable[[], Page]
    filter: str = ""
    start: int = 0
    end: int = 0
    before: Sequence[str] | None = None
    name: str = ""
    printed: Sequence[str] = ()
    is_text: bool = False
    returns: bool = False


class Printed(NamedTuple):
    """What is printed of a page. `choices`: those that are left by the filter. `lines`: the lines, with the
    numbered choices. `texts`: what a change is told by: the same, in a long list without the numbers,
    because they are others for all rows below a new one."""

    page: Page
    choices: Sequence[Choice]
    lines: Sequence[str]
    texts: Sequence[str]


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
        self._client, self._now = client, now
        self._speech = Speech(source, out)
        self._lines = TypedLines(commands, client.origin, self._speech)
        self._pages = Pages(self._read, now, client.account)
        self._repos: dict[str, Repo] = {}  # those whose pages were opened, by full name
        self._visits: list[Visit] = []
        self._greeting = FIRST
        self._texts: dict[str, SealTexts] = {}  # what was searched last, by seal

    def run(self) -> int:
        """Returns the exit code. For a script it says whether every line was understood and carried out."""
        try:
            self._walk()
        except KeyboardInterrupt:
            self._say("")
            return EXIT_INTERRUPTED
        return int(self._speech.failed and not (self._speech.person and self._visits))

    def _walk(self) -> None:
        self._visits = visits = [Visit(self.home)]
        while visits:
            visit, self._lines.is_offline = visits[-1], False
            try:
                page = visit.make()
            except SvcError as error:
                unseen = "; this page was never read here" if isinstance(error, ServerUnreachable) else ""
                self._speech.fail(sentence(error) + unseen)
                visits.pop()
                if visits:
                    self._return_to(visits[-1])
                continue
            if not visit.name:
                visit.start = page.start
            visit.name = page.title
            answer = self._visit(page, visit)
            if answer is None:
                return
            if answer == BACK:
                visits.pop()
                self._return_to(visits[-1])
            elif callable(answer):
                visits.append(Visit(answer))

    def _return_to(self, visit: Visit) -> None:
        """Let the page of a visit print only what is new, and its choices, if it is a text that was read."""
        if visit.is_text and visit.end >= len(visit.printed):
            visit.before, visit.returns = visit.printed, True

    def home(self) -> Page:
        repos = self._read(reads.repos(self._client.account, self._folder))
        repos.sort(key=lambda repo: repo.id != self._folder)
        choices = self._list_repos(repos)
        if self._client.account:
            named = {repo.full_name: repo for repo in repos}
            inbox = Choice(self._pages.name_inbox(), lambda: self._pages.inbox(named))
            choices.append(inbox)
            choices.append(Choice("other repositories", lambda: self.others({repo.id for repo in repos})))
        else:
            choices.append(Choice("sign in", act=Act(["login"])))
        return Page(f"Repositories {len(repos)}", (), choices)

    def others(self, own_ids: set[str]) -> Page:
        """Returns the page of repositories that the account may see but has no role in. `own_ids`: the ids of
        those in which it has a role."""
        repos = [repo for repo in self._read(reads.visible_repos()) if repo.id not in own_ids]
        lines = [] if repos else ["there are no others that you may read"]
        return Page(f"Other repositories {len(repos)}", lines, self._list_repos(repos))

    def _list_repos(self, repos: list[Repo]) -> list[Choice]:
        return [
            Choice(f"{safe(repo.full_name)}  {repo.visibility} {repo.kind}", partial(self.repo, repo))
            for repo in repos
        ]

    def repo(self, repo: Repo) -> Page:
        repo = self._read(reads.repo(repo.id))
        self._repos[repo.full_name] = repo
        if repo.id == self._folder:
            self._lines.linked = repo.full_name
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
                Choice(
                    "search in the texts of all files", asks=TEXT, page_for=partial(self._search, repo, seal)
                ),
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

    def _search(self, repo: Repo, seal: str, words: str) -> Page:
        """Returns the page of the lines that contain the words, in all files of a seal."""
        from tui.screens.code.find_text import HITS, find, read_texts

        if seal not in self._texts:
            self._texts = {seal: read_texts(self._client.api, repo, seal, lambda: True)}
        texts = self._texts[seal]
        hits = find(texts.files, words)
        lines = [] if hits else ["no line has it"]
        if len(hits) == HITS:
            lines.append(f"only the first {HITS} lines; type more of the text")
        if texts.large:
            lines.append(f"not searched: {count(texts.large, 'large file')}")
        if not texts.is_whole:
            lines.append(
                "not all files were searched, because they are too large together; :grep searches all"
            )
        choices = [
            Choice(
                f"{safe(hit.path)} line {hit.line}: {safe(hit.text.strip())}",
                partial(self.file, repo, seal, hit.path, hit.line),
            )
            for hit in hits
        ]
        title = f"{count(len(hits), 'line')} with {safe(words)}"
        return page_of(repo, title, lines, choices, partial(self._search, repo, seal))

    def file(self, repo: Repo, seal: str, path: str, line: int = 1) -> Page:
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
        )._replace(start=line - 1)

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
        lines = (
            [f"the newest {len(seals)}; :log -L 1000 lists more"] if len(seals) == contents.HISTORY else []
        )
        return page_of(repo, f"history, {count(len(seals), 'seal')}", lines, choices)

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
            if self._greeting:
                self._say(self._greeting)
                self._greeting = ""
            self._say(self._hint(printed, visit))
            typed = self._speech.read()
            word = typed.strip() if typed is not None else "q"
            if word in QUITS:
                return None
            if word in ("b", "back"):
                if len(self._visits) > 1:
                    return BACK
                self._say(FIRST_PAGE)
            elif word.startswith(":"):
                self._lines.run_line(word[1:], page.facts)
                visit.before = printed.texts
                return CHANGED
            elif word == "r" or (word.startswith("/") and not page.text):
                visit.start, visit.filter = 0, visit.filter if word == "r" else word[1:]
                return AGAIN
            elif not self._read_on(word, printed, visit):
                answer = self._choose(word, printed, visit)
                if answer is not None:
                    return answer

    def _choose(self, word: str, printed: Printed, visit: Visit) -> Callable[[], Page] | str | None:
        """Do what the user chose by a number or by words. Returns what comes next, or None if the page
        stays."""
        numbered = self._find_number(word, printed.page)
        choice = self._find_choice(word, printed.choices) if numbered is None else None
        if choice is None or choice.page is not None:
            return numbered if choice is None else choice.page
        if choice.asks is not None and choice.page_for is not None:
            text = self._lines.ask(choice.asks)
            return partial(choice.page_for, text.strip()) if text and text.strip() else None
        if choice.act is None:
            self._speech.fail("there is nothing to open")
        elif self._lines.do(choice.act):
            leaves = choice.act.leaves and len(self._visits) > 1
            over = self._visits[-2] if leaves else visit
            over.before = over.printed
            return BACK if leaves else CHANGED
        return None

    def _hint(self, printed: Printed, visit: Visit) -> str:
        """Returns the line that says what can be typed: how to read on, to choose, and to go back."""
        page, choices, total = printed.page, printed.choices, len(printed.lines)
        words, helps = list[str](), "? help"
        if visit.end < total:
            words.append(f"lines {visit.start + 1} to {visit.end} of {total}, enter reads on")
        if choices and page.text and visit.end < total:
            helps = f"? lists {count(len(choices), 'choice')}"
        elif choices:
            words.append(f"1 to {len(choices)}" if len(choices) > 1 else "1")
        if visit.filter and not page.text:
            words.append("/ lists all")
        if len(self._visits) > 1:
            words.append("b back")
        if visit.returns:
            visit.returns = False
            words.append("r reads all")
        return ", ".join([*words, helps])

    def _find_number(self, word: str, page: Page) -> Callable[[], Page] | None:
        """Returns what opens the issue or proposal with the number that was typed, such as `#12`."""
        number = whole_number(word[1:]) if word.startswith("#") else None
        repo = self._repos.get(page.facts.get("repo", ""))
        return partial(self._pages.open_number, repo, number) if repo is not None and number else None

    def _find_choice(self, word: str, choices: Sequence[Choice]) -> Choice | None:
        """Returns the choice that the user means: by its number, by its first words or, if it does nothing at
        once, by other words of it. If there is none, or more than one, says what can be chosen."""
        number = whole_number(word)
        if number is not None and 0 < number <= len(choices):
            return choices[number - 1]
        sought = word.casefold()
        texts = [choice.text.casefold() for choice in choices]
        begun = (
            [place for place, text in enumerate(texts) if text.startswith(sought)] if number is None else []
        )
        exact = [place for place in begun if NAME_END.split(texts[place])[0] == sought]
        meant = exact or begun or ([] if number is not None else _places_with(sought, choices))
        if len(meant) == 1:
            return choices[meant[0]]
        if meant:
            how = "begins" if begun else "is in"
            self._speech.fail(f"{safe(word)} {how} {len(meant)} choices; type more of one, or its number:")
            for place in meant[:LISTED]:
                self._say(f"{place + 1:>4} {choices[place].text}")
            return None
        first = word.partition(" ")[0]
        is_command = self._commands is not None and first in self._commands.first_words
        offered = f"a number{_up_to(len(choices))}, or words of a choice" if choices else "b goes back"
        runs = f"; :{safe(word)} runs the command" if is_command else ""
        self._speech.fail(f"{safe(word)} is none of the choices: {offered}; ? lists what can be typed{runs}")
        return None

    def _show(self, page: Page, visit: Visit) -> Printed:
        """Print a page from where the visit is or, after a change, what is new on it."""
        choices = page.choices
        if visit.filter and not page.text:
            page, choices = self._filter_page(page, visit)
        numbered = [f"{number:>4} {choice.text}" for number, choice in enumerate(choices, 1)]
        lines = [*page.lines, *numbered]
        texts = lines if page.search is None else [*page.lines, *(choice.text for choice in choices)]
        visit.printed, printed = texts, Printed(page, choices, lines, texts)
        visit.is_text = page.text
        self._say(page.title)
        if visit.before is not None:
            places = {*_new_places(visit.before, texts)}
            if visit.returns:
                places |= {*range(len(page.lines), len(lines))}
            for place in sorted(places):
                self._say(lines[place])
            visit.before, visit.end = None, len(lines)
        else:
            visit.start = min(visit.start, max(0, len(texts) - 1))
            self._print(lines, visit)
        return printed

    def _read_on(self, word: str, printed: Printed, visit: Visit) -> bool:
        """Print what the user wants to read of the page: the next lines, those from a line on, or what can be
        typed. Returns False if the word asks for nothing of that."""
        lines, number = printed.lines, whole_number(word)
        if not word and visit.end < len(lines):
            visit.start = visit.end
            self._print(lines, visit)
        elif not word:
            self._say("that was all of it")
        elif word == "?":
            for line in self._help(printed, visit):
                self._say(line)
        elif word.startswith("/"):
            self._find(word[1:].strip(), lines, visit)
        elif printed.page.text and not printed.choices and number and number <= len(lines):
            visit.start = number - 1
            self._print(lines, visit)
        else:
            return False
        return True

    def _print(self, lines: Sequence[str], visit: Visit) -> None:
        """Print the lines from where the visit is."""
        if visit.start:
            self._say(f"line {visit.start + 1} of {len(lines)}:")
        visit.end = self._end_of_part(lines, visit.start)
        for line in lines[visit.start : visit.end]:
            self._say(line)

    def _end_of_part(self, lines: Sequence[str], start: int) -> int:
        """Returns the end of the lines that are printed at once: all of them into a pipe, on a terminal as
        many as it shows. A few last rows are printed with those before them."""
        if not self._speech.person:
            return len(lines)
        room, rows, end = max(PAGE, self._speech.height - PROMPT), 0, start
        for place in range(start, len(lines)):
            rows += self._speech.count_rows(lines[place])
            if rows <= room:
                end = place + 1
            elif rows >= room + PROMPT:
                return max(end, start + 1)
        return len(lines)

    def _help(self, printed: Printed, visit: Visit) -> list[str]:
        """Returns lines that say what can be typed on a page."""
        page, choices = printed.page, printed.choices
        lines = ["what can be typed here:"]
        if choices:
            lines.append(f"a number{_up_to(len(choices))}, or words of a choice: open it, or do it")
            lines += [line for line in printed.lines[-len(choices) :] if page.text]
        elif page.text and printed.lines:
            lines.append(f"a number{_up_to(len(printed.lines))}: read from that line")
        if visit.end < len(printed.lines):
            lines.append("enter: the next lines")
        if page.text:
            lines.append("/word: read from the next line with that word; / alone: the same word again")
        else:
            words = " ".join(page.words)
            takes = f"; {words} take a value" if words else ""
            lines.append(f"/word: only the choices with that word{takes}; / alone: all")
        if page.facts.get("repo", "") in self._repos:
            lines.append("#12: the issue or proposal with that number")
        if len(self._visits) > 1:
            lines.append(f"b: back to {safe(self._visits[-2].name)}")
        lines.append("r: ask the server, and read from the beginning")
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

    def _filter_page(self, page: Page, visit: Visit) -> tuple[Page, Sequence[Choice]]:
        """Applies the text that the user typed after `/`. Returns the page, and its choices that match. A
        text that nothing matches is forgotten."""
        text = visit.filter
        if page.search is None:
            matching = [choice for choice in page.choices if text.casefold() in choice.text.casefold()]
            if not matching:
                self._speech.fail(f"no choice has {safe(text)}; these are all")
                visit.filter = ""
            return page, matching or page.choices
        try:
            page = page.search(text)
        except SvcError as error:
            self._speech.fail(sentence(error))
            visit.filter = ""
        else:
            if not any(choice.page for choice in page.choices):  # their numbers are those of rows
                page = page._replace(choices=())
        return page, page.choices

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
            if not self._lines.is_offline:
                self._say(f"offline, as of {ago_seconds(self._now() - cached[1])}: {sentence(error)}")
            self._lines.is_offline = True
            return cached[0]

    def _say(self, text: str) -> None:
        self._speech.say(text)


def ago_seconds(seconds: float) -> str:
    """Returns an age as text in its largest unit, such as `3 h ago`. `seconds`: the age in seconds."""
    for length, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= length:
            return f"{int(seconds // length)} {unit} ago"
    return "just now"


def _places_with(sought: str, choices: Sequence[Choice]) -> list[int]:
    """Returns the places of the choices that have these words in their name or, if none has, in the rest of
    their text. Those that would do something at once are left out: only their first words choose them."""
    words = re.compile(rf"(?<!\w){re.escape(sought)}(?!\w)")
    texts = {
        place: choice.text.casefold()
        for place, choice in enumerate(choices)
        if choice.page or choice.asks or (choice.act and choice.act.missing)
    }
    named = [place for place, text in texts.items() if words.search(NAME_END.split(text)[0])]
    return named or [place for place, text in texts.items() if words.search(text)]


def _up_to(last: int) -> str:
    return f" from 1 to {last}" if last > 1 else ", which is 1"


def _new_places(before: Sequence[str], after: Sequence[str]) -> list[int]:
    """Returns the places of the lines of a page that it did not have before, apart from ages. Returns the
    first lines if it is too long to compare."""
    if max(len(before), len(after)) > COMPARED:
        return [*range(min(LISTED, len(after)))]
    old, new = ([AGE.sub("", line) for line in lines] for lines in (before, after))
    blocks = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    return [place for tag, _, _, start, end in blocks if tag != "equal" for place in range(start, end)]
