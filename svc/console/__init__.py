"""The only writer of stdout.

A command has one thing to say on stdout: a list, a record, the value that a change made, or bytes. On a
terminal it is for people (aligned, coloured, paged, times as ages); in a pipe it is for programs (tabs, whole
values, ISO times), with the same columns in the same order. `--json`, `--jq` and `--template` give
either as data. Notes, progress, questions and errors go to stderr.
"""

from svc.console.answers import Answers, answers, answers_any, answers_of, answers_text
from svc.console.output import Out
from svc.console.select import Format
from svc.console.table import Column

__all__ = ["Answers", "Column", "Format", "Out", "answers", "answers_any", "answers_of", "answers_text"]
