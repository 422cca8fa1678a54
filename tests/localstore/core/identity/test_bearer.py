"""Tokens as text."""

import pytest

from localstore.core.errors import Unauthorized
from localstore.core.identity.bearer import (
    authorization,
    format_script_token,
    from_text,
    parse_script_token,
    text_in_authorization,
    to_text,
)
from localstore.core.identity.keys import DeviceKey

ORIGIN = "https://node.example"
RAW, KEY = bytes(range(256)) + b"end", DeviceKey.generate(b"\x05" * 32)


def test_text_and_header_round_trip() -> None:
    assert from_text(to_text(RAW)) == RAW
    assert authorization(RAW) == f"Bearer {to_text(RAW)}"
    assert text_in_authorization(authorization(RAW)) == to_text(RAW)
    assert text_in_authorization(f"bearer {to_text(RAW)}") == to_text(RAW)
    assert len(from_text(to_text(bytes(2048)))) == 2048


@pytest.mark.parametrize("text", ["AB", "AAA=", "A", "A+/A", "é", "AA AA", "A" * 2732, "A" * 7_000_000])
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(Unauthorized):
        from_text(text)


@pytest.mark.parametrize(
    "value", ["", "Bearer", f"Basic {to_text(RAW)}", to_text(RAW), f"Bearer  {to_text(RAW)}"]
)
def test_other_headers_are_refused(value: str) -> None:
    with pytest.raises(Unauthorized):
        from_text(text_in_authorization(value))


def test_a_script_token_carries_token_and_binding_key() -> None:
    text = format_script_token(ORIGIN, RAW, KEY)
    assert text.startswith("svct2_")
    origin, raw, key = parse_script_token(text)
    assert (origin, raw, key.id) == (ORIGIN, RAW, KEY.id)


def test_a_token_that_names_no_server_is_refused_saying_where_to_make_one() -> None:
    with pytest.raises(Unauthorized, match=r"https://YOUR-SERVER/settings\?tab=tokens"):
        parse_script_token(f"svct_{to_text(RAW)}.{to_text(KEY.seed)}")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "svct2_",
        "svct2_AAAA",
        "svct2_AAAA.",
        "svct2_AAAA.AAAA",
        "svct2_AAAA.AAAA.AAAA.AAAA",
        format_script_token(ORIGIN, RAW, KEY)[6:],
        format_script_token(ORIGIN, RAW, KEY)[:-4],
        format_script_token("ftp://node.example", RAW, KEY),
        format_script_token("AAAA", RAW, KEY),
        f"svct2_{to_text(ORIGIN.encode())}.AB." + "A" * 43,
    ],
)
def test_damaged_script_tokens_are_refused_without_showing_them(text: str) -> None:
    with pytest.raises(Unauthorized) as caught:
        parse_script_token(text)
    assert "AAAA" not in caught.value.detail
