"""Dependencies and dependents, in the tests of the whole route table."""

from __future__ import annotations

QUESTIONS: dict[str, list[str]] = {
    "GET /dependencies": ["/dependencies", "/dependencies?ref=main"],
    "GET /dependents": ["/dependents"],
}
