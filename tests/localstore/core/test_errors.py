"""The error tree: every error says what it means."""

from __future__ import annotations

from localstore.core.errors import Conflict, from_problem
from scripts.error_tree import classes


def test_every_error_says_what_it_means() -> None:
    assert [error.__name__ for error in classes() if "__doc__" not in vars(error) or not error.__doc__] == []


def test_no_two_errors_share_a_code() -> None:
    codes = [vars(error)["code"] for error in classes() if "code" in vars(error)]
    assert len(codes) == len(set(codes))


def test_an_error_of_a_noun_that_is_not_loaded_keeps_its_code() -> None:
    error = from_problem({"code": "from_a_later_version", "detail": "no"}, 409)
    assert (type(error), error.code) == (Conflict, "from_a_later_version")


def test_a_code_that_is_no_code_is_not_taken_over() -> None:
    assert from_problem({"code": "\x1b[2J", "detail": "no"}, 409).code == "conflict"
