"""Request signatures: RFC 9421's own vector, a second implementation, and every way to cheat."""

import base64
import hashlib
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from http_message_signatures import HTTPMessageVerifier, HTTPSignatureKeyResolver, algorithms
from hypothesis import given, settings
from hypothesis import strategies as st

from localstore.core.encoding import digest
from localstore.core.errors import Invalid, NotBound
from localstore.core.identity.keys import DeviceKey
from localstore.core.identity.request_signature import (
    SHORT_BODY,
    ContentDigest,
    authority_of,
    parse,
    sign,
    signature_base,
    verify,
)

KEY, OTHER = DeviceKey.generate(b"\x01" * 32), DeviceKey.generate(b"\x02" * 32)
NOW, NONCE = 1_800_000_000, "AAAAAAAAAAAAAAAAAAAAAA"
BODY = b'{"a":1}'
BUFFERED = ContentDigest.of(BODY)
TARGET = ("POST", "node.example", "/api/v1/repos/r%20x/star", "a=1&b=%2F")

Pairs = list[tuple[str, str]]


def signed(
    method: str = "POST",
    body: ContentDigest | None = BUFFERED,
    authorization: str | None = "Bearer t0k3n",
    key: DeviceKey = KEY,
    now: int = NOW,
) -> Pairs:
    headers = sign(key, method, *TARGET[1:], body=body, authorization=authorization, now=now, nonce=NONCE)
    return [*headers.items(), *([("Authorization", authorization)] if authorization else [])]


def accept(headers: Pairs, target: tuple[str, str, str, str] = TARGET, now: int = NOW) -> None:
    verify(parse(headers), *target, public_key=KEY.public, now=now)


def refusal(headers: Pairs, target: tuple[str, str, str, str] = TARGET, now: int = NOW) -> str:
    with pytest.raises(NotBound) as caught:
        accept(headers, target, now)
    return str(caught.value.extra["reason"])


def replaced(headers: Pairs, name: str, change: Callable[[str], str]) -> Pairs:
    return [(n, change(v) if n.lower() == name.lower() else v) for n, v in headers]


def test_rfc_9421_appendix_b_2_6() -> None:
    private = base64.b64decode("MC4CAQAwBQYDK2VwBCIEIJ+DYvh6SEqVTm50DFtMDoQikTmiCqirVv9mWG9qfSnF")
    params = (
        '("date" "@method" "@path" "@authority" "content-type" "content-length")'
        ';created=1618884473;keyid="test-key-ed25519"'
    )
    base = signature_base(
        [
            ("date", "Tue, 20 Apr 2021 02:07:55 GMT"),
            ("@method", "POST"),
            ("@path", "/foo"),
            ("@authority", "example.com"),
            ("content-type", "application/json"),
            ("content-length", "18"),
        ],
        params,
    )
    assert base64.b64encode(DeviceKey.generate(private[-32:]).sign(base)).decode() == (
        "wqcAqbmYJ2ji2glfAMaRy4gruYYnx2nEFN2HN6jrnDnQCK1u02Gb04v9EDgwUPiu4A0w6vuQv5lIp5WPpBKRCw=="
    )


class _Keys(HTTPSignatureKeyResolver):
    def resolve_public_key(self, key_id: str) -> Any:
        assert key_id == KEY.id
        return Ed25519PublicKey.from_public_bytes(KEY.public)

    def resolve_private_key(self, key_id: str) -> Any:
        raise AssertionError("the peer only verifies")


@pytest.mark.parametrize(
    ("method", "body"),
    [
        ("POST", ContentDigest.of(BODY)),
        ("PUT", ContentDigest.of_stream(digest(BODY))),
        ("DELETE", None),
        ("GET", None),
    ],
)
@pytest.mark.parametrize("authorization", ["Bearer t0k3n", None])
def test_another_implementation_agrees(
    method: str, body: ContentDigest | None, authorization: str | None
) -> None:
    headers = signed(method, body, authorization, now=int(time.time()))
    _, authority, path, query = TARGET
    message = SimpleNamespace(method=method, url=f"https://{authority}{path}?{query}", headers=dict(headers))
    verifier = HTTPMessageVerifier(signature_algorithm=algorithms.ED25519, key_resolver=_Keys())
    (result,) = verifier.verify(message, expect_tag="svc-req-v1")
    assert result.parameters["nonce"] == NONCE


def test_the_headers_are_spelled_as_designed() -> None:
    headers = dict(signed())
    assert headers["Signature-Input"] == (
        'svc=("@method" "@authority" "@path" "@query" "content-digest" "authorization")'
        f';created={NOW};nonce="{NONCE}";keyid="{KEY.id}";alg="ed25519";tag="svc-req-v1"'
    )


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize("body", [None, ContentDigest.of(BODY), ContentDigest.of_stream(digest(BODY))])
@pytest.mark.parametrize("authorization", [None, "Bearer t0k3n"])
def test_what_was_signed_is_accepted(
    method: str, body: ContentDigest | None, authorization: str | None
) -> None:
    headers = signed(method, body, authorization)
    accept(headers, (method, *TARGET[1:]))
    accept([(name.upper(), f" {value}\t") for name, value in reversed(headers)], (method, *TARGET[1:]))
    assert parse(headers).body == (body or ContentDigest.of(b""))


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS"])
def test_safe_methods_cover_no_body(method: str) -> None:
    accept(signed(method, None), (method, *TARGET[1:]))
    with pytest.raises(Invalid):
        signed(method, ContentDigest.of(b""))
    extra = ContentDigest.of(b"").header
    assert refusal([*signed(method, None), extra], (method, *TARGET[1:])) == "components"


