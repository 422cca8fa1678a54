"""Reads environment variables, once. A secret NAME may also be in a file, whose path is then in NAME_FILE."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from localstore.core.errors import SvcError
from localstore.core.numbers import whole_number


class StartRefused(SvcError):
    """The node cannot start. The message is one line for the operator; the exit code is 1."""

    code, status, title = "start_refused", 500, "Start refused"


class Environment:
    """The environment variables by name. An empty value counts as absent. Raises StartRefused if both NAME
    and NAME_FILE are set."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        self._variables = variables

    def get(self, name: str) -> str | None:
        return self._variables.get(name) or None

    def secret(self, name: str) -> str | None:
        """The value of the variable `name`, or the text of the file that NAME_FILE names, without its line
        end. Returns None if neither variable is set."""
        value, file = self.get(name), self.get(f"{name}_FILE")
        if value is not None and file is not None:
            raise StartRefused(f"both {name} and {name}_FILE are set; keep one of them")
        if file is None:
            return value
        try:
            text = Path(file).read_text("utf-8").rstrip("\r\n")
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            raise StartRefused(f"{name}_FILE names {file}, which cannot be read: {reason}") from None
        return text or None

    def number(self, name: str, default: int, low: int, high: int) -> int:
        value = self.get(name)
        if value is None:
            return default
        number = whole_number(value)
        if number is None or not low <= number <= high:
            raise StartRefused(f"{name}={value!r} is not a whole number from {low} to {high}")
        return number
