"""Reads environment variables, once. A secret NAME may also be in a file, whose path is then in NAME_FILE."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from pathlib import Path

from localstore.core.errors import SvcError
from localstore.core.numbers import whole_number


class StartRefused(SvcError):
    """The node cannot start. The message is one line for the operator; the exit code is 1."""

    code, status, title = "start_refused", 500, "Start refused"


class Environment:
    """The environment variables by name. An empty value counts as absent. Raises StartRefused if both NAME
    and NAME_FILE are set. Records which names were read, for `require_all_read`."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        self._variables = variables
        self._read: set[str] = set()

    def get(self, name: str) -> str | None:
        self._read.add(name)
        return self._variables.get(name) or None

    def require_all_read(self, prefix: str) -> None:
        """Raise StartRefused if a variable whose name begins with `prefix` is set and was never read, as a
        misspelt one. Call it when everything was read."""
        for name in sorted(self._variables):
            if not name.startswith(prefix) or name in self._read or not self._variables[name]:
                continue
            close = difflib.get_close_matches(name, sorted(self._read), 1, 0.8)
            meant = f"; did you mean {close[0]}?" if close else "; unset it"
            raise StartRefused(f"{name} is set, but the relay has no such setting{meant}")

    def require_beside(self, name: str, *dependents: str) -> None:
        """Raise StartRefused if one of `dependents`, or its `_FILE`, is set without the variable `name`,
        because it would do nothing."""
        if self.get(name) is not None:
            return
        given = set(self._variables)
        for dependent in dependents:
            for spelling in given & {dependent, f"{dependent}_FILE"}:
                if self._variables[spelling]:
                    raise StartRefused(f"{spelling} is set without {name}; set {name} too, or unset it")

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