@pytest.mark.parametrize(
    "target",
    [
        ("PUT", *TARGET[1:]),
        ("GET", *TARGET[1:]),
        ("POST", "evil.example", *TARGET[2:]),
        ("POST", "node.example:8443", *TARGET[2:]),
        (*TARGET[:2], "/api/v1/repos/other/star", TARGET[3]),
        (*TARGET[:2], "/api/v1/repos/r x/star", TARGET[3]),
        (*TARGET[:3], "a=2&b=%2F"),
        (*TARGET[:3], ""),
        (*TARGET[:3], 'a=1\n"@x": y'),
        ("post", *TARGET[1:]),
    ],
)
def test_another_request_is_refused(target: tuple[str, str, str, str]) -> None:
    assert refusal(signed(), target) in ("signature", "components")


def test_another_body_is_refused() -> None:
    other = ContentDigest.of(b"{}").header
    assert refusal([other if name == other[0] else (name, value) for name, value in signed()]) == "signature"
    for covered in (ContentDigest.of(BODY), ContentDigest.of_stream(digest(BODY))):
        parsed = parse(signed(body=covered)).body
        assert parsed is not None
        parsed.check_body(BODY)
        with pytest.raises(NotBound) as caught:
            parsed.check_body(b"{}")
        assert caught.value.extra["reason"] == "body"


def test_a_digest_of_one_kind_does_not_pass_for_the_other() -> None:
    swapped = ContentDigest.of_stream(ContentDigest.of(BODY).value).header
    headers = [swapped if name == "Content-Digest" else (name, value) for name, value in signed()]
    assert refusal(headers) == "components"


def test_a_digest_of_another_length_is_refused() -> None:
    with pytest.raises(Invalid):
        ContentDigest.of_stream(b"short")


def test_the_token_cannot_be_swapped_added_or_dropped() -> None:
    assert refusal(replaced(signed(), "Authorization", lambda _: "Bearer other")) == "signature"
    assert refusal([*signed(authorization=None), ("Authorization", "Bearer x")]) == "components"
    assert refusal([pair for pair in signed() if pair[0] != "Authorization"]) == "components"


def test_another_key_is_refused() -> None:
    assert refusal(signed(key=OTHER)) == "key"
    renamed = replaced(signed(key=OTHER), "Signature-Input", lambda text: text.replace(OTHER.id, KEY.id))
    assert refusal(renamed) == "signature"


@pytest.mark.parametrize(
    ("age", "reason"), [(61, "stale"), (3600, "stale"), (-11, "future"), (-3600, "future")]
)
def test_outside_the_window_the_answer_tells_the_time(age: int, reason: str) -> None:
    with pytest.raises(NotBound) as caught:
        accept(signed(now=NOW - age))
    assert caught.value.extra == {"reason": reason, "server_time": NOW}


@pytest.mark.parametrize("age", [60, 0, -10])
def test_inside_the_window(age: int) -> None:
    accept(signed(now=NOW - age))


@pytest.mark.parametrize("name", ["Signature-Input", "Signature", "Content-Digest", "Authorization"])
def test_duplicate_headers_are_refused(name: str) -> None:
    headers = signed()
    again = next(pair for pair in headers if pair[0] == name)
    assert refusal([*headers, (name.lower(), again[1])]) == "malformed"


def test_two_digest_headers_are_refused() -> None:
    assert refusal([*signed(), ContentDigest.of_stream(digest(BODY)).header]) == "malformed"


