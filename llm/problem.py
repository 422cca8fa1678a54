"""Errors that the front sends to clients: a status and a sentence."""

from __future__ import annotations

from typing import Any


class Refused(Exception):
    """Raised to answer a request with an error: an HTTP status and a sentence. `kind`, `extra`: type and
    further members of the error, for clients of /v1."""

    def __init__(self, status: int, sentence: str, kind: str = "", **extra: Any) -> None:
        super().__init__(sentence)
        self.status, self.sentence, self.extra = status, sentence, extra
        self.kind = kind or {400: "invalid_request_error", 403: "forbidden", 404: "not_found_error"}.get(
            status, "api_error"
        )


class Died(Refused):
    """Raised if the process of a model ended before its answer was complete."""
