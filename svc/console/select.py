"""The options `--json [FIELDS]`, `--jq EXPR` and `--template TEXT`, with which a command prints its answer as
data."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any

import msgspec

from localstore.core.errors import UsageError
from localstore.core.paths import PROSE, terminal_safe

Record = dict[str, Any]


class Format(msgspec.Struct, frozen=True):
    """The output format that the user's options request. `fields` are the fields given to `--json`. It is
    None without `--json`. It is empty if `--json` was given without fields; then the table's columns are
    printed."""

    fields: tuple[str, ...] | None = None
    jq: str | None = None
    template: str | None = None

    @classmethod
    def of(cls, json_fields: str | None, jq: str | None, template: str | None) -> Format:
        """Return the format that these options request. Raises UsageError if the options exclude each
        other."""
        if jq is not None and template is not None:
            raise UsageError("--jq and --template are two ways to say the same; use one of them")
        fields = None
        if json_fields is not None:
            fields = tuple(name.strip() for name in json_fields.split(",") if name.strip())
        return cls(fields, jq, template)

    @property
    def as_data(self) -> bool:
        return self.fields is not None or self.jq is not None or self.template is not None


def select_fields(fmt: Format, columns: Sequence[str], more: Iterable[str]) -> list[str]:
    """Return the names of the fields to print. They are the ones given to `--json`, or all fields if only
    `--jq` or `--template` is given. `columns` and `more` are the fields that exist. Raises UsageError for an
    unknown field."""
    valid = list(dict.fromkeys([*columns, *more]))
    if fmt.fields is None:
        return valid
    for name in fmt.fields:
        if name not in valid:
            raise UsageError(_unknown(name, valid))
    return list(fmt.fields or columns)


def _unknown(name: str, valid: Sequence[str]) -> str:
    near = get_close_matches(snake_case(name), valid, 1)
    hint = f" (did you mean {near[0]}?)" if near else ""
    return f"there is no field '{terminal_safe(name[:60])}'{hint}; the fields are: {', '.join(valid)}"


def snake_case(name: str) -> str:
    """Return the name in snake case, such as `full_name` for `fullName`, which gh uses."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def to_json(value: Any, *, pretty: bool) -> str:
    """Return the value as JSON, with control characters escaped. With `pretty`, it is indented over several
    lines."""
    import json

    text = json.dumps(
        value, ensure_ascii=False, indent=2 if pretty else None, separators=None if pretty else (",", ":")
    )
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char == "\n" else json.dumps(char)[1:-1] for char in text)


def run_jq(expression: str, value: Any, *, pretty: bool) -> list[str]:
    """Run a jq program on the value, and return its results. A string is returned as it is, everything else
    as JSON. Raises UsageError if the program is invalid or fails."""
    program = compiled_jq(expression)
    try:
        results = program.input_value(value).all()
        return [item if isinstance(item, str) else to_json(item, pretty=pretty) for item in results]
    except (ValueError, RecursionError) as error:
        raise _jq_error(error) from None


def compiled_jq(expression: str) -> Any:
    """Return the compiled jq program. Raises UsageError if it is invalid."""
    import jq

    try:
        return jq.compile(expression)
    except ValueError as error:
        raise _jq_error(error) from None


def run_template(text: str, records: Iterable[Record]) -> list[str]:
    """Render a Jinja2 template once for each record, with the record's fields as variables. Returns the
    rendered texts. Values that are not texts are printed as JSON."""
    from jinja2 import TemplateError

    try:
        template = _environment().from_string(text)
        return [template.render(record) for record in records]
    except (TemplateError, TypeError, ValueError, ArithmeticError, RecursionError) as error:
        raise _template_error(error) from None


def check_template(text: str, fields: Sequence[str]) -> None:
    """Raise UsageError if the template is invalid, or uses a name that is not in `fields`."""
    from jinja2 import TemplateError, meta

    environment = _environment()
    try:
        parsed = environment.parse(text)
        environment.compile(parsed)
        names = meta.find_undeclared_variables(parsed) - environment.globals.keys()
    except (TemplateError, RecursionError) as error:
        raise _template_error(error) from None
    for name in sorted(names - set(fields)):
        raise UsageError(f"--template: {_unknown(name, fields)}")


def _environment() -> Any:
    from jinja2 import StrictUndefined
    from jinja2.sandbox import SandboxedEnvironment

    return SandboxedEnvironment(undefined=StrictUndefined, autoescape=False, finalize=_in_json_words)


def _in_json_words(value: Any) -> Any:
    """Return what `{{field}}` prints in a template: a text or number unchanged, any other value as JSON (such
    as true or null)."""
    return to_json(value, pretty=False) if value is None or isinstance(value, (bool, list, dict)) else value


def _jq_error(error: Exception) -> UsageError:
    reason = terminal_safe(str(error).strip().partition("\n")[0][:300])
    return UsageError(f"--jq: {reason}")


def _template_error(error: Exception) -> UsageError:
    return UsageError(f"--template: {terminal_safe(str(error)[:300])}")


def safe_for(text: str, *, terminal: bool) -> str:
    """Prepare text that other people wrote for stdout. For a terminal control characters are escaped; for a
    pipe the text is unchanged."""
    return terminal_safe(text, keep=PROSE) if terminal else text
