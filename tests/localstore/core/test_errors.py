"""The error tree: every error says what it means."""

from __future__ import annotations

from localstore.core.errors import SvcError


def _all(root: type[SvcError]) -> list[type[SvcError]]:
    return [root, *(leaf for child in root.__subclasses__() for leaf in _all(child))]


def test_every_error_says_what_it_means() -> None:
    assert [
        error.__name__ for error in _all(SvcError) if "__doc__" not in vars(error) or not error.__doc__
    ] == []


def test_no_two_errors_share_a_code() -> None:
    codes = [vars(error)["code"] for error in _all(SvcError) if "code" in vars(error)]
    assert len(codes) == len(set(codes))
