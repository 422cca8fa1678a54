"""`svc repo reports decide --affected` refuses words before it sends any, and says packages as OSV does."""

from __future__ import annotations

import pytest

from localstore.core.errors import UsageError
from localstore.core.model.advisory import Affected, Package, Range, RangeEvent
from svc.cmd.reports.reports import _package
from tests.svc.conftest import Svc


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--triaged", "--affected", "npm:x"], "--published"),
        (["--published", "--affected", "npm"], "ECOSYSTEM:NAME"),
        (["--published", "--affected", "npm:x<"], "ECOSYSTEM:NAME"),
    ],
)
def test_words_that_are_wrong(svc: Svc, words: list[str], says: str) -> None:
    done = svc("repo", "reports", "decide", "0197", *words, "-R", "nobody/nothing")
    assert done.code == 2, done
    assert says in done.err


def test_what_a_package_becomes() -> None:
    assert _package("pypi:demo") == Affected(package=Package(ecosystem="pypi", name="demo"))
    below = Range(type="ECOSYSTEM", events=[RangeEvent(introduced="0"), RangeEvent(fixed="1.3.0")])
    assert _package("npm:@a/left-pad<1.3.0").ranges == [below]
    with pytest.raises(UsageError):
        _package("npm:a b")
