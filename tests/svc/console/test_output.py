"""How answers look: for people, for programs, as data, and with a stranger's text in them."""

from __future__ import annotations

import io
import json
import os
import pty
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from localstore.core.errors import UsageError
from localstore.core.model.ref import Ref
from localstore.core.model.repo import Repo
from svc.console import Answers, Column, Format, Out
from svc.console.progress import Meter
from svc.console.select import run_jq, run_template, select_fields, to_json
from svc.console.table import age, align_rows, cells, human, plain, size, tsv
from tests.patience import PATIENCE

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
COLUMNS = (Column("name"), Column("head", kind="id"), Column("upper", lambda r: r["name"].upper()))
ROWS = [{"name": "main", "head": "a" * 64}, {"name": "päckchen", "head": None}]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def written(out_format: Format, *, terminal: bool = False) -> tuple[str, str]:
    stdout, stderr = (Terminal() if terminal else io.StringIO()), io.StringIO()
    out = Out({"TERM": "dumb"}, stdout, stderr)
    out.format = out_format
    out.rows(ROWS, COLUMNS, Ref)
    return stdout.getvalue(), stderr.getvalue()


def test_a_pipe_gets_whole_values_and_no_header() -> None:
    assert written(Format())[0] == f"main\t{'a' * 64}\tMAIN\npäckchen\t\tPÄCKCHEN\n"


def test_a_terminal_gets_a_table_with_the_same_columns() -> None:
    lines = written(Format(), terminal=True)[0].splitlines()
    assert [line.split() for line in lines] == [
        ["NAME", "HEAD", "UPPER"],
        ["main", "aaaaaaaaaaaa", "MAIN"],
        ["päckchen", "PÄCKCHEN"],
    ]
    assert lines[1].index("aaaa") == lines[0].index("HEAD")


def test_bare_json_is_the_columns_and_fields_choose() -> None:
    assert [list(row) for row in json.loads(written(Format(()))[0])] == [["name", "head", "upper"]] * 2
    assert json.loads(written(Format(("upper",)))[0]) == [{"upper": "MAIN"}, {"upper": "PÄCKCHEN"}]
    assert json.loads(written(Format(("frontier", "name")))[0])[0] == {"frontier": None, "name": "main"}


def test_an_unknown_field_lists_the_valid_ones() -> None:
    with pytest.raises(UsageError) as raised:
        select_fields(Format(("nam",)), ["name", "head"], ["id"])
    assert "did you mean name?" in raised.value.detail
    assert "name, head, id" in raised.value.detail


def test_no_field_is_given_that_was_not_declared() -> None:
    """Or `--json` could refuse it only after the command's work."""
    out = Out({}, io.StringIO(), io.StringIO())
    out.answers = Answers((Column("name"),), Ref, (Column("upper"),))
    out.rows(ROWS, COLUMNS, Ref)
    for columns, model in (((Column("other"),), None), ((Column("name"),), Repo)):
        with pytest.raises(TypeError, match="does not declare"):
            out.record({}, columns, model)


def test_the_text_of_one_thing_is_below_it_for_people_and_a_field_elsewhere() -> None:
    def shown(form: Format, terminal: bool) -> str:
        stdout = Terminal() if terminal else io.StringIO()
        out = Out({"TERM": "dumb"}, stdout, io.StringIO())
        out.format, out.answers = form, Answers((Column("name"), Column("notes")))
        out.record({"name": "v1", "notes": "a\nb"}, (Column("name"),), body="a\nb", text="notes")
        return stdout.getvalue()

    assert shown(Format(), True).split() == ["name", "v1", "a", "b"]
    assert shown(Format(), False) == "name\tv1\nnotes\ta\\x0ab\n"
    assert json.loads(shown(Format(()), True)) == {"name": "v1", "notes": "a\nb"}


def test_what_cannot_be_answered_is_refused_before_anything_runs() -> None:
    declared = Answers((Column("name"),), Ref)
    for good in (Format(()), Format(("head",)), Format(jq=".nope"), Format(template="{{name}} {{range(2)}}")):
        declared.check(good)
    for bad in (Format(("nope",)), Format(jq=".["), Format(template="{{nope}}"), Format((), template="{%")):
        with pytest.raises(UsageError):
            declared.check(bad)
    with pytest.raises(UsageError, match="the fields are: name"):
        declared.check(Format(("name",), template="{{head}}"))


