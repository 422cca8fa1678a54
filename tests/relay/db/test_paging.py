"""Cursors come back from clients, who may have written anything into them."""

from __future__ import annotations

import pytest

from localstore.core.encoding import b64u
from localstore.core.errors import Invalid
from relay.db.paging import Cursor


def test_a_cursor_is_read_as_it_was_written():
    assert Cursor.read(Cursor.write(-(2**63), "a"), 0, "") == (-(2**63), "a")
    assert Cursor.read(None, 0, "") == (0, "")


@pytest.mark.parametrize(
    "key",
    [b"", b"[]", b"{}", b'["a"]', b'[1,"a",2]', b'[true,"a"]', b'[1.5,"a"]', b'[1,"\\ud800"]', b"[" * 2000]
    + [b'[%d,"a"]' % number for number in (2**63, -(2**63) - 1, 10**300)],
)
def test_any_other_is_refused(key):
    with pytest.raises(Invalid):
        Cursor.read(b64u(key), 0, "")


@pytest.mark.parametrize("path", ["/api/v1/repos/device-keys", "/api/v1/search/repos"])
def test_a_number_no_column_holds_is_a_422(account, client, path):
    answer = client(account()).get(path, params={"cursor": b64u(b'[99999999999999999999,"a"]')})
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid")
