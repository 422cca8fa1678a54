"""Runs commands of svc for the line mode, and asks for what they need.

    lines = TypedLines(commands, origin, speech)
    lines.run(["issue", "close", "41"])  # True if it succeeded

On a terminal a command has the terminal to itself: it asks its own questions and may open an editor. In a
script its output is printed as a person reads it, and its question is answered by the next line of the
script. In both cases the output has no colours and no drawn lines."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import TextIO

from localstore.core.errors import SvcError
from localstore.core.numbers import whole_number
from localstore.core.words import count
from svc.console.output import LINES
from tui.client import sentence
from tui.commands import SEAL, Commands, Parameter, known_values, missing, parse_values, words_of
from tui.page_acts import Act, Missing
from tui.text import hang, safe
from tui.wording import in_app

YES = ("y", "yes")
WIDTH = 1000  # columns of the output of a command in a script, where nothing is cut
MANY = 30  # names that a question lists at most
ERROR = "svc: "
NOTHING_SENT = "nothing was sent"


class Speech:
    """What the line mode reads and prints. `person`: whether a person sits at a terminal; otherwise the lines
    are those of a script. `failed`: whether a line of the script was not understood, or could not be carried
    out. The script ends there, because its other lines would mean something else."""

    def __init__(self, source: TextIO, out: TextIO) -> None:
        self._in, self.out, self.failed = source, out, False
        self.person = source.isatty() and out.isatty()

    @property
    def height(self) -> int:
        """How many rows the terminal has."""
        return shutil.get_terminal_size().lines

    def say(self, text: str) -> None:
        print("\n".join(self._rows(text)), file=self.out, flush=True)

    def count_rows(self, text: str) -> int:
        return len(self._rows(text))

    def _rows(self, text: str) -> list[str]:
        """Returns a line as it is printed. On a terminal it is wrapped between words, because the terminal
        itself would wrap it within them."""
        if not self.out.isatty():
            return [safe(text)]
        return hang(text, shutil.get_terminal_size().columns)

    def fail(self, text: str) -> None:
        self.failed = True
        self.say(text)

    def read(self) -> str | None:
        """Returns the next line without its end. Returns None at the end of the input."""
        if self.failed and not self.person:
            if any(line.strip() for line in self._in):
                self.say("the script ends here; the lines after this one were not carried out")
            return None
        typed = self._in.readline()
        if not typed and self.person:
            self.say("")  # the shell's prompt begins a line
        return typed.rstrip("\r\n") if typed else None

    def answer(self) -> str | None:
        """Returns the line that answers a question. Returns None at the end of the input, and if the user
        leaves the question with ctrl+c."""
        try:
            return self.read()
        except KeyboardInterrupt:
            self.say("")
            return None


class TypedLines:
    """Runs commands. `commands`: the commands of svc, or None if they are not known. `origin`: the server
    that they use. `is_offline`: whether the page could not be read from it; an action then waits
    in the queue, if it is about the repository of the linked folder (`linked`, "" if it is not known)."""

    def __init__(self, commands: Commands | None, origin: str, speech: Speech) -> None:
        self._commands, self._origin, self._speech = commands, origin, speech
        self.is_offline, self.linked = False, ""

    # --- a line that the user typed

    def run_line(self, line: str, facts: Mapping[str, str]) -> None:
        """Run a command line. What it lacks is taken from the page, or asked for. `facts`: what the page
        shows."""
        say = self._speech
        try:
            words = shlex.split(line.strip().removeprefix("svc "))
        except ValueError as error:
            say.fail(f"the command line cannot be read: {error}")
            return
        if not words:
            say.fail("a command of svc follows the colon, such as :issue list; :help lists all")
            return
        elsewhere = self._commands.elsewhere_of(words) if self._commands is not None else ""
        if elsewhere:
            say.fail(elsewhere)
            return
        completed = self._complete(words, facts)
        if completed is not None:
            self.run(completed)

    def _complete(self, words: list[str], facts: Mapping[str, str]) -> list[str] | None:
        """Returns the words of a command line, with the values that it lacks and the page has. On a terminal
        the user is asked for what is still missing; None if they leave that."""
        commands = self._commands
        path = commands.path_in(words) if commands is not None else ""
        if commands is None or not path or "--help" in words or "-h" in words:
            return words
        fields = commands.fields(path)
        typed = parse_values(fields, words[len(path.split()) :])
        if typed is None:
            return words
        from_page = known_values(path, fields, facts, facts.get("repo", ""), linked=False)
        from_page.pop(SEAL, None)
        values = {**from_page, **typed}
        for field in missing(fields, values):
            names = self._names_for(words_of(path, fields, values), field)
            if not self._speech.person:
                if names:
                    self._speech.say(f"{field.name.upper()} is one of: {', '.join(names[:MANY])}")
                break
            text = self.ask(Missing(field.help or field.name, "", names=names.copy))
            if not text:
                self._speech.say("nothing was done")
                return None
            values[field.name] = shlex.quote(text) if field.many else text
        return words_of(path, fields, values)

    def _names_for(self, words: list[str], field: Parameter) -> list[str]:
        """Returns what can be given for a parameter that a command line lacks, as far as that is known."""
        if field.choices or self._commands is None:
            return [*field.choices]
        try:
            return [name for name, _ in self._commands.complete([*words, ""]) if not name.startswith("-")]
        except (SvcError, OSError):
            return []

    # --- an action of a page

    def do(self, act: Act) -> bool:
        """Ask for the texts that an action needs, and do it. Returns False if it is not done: if the user
        leaves it or does not confirm it, or if it fails."""
        words, arguments = [*act.words], list[str]()
        for needed in act.missing:
            text = self.ask(needed)
            if text is None or (needed.required and not text.strip()):
                self._speech.fail(NOTHING_SENT)
                return False
            if text.strip() and needed.option:
                words.append(f"{needed.option}={text}")
            elif text.strip():
                arguments.append(text.strip())
        if self.is_offline and self._can_wait(words):
            at = words.index("--repo")  # a command that waits is about the repository of the folder
            words = [*words[:at], *words[at + 2 :], "--queue"]
        if not self.run([*words, "--", *arguments] if arguments else words):
            return False
        if act.undo:
            self._speech.say(f"to undo that, type :{shlex.join(act.undo)}")
        return True

    def _can_wait(self, words: Sequence[str]) -> bool:
        """Returns whether a command line can be kept until the server answers."""
        commands = self._commands
        path = commands.path_in(words) if commands is not None else ""
        if commands is None or not path or not self.linked or "--repo" not in words:
            return False
        is_about_folder = words[words.index("--repo") + 1] == self.linked
        return is_about_folder and any("--queue" in field.spelled for field in commands.fields(path))

    def ask(self, needed: Missing) -> str | None:
        """Returns the text that the user types. Returns None if they leave it, or if the input ends."""
        if needed.several:
            return self._ask_text(needed)
        try:
            names = list(needed.names())
        except SvcError as error:
            self._speech.say(sentence(error))
            names = []
        listed = not all(name.isdigit() for name in names)
        words = needed.words if listed or not names else f"{needed.words}, {_range(names)}"
        self._speech.say(f"{words}; an empty line leaves it:" if needed.required else f"{words}:")
        for number, name in enumerate(names[:MANY] if listed else (), 1):
            self._speech.say(f"{number:>4} {name}")
        if listed and len(names) > MANY:
            self._speech.say(f"{MANY} of {count(len(names), 'name')}; any of them can be typed")
        while True:
            typed = self._speech.answer()
            if typed is None or not names or not typed.strip():
                return typed
            chosen = _choose(typed.strip(), names)
            if chosen:
                return chosen
            self._speech.fail(f"{typed.strip()} is not one of them; an empty line leaves it")
            if not self._speech.person:
                return None

    def _ask_text(self, needed: Missing) -> str | None:
        leaves = "a line with only a dot ends it, a line with only ! leaves it"
        self._speech.say(f"{needed.words}; {leaves}:")
        lines: list[str] = []
        while (line := self._speech.answer()) is not None:
            if line == ".":
                return "\n".join(lines).strip()
            if line == "!":
                return None
            lines.append(line)
        return None

    # --- running

    def run(self, words: list[str]) -> bool:
        """Run a command of svc. Returns whether it was done."""
        if self._commands is not None and not self._speech.person:
            return self._run_in_script(self._commands, words)
        return self._run_in_terminal(words)

    def _run_in_terminal(self, words: list[str]) -> bool:
        self._speech.out.flush()
        environment = {**os.environ, "SVC_SERVER": self._origin, "SVC_PLAIN": LINES}
        command = [sys.executable, "-P", "-m", "svc", *words]
        process = subprocess.Popen(command, env=environment)  # a person typed it
        while True:
            try:
                succeeded = process.wait() == 0
                self._speech.failed |= not succeeded
                return succeeded
            except KeyboardInterrupt:  # the command has got it too, and ends
                continue

    def _run_in_script(self, commands: Commands, words: list[str]) -> bool:
        printed = ""

        def print_more(output: str) -> None:
            """Print the whole lines of the output so far that were not printed before: the command may wait
            for somebody who does what they say."""
            nonlocal printed
            if output.startswith(printed):
                whole = output[: output.rfind("\n") + 1]
                self._print_output(whole[len(printed) :])
                printed = max(printed, whole, key=len)

        try:
            response = commands.run(words, None, WIDTH, lambda: False, print_more)
        except (SvcError, OSError) as error:
            self._speech.fail(sentence(error))
            return False
        data = response.data if isinstance(response.data, dict) else {}
        question = str(data.get("question", ""))
        if question:
            return self._confirm(commands, words, question)
        text = str(data.get("text", "")) or (response.error.message if response.error else "")
        self._print_output(text.removeprefix(printed).rstrip())
        self._speech.failed |= not response.success
        return response.success

    def _print_output(self, text: str) -> None:
        for line in text.splitlines():
            self._speech.say(in_app(line) if line.startswith(ERROR) else line)

    def _confirm(self, commands: Commands, words: list[str], question: str) -> bool:
        """Ask the question of a command, and run it if the answer is yes."""
        self._speech.say(f"{question}. Go on? y or n:")
        typed = self._speech.answer()
        if typed is None or typed.strip().lower() not in YES:
            self._speech.say("nothing was changed")
            self._speech.failed |= typed is None  # a "no" is no failure
            return False
        place = len(commands.path_in(words).split())
        return self._run_in_script(commands, [*words[:place], "--yes", *words[place:]])


def _range(names: Sequence[str]) -> str:
    """Returns numbers in words, such as `0 to 20` or, if some are missing between them, `9, 7, 2`."""
    numbers = [int(name) for name in names]
    if len(numbers) > 2 and numbers == [*range(numbers[0], numbers[-1] + 1)]:
        return f"{names[0]} to {names[-1]}"
    more = f" and {len(names) - MANY} others" if len(names) > MANY else ""
    return ", ".join(names[:MANY]) + more


def _choose(typed: str, names: Sequence[str]) -> str:
    """Returns the name that the user means: by its text, its number in the list, or its beginning if no other
    name has it. Returns "" if they mean none."""
    if typed in names:
        return typed
    number = whole_number(typed)
    if number is not None and 0 < number <= min(len(names), MANY):
        return names[number - 1]
    begun = [name for name in names if name.casefold().startswith(typed.casefold())]
    return begun[0] if len(begun) == 1 else ""