def test_jq_and_template() -> None:
    assert written(Format(jq=".[] | .name"))[0] == "main\npäckchen\n"
    assert written(Format(("name",), jq="length"))[0] == "2\n"
    assert written(Format(template="{{name}}={{upper}}"))[0] == "main=MAIN\npäckchen=PÄCKCHEN\n"
    for wrong in (lambda: run_jq(".[", [], pretty=False), lambda: run_jq(".a.b", [1], pretty=False)):
        with pytest.raises(UsageError, match="--jq"):
            wrong()
    for text in ("{{", "{{nothing_such}}", "{{ ''.__class__.__mro__ }}", "{{ 1/0 }}"):
        with pytest.raises(UsageError, match="--template"):
            run_template(text, [{"a": 1}])
    with pytest.raises(UsageError):
        Format.of(None, ".", "x")


def test_a_template_prints_what_is_no_text_in_the_words_of_json() -> None:
    record = {"yes": True, "no": False, "none": None, "many": ["ä", 1], "name": "True", "count": 3}
    told = run_template("{{yes}} {{no}} {{none}} {{many}} {{many[0]}} {{name}} {{count}}", [record])
    assert told == ['true false null ["ä",1] ä True 3']
    assert run_template("{% if not no %}{{yes and none}}{% endif %}{{[yes]}}", [record]) == ["null[true]"]


HOSTILE = "a\x1b[2J\x07\x9b\u202e\t\nb"


@pytest.mark.parametrize("terminal", [False, True])
@pytest.mark.parametrize("fmt", [Format(), Format(())])
def test_a_strangers_text_cannot_act_on_a_terminal(terminal: bool, fmt: Format) -> None:
    stdout = Terminal() if terminal else io.StringIO()
    out = Out({"TERM": "xterm", "NO_COLOR": "1"}, stdout, io.StringIO())
    out.format = fmt
    out.rows([{"name": HOSTILE}], (Column("name"),))
    out.format = Format()
    out.done(f"Made {HOSTILE}")
    text = stdout.getvalue()
    assert not set(text) & set("\x1b\x07\x9b\u202e")


def test_json_with_a_strangers_text_still_means_the_same() -> None:
    for pretty in (True, False):
        text = to_json({"a": [HOSTILE, "\U000e0041 ä"]}, pretty=pretty)
        assert json.loads(text) == {"a": [HOSTILE, "\U000e0041 ä"]}
        assert text.replace("\n", "").isprintable()


def test_tsv_keeps_one_line_for_each_record() -> None:
    assert list(tsv([{"name": "a\tb\nc"}], (Column("name"),))) == ["a\\x09b\\x0ac"]
    assert plain([True, None, 3]) == "true,,3"
    assert plain([{"by": None, "said": "a\tb"}]) == '[{"by":null,"said":"a\\tb"}]'
    assert plain({"lines": [1, 2]}) == '{"lines":[1,2]}'


@pytest.mark.parametrize(
    ("moment", "said"),
    [
        ("2026-11-21T11:59:30Z", "just now"),
        ("2026-11-21T11:59:00Z", "1 min ago"),
        ("2026-11-21T09:00:00Z", "3 h ago"),
        ("2026-11-22T13:00:00Z", "in 1 d"),
        ("2025-01-02T13:00:00Z", "2025-01-02"),
        ("yesterday", "yesterday"),
    ],
)
def test_ages(moment: str, said: str) -> None:
    assert age(moment, NOW) == said


def test_values_for_people() -> None:
    assert human(1536, "size", NOW) == "1.5 KiB"
    assert human("first\nsecond", "line", NOW) == "first"
    assert [size(n) for n in (0, 1023, 1024**2, 5 * 1024**4)] == ["0 B", "1023 B", "1.0 MiB", "5120.0 GiB"]
    assert cells("漢字a") == 5


@pytest.mark.parametrize("width", [20, 30, 60])
def test_a_table_fits_its_terminal(width: int) -> None:
    records = [{"a": "x" * 50, "b": "漢" * 30, "c": "1"}]
    for line in align_rows(records, (Column("a"), Column("b"), Column("c")), width, NOW):
        assert cells(line) <= width


