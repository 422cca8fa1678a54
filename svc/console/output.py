"""The output of one command: its answer, notes, questions and errors."""

from __future__ import annotations

import codecs
import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from itertools import chain
from typing import IO, Any, TextIO

import msgspec

from localstore.core.errors import SvcError, UsageError
from localstore.core.paths import PROSE, terminal_safe
from svc.console import select
from svc.console.answers import Answers, members
from svc.console.progress import Meter
from svc.console.select import Format
from svc.console.table import Column, Record, age, align_rows, list_fields, plain, tsv

LINES = "lines"  # the value of SVC_PLAIN for output without drawn lines and signs
JSON_ESCAPES = "svc.json"  # the handler of characters that an encoding lacks


class Out:
    """Writes the answer of a command to stdout and everything else to stderr."""

    def __init__(
        self,
        environment: Mapping[str, str],
        stdout: TextIO | None = None,
        stderr: TextIO | None = None,
    ) -> None:
        self._stdout = stdout or sys.stdout
        self._stderr = stderr or sys.stderr
        self._environment = environment
        self.format = Format()
        self.answers: Answers | None = None  # what the running command declares
        self.terminal = self._stdout.isatty()
        smart = environment.get("TERM", "") not in ("", "dumb") and not environment.get("SVC_PLAIN")
        self._colour = self.terminal and smart and not environment.get("NO_COLOR")
        self.signs = environment.get("TERM") != "dumb" and environment.get("SVC_PLAIN") != LINES
        """Whether texts may have drawn lines and signs, on which a screen reader stumbles."""
        self.draws = self.terminal and smart  # whether a table may be drawn in place
        self._pages = self.terminal and smart and sys.stdin.isatty()
        self.meter = Meter(self._stderr, live=smart and self._stderr.isatty())
        self.goes_on = False  # whether the running command, given again, goes on where Ctrl-C stopped it

    @property
    def noted(self) -> bool:
        """Whether stderr is a terminal, so that a person reads notes."""
        return self._stderr.isatty()

    @property
    def colours(self) -> bool:
        """Whether output may have colours."""
        return self._colour

    @property
    def interactive(self) -> bool:
        """Whether a person can answer questions."""
        return self.terminal and sys.stdin.isatty()

    # --- the answer

    def rows(
        self, items: Iterable[Any], columns: Sequence[Column], model: type | None = None, empty: str = ""
    ) -> None:
        """Print a list of structs or dicts as a table with these columns. `model` is a struct whose members
        `--json` can print, too. `empty` is printed on a terminal if the list is empty."""
        valid = self._fields(columns, model)
        records = (_record(item) for item in items)
        if self.format.as_data:
            chosen = select.select_fields(self.format, _names(columns), valid)
            self._data([_fields(record, columns, chosen) for record in records])
        elif not self.terminal:
            for line in tsv(records, columns):
                self._write(line + "\n")
        else:
            all_records = list(records)
            if not all_records:
                self.note(empty or "nothing to list")
                return
            self._show(
                list(align_rows(all_records, columns, self.width, _now(), self.tint, self._narrow)),
                header=True,
            )

    def table(self, records: Sequence[Record], columns: Sequence[Column]) -> list[str]:
        """Return the lines of a table that the caller redraws in place: first the header, then one line for
        each record."""
        lines = list(align_rows(records, columns, self.width - 1, _now(), self.tint))
        return [self.tint(lines[0], "bold"), *lines[1:]]

    def lines(self, records: Sequence[Record], columns: Sequence[Column], *, header: bool) -> None:
        """Print these rows at once, before the rest of the list is known. With `header`, the header is
        printed first on a terminal."""
        if self.terminal:
            with_header = list(align_rows(records, columns, self.width, _now(), self.tint)) if records else []
            rows: Iterable[str] = with_header if header else with_header[1:]
        else:
            rows = tsv(records, columns)
        self.draw("".join(f"{row}\n" for row in rows))

    def draw(self, text: str) -> None:
        """Write text unchanged, and flush. The caller must already have escaped control characters in it."""
        self._write(text)
        self.flush()

    def record(
        self,
        item: Any,
        columns: Sequence[Column],
        model: type | None = None,
        body: str = "",
        text: str = "",
        *,
        drawn: bool = False,
    ) -> None:
        """Print the fields of one struct or dict, one below the other. `model` is a struct whose members
        `--json` can print, too.

        `body` is a text that is printed below the fields, on a terminal only. `drawn` says that `body` is
        already escaped and coloured. `text` names the member that `body` was made from, or is "" if there is
        none. Where `body` is not printed, in a pipe and with `--json`, this member is printed as a field."""
        if text and (self.format.as_data or not self.terminal):
            columns = (*columns, Column(text))
        self._fields(columns, model)
        record = _record(item)
        if self.format.as_data:
            self._print_record(record, columns, model)
        elif not self.terminal:
            for column in columns:
                self._write(f"{column.name}\t{plain(column.value(record))}\n")
        else:
            lines = body.split("\n") if drawn else select.safe_for(body, terminal=True).splitlines()
            self._show([*list_fields(record, columns, _now()), *(["", *lines] if body else [])])

    def done(
        self,
        sentence: str,
        item: Any = None,
        columns: Sequence[Column] = (),
        model: type | None = None,
        value: str | None = None,
    ) -> None:
        """Print the result of a change: on a terminal the `sentence`, with `--json` the changed `item`. In a
        pipe `value` is printed, and the sentence goes to stderr. If `value` is None, the sentence itself is
        printed in the pipe; if it is "", nothing is.

        If the result cannot be printed, a note says so, but no error is raised. A script that sees an error
        would repeat the change."""
        try:
            self._done(sentence, item, columns, model, value)
            self.flush()
        except UsageError as error:  # a jq program or template that failed on its input
            self.note(f"this was done: {sentence}. Its answer cannot be shown: {error}")
        except ReaderLeft:
            discard(self._stdout)
        except OSError as error:
            discard(self._stdout)
            self.note(f"this was done: {sentence}. Its answer cannot be written: {error.strerror}")

    def _done(
        self, sentence: str, item: Any, columns: Sequence[Column], model: type | None, value: str | None
    ) -> None:
        if self.format.as_data:
            self._print_record(_record(item), columns, model)
        elif self.terminal or value is None:
            self._write(terminal_safe(sentence, keep=PROSE) + "\n")
        else:
            self.note(sentence)
            self._write(plain(value) + "\n" if value else "")

    def line(self, text: str, colour: str = "") -> None:
        """Print one line, and flush. For commands that print while they run."""
        self._write(self.tint(terminal_safe(text), colour) + "\n")
        self.flush()

    def event(self, item: Any, columns: Sequence[Column], model: type | None = None) -> None:
        """Print one struct or dict as a line of JSON, and flush. For commands that print events while they
        run."""
        chosen = select.select_fields(self.format, _names(columns), self._fields(columns, model))
        value = _fields(_record(item), columns, chosen)
        if self.format.template is not None or self.format.jq is not None:
            self._data(value)
        else:
            self._write(select.to_json(value, pretty=False) + "\n")
        self.flush()

    def text(self, text: str, *, diff: bool = False) -> None:
        """Print text; on a terminal it is shown in a pager. With `diff`, the text is a patch, and its lines
        are coloured."""
        if not self.terminal:
            self._write(text)
            return
        lines = select.safe_for(text, terminal=True).splitlines()
        self._show([self._tint_diff(line) for line in lines] if diff else lines)

    def stream(self, blocks: Iterable[str]) -> None:
        """Print blocks of whole lines as they come. On a terminal they go to a pager as soon as they fill the
        screen. The caller must already have escaped control characters in them."""
        rest = iter(blocks)
        first: list[str] = []
        if self._pages:
            room = shutil.get_terminal_size().lines
            for block in rest:
                first.append(block)
                room -= block.count("\n")
                if room <= 0:
                    if self._page(chain(first, rest)):
                        return
                    break
        for block in chain(first, rest):
            self._write(block)

    def data(self, value: Any, *, filtered: bool = True) -> None:
        """Print any JSON value. With `filtered`, the program of `--jq` is applied first, if there is one."""
        if self.format.jq is not None and filtered:
            results = select.run_jq(self.format.jq, value, pretty=self.terminal)
            self._results(results)
        else:
            self._write(select.to_json(value, pretty=self.terminal) + "\n")

    def foreign(self, data: bytes) -> None:
        """Print bytes that other people wrote. In a pipe they are unchanged; on a terminal control characters
        are escaped."""
        if self.terminal:
            self.text(data.decode("utf-8", "backslashreplace"))
        else:
            self.binary([data])

    def binary(self, pieces: Iterable[bytes]) -> None:
        """Print bytes unchanged."""
        target: IO[bytes] = self._stdout.buffer
        self.flush()
        with _while_read():
            for piece in pieces:
                target.write(piece)
            target.flush()

    # --- beside it

    def note(self, sentence: str) -> None:
        """Print a note to stderr."""
        self._print_to_stderr(sentence)

    def error(self, error: SvcError) -> None:
        self.fail(self.format_error(error))

    def format_error(self, error: SvcError) -> str:
        """Return the sentence of an error for the user. Times in it are formatted for the output, such as `2
        h ago` on a terminal. A time is recognised by the members of the error whose names end in `_at`."""
        sentence = error.detail or error.title
        for name, moment in error.extra.items():
            if name.endswith("_at") and isinstance(moment, str) and moment:
                sentence = sentence.replace(f"at {moment}", self.when(moment))
        return sentence

    def fail(self, sentence: str) -> None:
        self._print_to_stderr(f"svc: {sentence}")

    def _print_to_stderr(self, sentence: str) -> None:
        with suppress(OSError):  # nobody reads it, or the disk is full: no reason for the command to fail
            self.meter.clear()
            print(terminal_safe(sentence, keep=PROSE), file=self._stderr, flush=True)

    def ask(self, question: str) -> bool:
        """Ask a yes-or-no question. Returns whether the answer is yes. Call only if `interactive`."""
        self.meter.clear()
        print(f"{terminal_safe(question)} [y/N] ", end="", file=self._stderr, flush=True)
        try:
            typed = sys.stdin.readline()
        except KeyboardInterrupt:
            print(file=self._stderr)  # start a new line
            raise
        if not typed.endswith("\n"):
            print(file=self._stderr)
        return typed.strip().lower() in ("y", "yes")

    def link(self, url: str) -> None:
        """Print an address on a line of its own, as a link on terminals with colours."""
        label = terminal_safe(url)
        self._write((f"\x1b]8;;{label}\x1b\\{label}\x1b]8;;\x1b\\" if self._colour else label) + "\n")

    def when(self, moment: str) -> str:
        """Format a time for a sentence: as `in 29 d` on a terminal, as the full time elsewhere."""
        return age(moment, _now()) if self.terminal else f"at {moment}"

    def moment(self, moment: str) -> str:
        """Format a time for a page about one object. On a terminal the result is the age and the full time,
        as in `2 h ago (2026-…)`; elsewhere it is the full time."""
        return f"{age(moment, _now())} ({moment})" if self.terminal else moment

    @property
    def width(self) -> int:
        return max(shutil.get_terminal_size((100, 24)).columns, 20)

    def tint(self, text: str, colour: str) -> str:
        """Return the text in a colour (red, green, yellow, cyan, bold) if colours are enabled."""
        codes = {"red": "31", "green": "32", "yellow": "33", "cyan": "36", "bold": "1"}
        return f"\x1b[{codes[colour]}m{text}\x1b[0m" if self._colour and colour else text

    def style(self, text: str, codes: str) -> str:
        """Return the text with escape sequences of these SGR codes, such as `1;36` for bold cyan, if colours
        are enabled."""
        return f"\x1b[{codes}m{text}\x1b[0m" if self._colour and codes else text

    def _narrow(self, headers: list[str]) -> None:
        names = ", ".join(header.lower() for header in headers)
        self.note(f"not shown at {self.width} columns: {names}")

    def _tint_diff(self, line: str) -> str:
        if line.startswith(("+++", "---", "diff ")):
            return self.tint(line, "bold")
        if line.startswith("@@"):
            return self.tint(line, "cyan")
        return self.tint(line, {"+": "green", "-": "red"}[line[0]]) if line[:1] in ("+", "-") else line

    def _show(self, lines: list[str], *, header: bool = False) -> None:
        if header and lines:
            lines[0] = self.tint(lines[0], "bold")
        text = "\n".join(lines) + "\n"
        long = self._pages and len(lines) >= shutil.get_terminal_size().lines
        if not (long and self._page([text])):
            self._write(text)

    def _page(self, pieces: Iterable[str]) -> bool:
        from svc.console.pager import page

        return page(pieces, self._environment)

    def _fields(self, columns: Sequence[Column], model: type | None) -> list[str]:
        """Return the names of the fields that `--json` accepts. Raises TypeError if the command did not
        declare all of these columns (with `answers`)."""
        given = _names(columns) + members(model)
        if self.answers is None:
            return given
        unknown = set(given) - set(self.answers.fields) - set(_names(self.answers.table))
        if unknown:
            raise TypeError(f"the command answers {', '.join(sorted(unknown))} and does not declare it")
        return self.answers.fields

    def _print_record(self, record: Record, columns: Sequence[Column], model: type | None) -> None:
        chosen = select.select_fields(self.format, _names(columns), self._fields(columns, model))
        self._data(_fields(record, columns, chosen))

    def _data(self, value: Record | list[Record]) -> None:
        if self.format.template is not None:
            records = value if isinstance(value, list) else [value]
            self._results(select.run_template(self.format.template, records))
        else:
            self.data(value)

    def _results(self, results: list[str]) -> None:
        for result in results:
            self._write(select.safe_for(result, terminal=self.terminal) + "\n")

    def _write(self, text: str) -> None:
        self.meter.clear()
        with _while_read():
            self._stdout.write(self._escape_unencodable(text) if self.format.as_data else text)

    def flush(self) -> None:
        """Write everything that was printed so far."""
        with _while_read():
            self._stdout.flush()

    def _escape_unencodable(self, text: str) -> str:
        """Return the JSON text with each character that the encoding of stdout lacks written as a JSON
        escape."""
        encoding = getattr(self._stdout, "encoding", None) or "utf-8"
        return text.encode(encoding, JSON_ESCAPES).decode(encoding)


