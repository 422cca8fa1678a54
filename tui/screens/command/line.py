"""A card in which the user types a command line of svc. It is completed from the table of commands."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from difflib import get_close_matches

from textual.app import ComposeResult

from tui.commands import OF_A_REPO, REPO, YES, Commands, Parameter, ends_something, parse_values
from tui.screens.card import Card
from tui.screens.command.offered import Offered, argument_at
from tui.text import Part, safe
from tui.widgets.frame import Prompt
from tui.widgets.lines import Item, Lines, sequence
from tui.widgets.ranked import NAMED, distance
from tui.wording import in_app

HELP = "help"  # a word that svc takes in place of a command
QUITS = ("q", "q!", "quit", "exit")  # lines that end the app, as in other programs
GLOBAL = ("--server", "--json", "--jq", "--template", "--version")  # options of every command
OF_ANOTHER_REPO = ("repo clone", "repo create", "repo init")  # commands that name their repository
RANGE = re.compile(r".*?\.{2,3}")  # what comes before the end of a range such as main..topic
AS_IT_STANDS = "nothing completes this; enter runs it as it stands"


class CommandLine(Card):
    """A card in which the user types a command line. Tab completes it as far as all candidates agree, then
    to the one under the cursor, and enter runs it. On an empty line, up brings the command lines that were
    run before, the newest first. `values`: returns those parameters of a command that the screen below
    supplies. `typed`: the lines that were run before. A line that is run now is put at its beginning. `line`:
    what is typed already. `fault`: what is wrong with it."""

    WIDTH = 120

    def __init__(
        self,
        commands: Commands,
        values: Callable[[str, Sequence[Parameter]], dict[str, str]],
        typed: list[str],
        line: str = "",
        fault: str = "",
    ) -> None:
        super().__init__()
        self._begun, self._fault = line, fault
        self._commands, self._values, self._typed = commands, values, typed
        self._line = ""
        self._offered: Offered | None = None  # None if no repository is shown
        self._brought = -1  # the place of the line in `typed` that was brought back; -1 if none was

    def content(self) -> ComposeResult:
        yield Lines(empty=AS_IT_STANDS, id="candidates")

    def title_parts(self) -> Sequence[Part]:
        words = self._line.split()
        path = self._commands.path_in(words)
        about = self._repo_of(path, words[len(path.split()) :]) if path else ""
        brings = ", up brings the last command" if self._typed and not self._line else ""
        return (
            (f" svc {path}".rstrip(), "title"),
            (f"  {safe(about)}" if about else "", "dim"),
            (f"  tab completes{brings}", "dim"),
        )

    def _repo_of(self, path: str, words: Sequence[str]) -> str:
        """Returns the repository that a command is about: the one that is typed or, if the command is about
        a repository, the one that is shown. Returns "" if there is none, or if an option is unknown."""
        fields = self._commands.fields(path)
        typed = parse_values(fields, words)
        if typed is None:
            return ""
        first = path.partition(" ")[0]
        repo = self.svc.here() if first in OF_A_REPO and first != "repo" else ""  # "repo list" is about all
        values = {**self._values(path, fields), **typed}
        return values.get("repository", "") or typed.get("repo", "") or repo

    def on_mount(self) -> None:
        super().on_mount()
        repo = self.subject()[0]
        repo_id = repo.id if repo is not None else self.svc.place.repo_id
        if repo_id:
            self._offered = Offered(self.svc, repo_id, self._list_again)
        self._list_candidates(self._begun)
        self.fit(len(self._commands.summaries))
        self.open_prompt(self._begin)

    def _begin(self) -> None:
        self._type(self._begun)
        if self._fault:
            self.say(self._fault, "warn")

    def _type(self, value: str = "") -> None:
        lines = self.query_one("#candidates", Lines)
        self.ask(
            "",
            self._done,
            self._list_candidates,
            value,
            self._complete,
            filtered=lines,
            enter="run",
            label=": svc",
            move=self._step,
        )

    def _step(self, step: int) -> None:
        """Bring back a line that was run before if nothing is typed, or if such a line was brought back.
        Otherwise move the cursor in the list of candidates."""
        prompt, typed = self.query_one(Prompt), self._typed
        brought = typed[self._brought] if self._brought >= 0 else ""
        if prompt.value != brought:
            brought, self._brought = "", -1
        place = self._brought - step
        if (prompt.value and not brought) or place < -1 or not typed:
            self.query_one("#candidates", Lines).move(step)
            return
        self._brought = min(place, len(typed) - 1)
        prompt.value = typed[self._brought] if self._brought >= 0 else ""
        prompt.cursor_position = len(prompt.value)

    def _complete(self, line: str) -> str:
        """Returns the command line, completed by what all candidates that go on with it have in common. If
        that is nothing, or the user has moved the cursor, it is completed to the candidate under the
        cursor."""
        lines = self.query_one("#candidates", Lines)
        key, rows = lines.key, lines.rows
        if not isinstance(key, str):
            return line
        keys = [rows[at].key for at in range(len(rows))]
        going_on = [other for other in keys if isinstance(other, str) and other.startswith(self._line)]
        common = _common_beginning(going_on)
        is_moved = key != keys[0]
        if len(going_on) > 1 and len(common) > len(self._line) > 0 and not is_moved:
            return common
        return f"{key} "

    def _done(self, line: str) -> None:
        typed, line = line, line.strip().removeprefix("svc ").strip()
        if line in QUITS:
            self.svc.exit()
            return
        fault = self._fault_of(line)
        key = self.query_one("#candidates", Lines).key
        words = line.split()
        is_known = key is None or self._commands.elsewhere_of(words) or self._commands.path_in(words)
        if fault and not is_known and str(key).split()[: len(words)] != words:
            fault, typed = "that is no command yet; enter runs this one", f"{key} "
        if fault:
            self._type(typed)  # to be corrected
            lines = self.query_one("#candidates", Lines)
            says_it = not lines.rows and lines.empty == safe(in_app(fault))
            self.say("nothing ran; correct the line, or esc leaves it" if says_it else fault, "warn")
            return
        self.app.pop_screen()
        if line:
            self._typed[:] = [line, *(other for other in self._typed if other != line)]
        self.svc.run_line(line)

    def _fault_of(self, line: str) -> str:
        """Returns what is wrong with a line, as far as the table of commands says it. Returns "" if nothing
        is."""
        words = line.split()
        commands = self._commands
        elsewhere = commands.elsewhere_of(words)
        if elsewhere or HELP in words[:1] or "-h" in words or "--help" in words:
            return elsewhere
        path = commands.path_in(words)
        if path:
            return self._unknown_option(path, words[len(path.split()) :])
        return self._unknown(line) or self._unknown_second(words)

    def _unknown(self, line: str) -> str:
        """Returns a sentence that says that no command of svc begins with the first word of the line. Returns
        "" if one does."""
        word = line.partition(" ")[0]
        firsts = dict.fromkeys(path.partition(" ")[0] for path in self._commands.summaries)
        if not word or word.startswith("-") or word == HELP or word in self._commands.first_words:
            return ""
        near = get_close_matches(word, firsts, 3)
        words = f"did you mean {' or '.join(near)}?" if near else "backspace lists them, and ? the keys here"
        return f"svc has no command {word}; {words}"

    def _unknown_option(self, path: str, words: Sequence[str]) -> str:
        """Returns a sentence that names the first option that the command does not have."""
        fields = self._commands.fields(path)
        spellings = [spelled for field in (*fields, REPO, YES) for spelled in field.spelled]
        for word in words:
            name = word.partition("=")[0]
            if name == "--":
                break
            if name.startswith("--") and name not in (*spellings, *GLOBAL):
                near = get_close_matches(name, spellings, 1)
                means = f"did you mean {near[0]}?" if near else "tab lists those that it has"
                return f"svc {path} has no option {name}; {means}"
        return ""

    def _unknown_second(self, words: Sequence[str]) -> str:
        """Returns a sentence about words that begin a command and do not go on to one, such as `pr lst`.
        Returns "" if they are not of that kind."""
        begun = next((at for at in (2, 1) if len(words) >= at and self._seconds(words[:at])), 0)
        if not begun:
            return ""
        seconds, first = self._seconds(words[:begun]), " ".join(words[:begun])
        if len(words) == begun:
            return f"svc {first} goes on with {', '.join(seconds)}"
        near = get_close_matches(words[begun], seconds, 2)
        means = f"did you mean {' or '.join(near)}?" if near else f"it goes on with {', '.join(seconds)}"
        return f"svc {first} has no command {words[begun]}; {means}"

    def _seconds(self, words: Sequence[str]) -> list[str]:
        """Returns the words that can follow these words of a command."""
        begin = f"{' '.join(words)} "
        follow = (
            path.removeprefix(begin).partition(" ")[0]
            for path in self._commands.summaries
            if path.startswith(begin)
        )
        return [*dict.fromkeys(follow)]

    def prompt_left(self) -> None:
        self.do_back()

    # --- candidates

    def _list_candidates(self, line: str) -> None:
        before = self.title_parts()
        self._line = line.lstrip().removeprefix("svc ").lstrip()
        if self.title_parts() != before:
            self.show_frame()
        candidates = self._candidates()
        lines = self.query_one("#candidates", Lines)
        if self._line in QUITS:
            lines.empty = "enter quits the app"
            candidates = []
        elif not candidates:
            lines.empty = safe(in_app(self._fault_of(self._line))) or AS_IT_STANDS
        lines.show(sequence(candidates), candidates[0].key if candidates else None)
        self._say_position()

    def _list_again(self) -> None:
        """List the candidates for the typed line, because more of them are known."""
        prompt = next(iter(self.query(Prompt)), None)
        if prompt is not None and self.is_attached:
            self._list_candidates(prompt.value)

    def _candidates(self) -> list[Item]:
        *before, typed = self._line.split(" ")
        words = [*filter(None, before), typed]  # two blanks are no word between them
        path = self._commands.path_in(words)
        if path and len(words) > len(path.split()):
            return self._of_command(path, words)
        searched = self._line.casefold().split()
        matches = [
            (self._rank(name, summary), name, summary)
            for name, summary in self._commands.summaries.items()
            if all(word in f"{name} {summary}".casefold() for word in searched)
        ]
        return [_item(name, name, summary) for _, name, summary in sorted(matches)]

    def _rank(self, name: str, summary: str) -> tuple[bool | int, ...]:
        """Returns how badly a command matches the typed line: the smallest is the best. Among equals, one
        that ends or removes something comes last."""
        typed, recent = self._line.casefold().strip(), self._recent_paths()
        if not typed:
            return ()
        last = recent.get(name, len(recent))
        cost, *others = distance(f"{name}{NAMED}{summary}".casefold(), typed, last)
        return (not name.startswith(self._line), cost, ends_something(name), *others)

    def _recent_paths(self) -> dict[str, int]:
        """Returns the commands that were run before, each with how many others were run later."""
        paths = (self._commands.path_in(line.split()) for line in self._typed)
        return {path: at for at, path in enumerate(dict.fromkeys(filter(None, paths)))}

    def _of_command(self, path: str, words: list[str]) -> list[Item]:
        typed, before = words[-1], " ".join(words[:-1])
        fields = self._commands.fields(path)
        given = words[len(path.split()) : -1]
        awaited = argument_at(fields, given)
        takes_value = awaited is not None and bool(awaited.spelled)
        meanings: dict[str, str] = {}
        if awaited is not None and not typed.startswith("-"):
            meanings = self._values_of(path, awaited, words)
        if not takes_value:
            meanings |= {
                field.spelled[0]: field.help
                for field in fields
                if field.spelled and (field.many or not {*field.spelled} & {*given})
            }
        return [
            _item(f"{before} {name}", name, meaning)
            for name, meaning in meanings.items()
            if name.startswith(typed)
        ]

    def _values_of(self, path: str, field: Parameter, words: list[str]) -> dict[str, str]:
        """Returns the values that are offered for a parameter, each with its meaning. The value of what the
        screen shows comes first, unless the command cannot act on it."""
        names_repo = any(word.partition("=")[0] in REPO.spelled for word in words)
        offered = None if names_repo or self._offered is None else self._offered.values(path, field.name)
        on_screen = self._values(path, self._commands.fields(path)).get(field.name, "")
        meanings: dict[str, str] = {}
        is_fit = not offered or on_screen in offered
        if on_screen and not field.spelled and on_screen not in words[:-1] and is_fit:
            title = (offered or {}).get(on_screen, "")
            meanings[on_screen] = f"the {field.name} that is shown{f': {title}' if title else ''}"
        if offered is None and not names_repo:
            offered = {**self._refs_of(path, field, words[-1]), **dict(self._commands.complete(words))}
        return {**meanings, **{name: text for name, text in (offered or {}).items() if name not in meanings}}

    def _refs_of(self, path: str, field: Parameter, typed: str) -> dict[str, str]:
        """Returns the branches and tags that the parameter takes, of the repository that the command is
        about. After the dots of a range, each is the end of the range."""
        offered = self._offered
        if not field.refs or offered is None or path in OF_ANOTHER_REPO:
            return {}
        if path.partition(" ")[0] not in OF_A_REPO and offered.repo_id != self.svc.place.repo_id:
            return {}  # the command is about the folder
        begun = RANGE.match(typed) if field.many else None
        refs = offered.refs(field.refs)
        return {f"{begun[0]}{name}": kind for name, kind in refs.items()} if begun else refs


def _common_beginning(texts: Sequence[str]) -> str:
    """Returns the text with which all of these begin."""
    if not texts:
        return ""
    first, last = min(texts), max(texts)
    differs = (at for at, letter in enumerate(first) if last[at : at + 1] != letter)
    return first[: next(differs, len(first))]


def _item(line: str, name: str, meaning: str) -> Item:
    """Returns the row of a candidate. `line`: the command line completed to this candidate. It is the key of
    the row."""
    return Item(line, ((f"{safe(name):<26} ", "accent"), (safe(meaning), "dim")), text=line)
