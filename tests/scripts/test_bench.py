"""What the comparisons are made of: trees, tables, exponents. The figures themselves are not tests."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from localstore.core.storage.file_kind import kind_of
from scripts.bench import growth
from scripts.bench.shared import chart, report, trees


def test_a_text_tree_is_as_large_as_told_and_the_same_again(tmp_path: Path) -> None:
    for name in ("one", "two"):
        trees.text_tree(tmp_path / name, 200, 400_000)
    files = sorted(path.relative_to(tmp_path / "one") for path in (tmp_path / "one").rglob("*.py"))
    assert len(files) == 200
    assert abs(trees.stored_bytes(tmp_path / "one") - 400_000) < 4_000
    for path in files:
        data = (tmp_path / "one" / path).read_bytes()
        assert data == (tmp_path / "two" / path).read_bytes()
        assert kind_of(data) == "text"


def test_real_text_goes_on_in_another_alphabet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.py").write_text("abc = 1\n")
    monkeypatch.setattr(trees.sysconfig, "get_path", lambda _: str(tmp_path))
    texts = trees.real_text(1)
    first, second = next(texts), next(texts)
    assert first == b"abc = 1\n"
    assert second != first
    assert second.endswith(b" = 1\n")


def test_figures_take_the_place_of_their_own_name_only() -> None:
    page = "a\n<!-- one -->\nold\n<!-- /one -->\nb\n<!-- two -->\nkept\n<!-- /two -->\n"
    assert report.replace_part(page, "one", r"new \1") == page.replace("old", r"new \1")
    with pytest.raises(ValueError, match="0 places called three"):
        report.replace_part(page, "three", "new")


def test_the_page_has_a_place_for_every_comparison() -> None:
    page = report.PAGE.read_text("utf-8")
    for name in ("source_trees", "blame", "start", "growth", "binary", "memory", "relay_cost", "live"):
        assert report.replace_part(page, name, "figures") != page


def test_a_missed_aim_is_bold() -> None:
    assert report.against(0.3, 1 / 3) == "0.30× (≤0.33×)"
    assert report.against(1.6, 1.5) == "**1.60× (≤1.5×)**"
    assert report.against(1.6, None) == "1.60×"


def test_the_exponent_is_that_of_the_last_step() -> None:
    assert growth.exponent({10: 5.0, 100: 1.0, 1000: 10.0}) == pytest.approx(1)
    assert growth.exponent({10: 5.0, 100: 2.0, 1000: 2.0}) == pytest.approx(0)


def test_a_chart_is_xml_with_a_point_for_each_value() -> None:
    panel = chart.Panel("a < b", [10, 100], {"svc": [0.5, 20.0], "git": [1.0, 1.0]})
    found = ElementTree.fromstring(chart.svg([panel]))
    assert len(found.findall(".//{*}circle")) == 4
    assert "a < b" in "".join(found.itertext())