class ReaderLeft(Exception):
    """Raised when the reader of stdout has closed it, as `head` does in `svc log | head`. It is not an
    OSError, because the argument parser would turn an OSError into another exit code."""


@contextmanager
def _while_read() -> Iterator[None]:
    """A context for writing to stdout. Raises ReaderLeft if nobody reads it any more."""
    try:
        yield
    except BrokenPipeError:
        raise ReaderLeft from None


def discard(stream: TextIO) -> None:
    """Send everything that is still in the stream's buffer, or is written to it later, to /dev/null. Used
    when nobody reads the stream any more, because Python would otherwise print an error when it exits."""
    with suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)


def _json_escapes(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    import json

    return json.dumps(error.object[error.start : error.end])[1:-1], error.end


codecs.register_error(JSON_ESCAPES, _json_escapes)


def _record(item: Any) -> Record:
    return item if isinstance(item, dict) else msgspec.to_builtins(item)


def _names(columns: Sequence[Column]) -> list[str]:
    return [column.name for column in columns]


def _fields(record: Record, columns: Sequence[Column], chosen: Sequence[str]) -> Record:
    derived = {column.name: column for column in columns}
    return {name: derived[name].value(record) if name in derived else record.get(name) for name in chosen}


def _now() -> datetime:
    return datetime.now(UTC)