@pytest.mark.parametrize("width", [24, 50, 80])
def test_a_name_is_never_cut(width: int) -> None:
    path = "src/a/rather/long/folder/module_with_a_long_name.py"
    copy = "src/a/rather/long/folder/module_with_a_long_name.sync-conflict-20261122-213122-2e4dTzK.py"
    columns = (Column("path", kind="name"), Column("kept_as", kind="name"), Column("by", spare=1))
    header, *lines = align_rows([{"path": path, "kept_as": copy, "by": "ann"}], columns, width, NOW)
    assert all(cells(line) <= width for line in lines)
    at = header.index("KEPT AS")
    end = header.index("BY") if "BY" in header else width
    assert "".join(line[:at].strip() for line in lines) == path
    assert "".join(line[at:end].strip() for line in lines) == copy


REPOS = (
    Column("full_name"),
    Column("description", kind="line", spare=2),
    Column("kind", spare=4),
    Column("updated_at", kind="time"),
)
BLAME = (
    Column("line"),
    Column("seal_id", kind="id", spare=1),
    Column("author"),
    Column("sealed_at", kind="time", spare=2),
    Column("text", kind="code"),
)


@pytest.mark.parametrize(
    ("width", "header", "gone"),
    [
        (100, "FULL NAME DESCRIPTION KIND UPDATED", []),
        (50, "FULL NAME DESCRIPTION UPDATED", ["KIND"]),
        (36, "FULL NAME UPDATED", ["KIND", "DESCRIPTION"]),
    ],
)
def test_a_narrow_table_leaves_out_what_is_spare_and_says_so(
    width: int, header: str, gone: list[str]
) -> None:
    name = "alice/parser-of-headers"
    record = {"full_name": name, "description": "x" * 60, "kind": "app", "updated_at": "2026-11-21T10:00:00Z"}
    left_out: list[str] = []
    lines = list(align_rows([record], REPOS, width, NOW, left_out=left_out.extend))
    assert (lines[0].split(), left_out) == (header.split(), gone)
    assert all(cells(line) <= width for line in lines)
    assert lines[1].startswith(f"{name}  ")
    assert lines[1].endswith("2 h ago" if width == 100 else "2 h")


def test_blame_shortens_its_own_columns_and_no_code() -> None:
    code = "\tif (header == NULL || header->length > MAXIMUM) return refused(header, reason);"
    record = {
        "line": 120,
        "seal_id": "a" * 64,
        "author": "somebody-with-a-long-handle",
        "sealed_at": "2026-11-21T10:00:00Z",
        "text": code,
    }
    wide = list(align_rows([record], BLAME, 200, NOW))
    assert wide[1].endswith(code.expandtabs(8))
    for width, beside in ((80, ["120", "a" * 7, "somebod…", "2", "h"]), (50, ["120", "somebod…"])):
        header, *lines = align_rows([record], BLAME, width, NOW)
        assert all(cells(line) <= width for line in (header, *lines))
        at = header.index("TEXT")
        assert "".join(line[at:].ljust(width - at) for line in lines).rstrip() == code.expandtabs(8)
        assert lines[0][:at].split() == beside
        assert not "".join(line[:at] for line in lines[1:]).strip()


def test_progress_is_silent_where_nobody_watches_and_clears_its_line() -> None:
    times = iter([0.0, 0.0, 1.0, 1.0])
    silent, live = io.StringIO(), io.StringIO()
    Meter(silent, live=False)("sending", 1, 2, 10)
    assert silent.getvalue() == ""
    meter = Meter(live, live=True, clock=lambda: next(times))
    meter("sending\x1b", 0, 4)
    meter("sending\x1b", 1, 4, 2048)
    meter.clear()
    assert "1 of 4  2.0 KiB  2.0 KiB/s  3 s left" in live.getvalue()
    assert live.getvalue().endswith("\r\x1b[K")