@pytest.mark.parametrize("name", ["Signature-Input", "Signature"])
def test_missing_signature(name: str) -> None:
    assert refusal([pair for pair in signed() if pair[0] != name]) == "missing"


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("Signature-Input", lambda text: text + ";x=1"),
        ("Signature-Input", lambda text: text + ", other=()"),
        ("Signature-Input", lambda text: text.replace("svc=", "sig1=")),
        ("Signature-Input", lambda text: text.replace("svc-req-v1", "svc-req-v2")),
        ("Signature-Input", lambda text: text.replace("ed25519", "none")),
        ("Signature-Input", lambda text: text.replace(str(NOW), f"-{NOW}")),
        ("Signature-Input", lambda text: text.replace(str(NOW), "١٨٠٠٠٠٠٠٠٠")),
        ("Signature-Input", lambda text: text.replace(NONCE, NONCE[:-1])),
        ("Signature-Input", lambda text: text.replace('"@query"', '"@query";req')),
        ("Signature-Input", lambda text: text * 100),
        ("Signature-Input", lambda text: ""),
        ("Signature", lambda text: text.replace("svc=", "sig1=")),
        ("Signature", lambda text: text.replace("=:", ":").replace("svc:", "svc=:")),
        ("Signature", lambda text: text[:-4] + chr(ord(text[-4]) + 1) + text[-3:]),
        ("Signature", lambda text: text + "\n"),
        ("Content-Digest", lambda text: text.upper()),
        ("Content-Digest", lambda text: text.replace("sha-256", "sha-512")),
        ("Content-Digest", lambda text: f"{text}, {text}"),
        ("Content-Digest", lambda text: text[:-3] + chr(ord(text[-3]) + 1) + text[-2:]),
        ("Authorization", lambda text: "Bearer é"),
        ("Authorization", lambda text: 'Bearer x\n"@path": /'),
    ],
)
def test_other_spellings_are_refused(name: str, change: Callable[[str], str]) -> None:
    assert refusal(replaced(signed(), name, change)) == "malformed"


@pytest.mark.parametrize(
    "components",
    [
        '"@method" "@authority" "@path" "@query" "authorization" "content-digest"',
        '"@method" "@authority" "@path" "@query" "content-digest"',
        '"@method" "@authority" "@path" "@query" "content-digest" "content-digest"',
        '"@method" "@authority" "@path" "content-digest" "authorization"',
    ],
)
def test_the_covered_components_are_fixed(components: str) -> None:
    full = '"@method" "@authority" "@path" "@query" "content-digest" "authorization"'
    assert (
        refusal(replaced(signed(), "Signature-Input", lambda text: text.replace(full, components)))
        == "components"
    )


@pytest.mark.parametrize(
    ("target", "authorization"),
    [
        (("POST", "node.example", "/a b", ""), None),
        (("POST", "node.example", "/é", ""), None),
        (("POST", "node.example", "/", "a\nb"), None),
        (("PO ST", "node.example", "/", ""), None),
        (("POST", "node.example", "/", ""), "Bearer x\r\nEvil: 1"),
        (("POST", "node.example", "/", ""), ""),
    ],
)
def test_unsignable_requests_are_refused_when_signing(
    target: tuple[str, str, str, str], authorization: str | None
) -> None:
    with pytest.raises(Invalid):
        sign(KEY, *target, body=None, authorization=authorization, now=NOW)


def test_every_signature_has_a_fresh_nonce() -> None:
    one, two = (parse(list(sign(KEY, *TARGET, body=None, authorization=None, now=NOW).items())) for _ in "ab")
    assert one.nonce != two.nonce
    assert len(base64.urlsafe_b64decode(one.nonce + "==")) == 16


def test_an_empty_path_is_the_root() -> None:
    headers = list(sign(KEY, "GET", "node.example", "", "", body=None, authorization=None, now=NOW).items())
    accept(headers, ("GET", "NODE.example", "/", ""))


@pytest.mark.parametrize(
    ("origin", "authority"),
    [
        ("https://Node.Example", "node.example"),
        ("https://node.example:443/", "node.example"),
        ("http://node.example:443", "node.example:443"),
        ("http://127.0.0.1:8080", "127.0.0.1:8080"),
        ("http://[::1]:8080", "[::1]:8080"),
    ],
)
def test_authority_of_an_origin(origin: str, authority: str) -> None:
    assert authority_of(origin) == authority


@pytest.mark.parametrize(
    "origin",
    [
        "",
        "node.example",
        "ftp://x",
        "https://",
        "https://a:b@c",
        "https://a:99999",
        "https://a/b",
        "https://a\n.b",
    ],
)
def test_other_origins_are_refused(origin: str) -> None:
    with pytest.raises(Invalid):
        authority_of(origin)


_GOOD = signed()


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(range(len(_GOOD))), st.integers(0, 400), st.text(max_size=3), st.integers(0, 3))
def test_a_changed_header_is_refused_with_one_clear_error(
    which: int, at: int, inserted: str, removed: int
) -> None:
    name, value = _GOOD[which]
    changed = value[: at % len(value)] + inserted + value[at % len(value) + removed :]
    headers = [*_GOOD[:which], (name, changed), *_GOOD[which + 1 :]]
    if changed.strip(" \t") == value:
        accept(headers)
    else:
        assert refusal(headers) in ("malformed", "components", "key", "signature", "stale", "future")


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.sampled_from([name for name, _ in _GOOD]), st.text(max_size=60)), max_size=6))
def test_arbitrary_headers_are_not_bound(headers: Pairs) -> None:
    with pytest.raises(NotBound):
        parse(headers)


@pytest.mark.parametrize("size", [0, 5, SHORT_BODY - 1, SHORT_BODY, SHORT_BODY + 1])
def test_a_digest_is_the_same_whoever_computes_it(size: int) -> None:
    body = bytes(size)
    assert ContentDigest.of(body).value == hashlib.sha256(body).digest()
    ContentDigest.of(body).check_body(body)
