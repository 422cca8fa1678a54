"""The output of commands. Only this package writes to stdout.

A command writes one answer to stdout: a list, a record, one value, or bytes. On a terminal the answer is
formatted for people (aligned, coloured, paged, times as ages). In a pipe it is formatted for programs (tabs,
full values, ISO times), with the same columns. `--json`, `--jq` and `--template` print it as data. Notes,
progress, questions and errors are written to stderr."""

from svc.console.answers import Answers, answers, answers_any, answers_of, answers_text
from svc.console.output import Out
from svc.console.select import Format
from svc.console.table import Column

__all__ = ["Answers", "Column", "Format", "Out", "answers", "answers_any", "answers_of", "answers_text"]