def test_the_rate_is_of_the_whole_phase_and_none_in_its_first_moment() -> None:
    times = iter([0.0, 0.0, 2.0, 2.0, 4.0, 4.0, 4.0])
    out = io.StringIO()
    meter = Meter(out, live=True, clock=lambda: next(times))
    meter("write", 1, 3, 1 << 20)
    meter("download", 1, 1)
    meter("write", 2, 3, 8 << 20)  # the phases take turns: 8 MiB in four seconds, not in none
    first, _, last = out.getvalue().split("\x1b[K")[:3]
    assert "/s" not in first
    assert "8.0 MiB  2.0 MiB/s" in last


def test_the_time_left_is_not_guessed_in_the_first_moment() -> None:
    times = iter([0.0, 0.01, 0.01, 4.0, 4.0])
    out = io.StringIO()
    meter = Meter(out, live=True, clock=lambda: next(times))
    meter("write", 0, 102)
    meter("write", 2, 102)
    meter("write", 51, 102)
    assert out.getvalue().count("s left") == 1
    assert "51 of 102  4 s left" in out.getvalue()


def test_colours_only_where_they_are_wanted() -> None:
    def tinted(**environment: str) -> str:
        return Out(environment, Terminal(), io.StringIO()).tint("x", "red")

    assert tinted(TERM="xterm") == "\x1b[31mx\x1b[0m"
    assert tinted(TERM="xterm", NO_COLOR="1") == tinted(TERM="dumb") == tinted() == "x"


def in_terminal(pager: str, work: Callable[[Out], None]) -> tuple[str, int]:
    """What a child prints on a terminal of five lines, and its exit code."""
    child, terminal = pty.fork()
    if child == 0:
        code = 0
        sys.stdin = sys.__stdin__ = os.fdopen(0)
        os.environ.update(TERM="xterm", NO_COLOR="1", SVC_PAGER=pager, LINES="5")
        try:
            work(Out(os.environ, sys.__stdout__, sys.__stderr__))
            sys.__stdout__.flush()
        except KeyboardInterrupt:
            code = 130
        finally:
            os._exit(code)
    seen = b""
    while True:
        try:
            piece = os.read(terminal, 65536)
        except OSError:
            break
        if not piece:
            break
        seen += piece
    _, status = os.waitpid(child, 0)
    os.close(terminal)
    return seen.decode(), os.waitstatus_to_exitcode(status)


def test_an_answer_that_is_longer_than_the_terminal_goes_through_the_pager() -> None:
    """In a real terminal, with a pager that numbers the lines it is given."""
    seen, _ = in_terminal("cat -n", lambda out: out.text("".join(f"line {n}\n" for n in range(40))))
    assert "40\tline 39" in seen


def test_a_stream_reaches_the_pager_as_it_comes(tmp_path: Path) -> None:
    """The pager marks its first line, for which the rest waits."""
    mark = tmp_path / "mark"

    def lines() -> Iterator[str]:
        yield from (f"line {n}\n" for n in range(5))
        until = time.monotonic() + PATIENCE
        while not mark.exists() and time.monotonic() < until:
            time.sleep(0.01)
        yield "late\n" if mark.exists() else "never\n"

    seen, code = in_terminal(f"sh -c 'read line; touch {mark}; cat -n'", lambda out: out.stream(lines()))
    assert ("5\tlate" in seen, code) == (True, 0), seen
    seen, code = in_terminal("head -n 2", lambda out: out.stream(f"{n}\n" for n in range(100_000)))
    assert (seen, code) == ("0\r\n1\r\n", 0)
    seen, _ = in_terminal("cat -n", lambda out: out.stream(["one\n", "two\n"]))
    assert seen == "one\r\ntwo\r\n"


def test_ctrl_c_ends_a_stream_and_leaves_the_pager_what_came() -> None:
    def lines() -> Iterator[str]:
        yield "one\n" * 10
        raise KeyboardInterrupt

    seen, code = in_terminal("cat -n", lambda out: out.stream(lines()))
    assert ("10\tone" in seen, code) == (True, 130), seen


def test_status_prints_paths_whole_before_reasons() -> None:
    from svc.cmd.status import ROWS

    path = "django/utils/timesince.sync-conflict-20261123-073046-md7idp8.py"
    record = {"state": "new", "path": path, "reason": "your version of django/utils/timesince.py, a conflict"}
    _, *lines = align_rows([record], ROWS, 110, NOW)
    assert [line.split()[:2] for line in lines] == [["new", path]]
