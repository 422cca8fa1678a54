"""Request signatures: one fixed profile of RFC 9421 (HTTP Message Signatures), tag `svc-req-v1`.

    Content-Digest: sha-256=:<b64>:
    Signature-Input: svc=("@method" "@authority" "@path" "@query" "content-digest" "authorization");created=…
    Signature: svc=:<b64>:

There is one grammar and nothing is negotiated. A signature of GET, HEAD or OPTIONS covers no digest; of every
other method it covers one, also for an empty body. For a streamed body it is `Svc-Content-BLAKE3: :<b64>:` in
the same place. `authorization` is covered if and only if the request has that header: requests with a bearer
token bound to a key have it, requests with only a device key do not. The authority is the relay's public URL
as configured or pinned, never the Host header.

A signature is valid from SIGNATURE_MAX_AGE before to SIGNATURE_MAX_SKEW after the verifier's clock (seconds).
Whether (key id, nonce) was seen before is checked by the relay's store."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Literal
from urllib.parse import urlsplit

import msgspec
from nacl.bindings import crypto_hash_sha256, randombytes

from localstore.core.encoding import DIGEST_SIZE, b64u, digest
from localstore.core.errors import Invalid, NotBound
from localstore.core.identity.keys import DeviceKey, key_id
from localstore.core.identity.keys import verify as verify_ed25519
from localstore.core.model.limits import SIGNATURE_MAX_AGE, SIGNATURE_MAX_SKEW

TAG = "svc-req-v1"
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
NONCE_BYTES = 16
SHORT_BODY = 1024 * 1024  # bytes: below, loading OpenSSL for `hashlib` takes longer than it is faster

Headers = Iterable[tuple[str, str]]

_COVERED = ("@method", "@authority", "@path", "@query")
_DIGEST_HEADER = {"sha-256": "Content-Digest", "blake3": "Svc-Content-BLAKE3"}
_HEADERS_READ = ("signature-input", "signature", "content-digest", "svc-content-blake3", "authorization")
_HEADER_CHARS_MAX = 512  # Signature-Input takes about 240

# What only the relay reads is compiled by its first use.
_INPUT = (
    r'svc=(?P<params>\((?P<components>"[a-z0-9@-]{1,20}"(?: "[a-z0-9@-]{1,20}"){3,5})\)'
    r";created=(?P<created>[1-9][0-9]{9,10})"
    r';nonce="(?P<nonce>[A-Za-z0-9_-]{22})";keyid="(?P<key_id>[A-Za-z0-9_-]{43})"'
    rf';alg="ed25519";tag="{TAG}")'
)
_SIGNATURE = r"svc=:([A-Za-z0-9+/]{86}==):"
_DIGEST = {
    "sha-256": r"sha-256=:([A-Za-z0-9+/]{43}=):",
    "blake3": r":([A-Za-z0-9+/]{43}=):",
}
_METHOD = re.compile(r"[A-Z]{3,16}")
_VISIBLE = re.compile(r"[!-~]*")
_FIELD_VALUE = re.compile(r"[!-~](?:[ -~]*[!-~])?")


class ContentDigest(msgspec.Struct, frozen=True):
    """The digest of a body that a signature covers. `value` is 32 raw bytes."""

    algorithm: Literal["sha-256", "blake3"]
    value: bytes

    def __post_init__(self) -> None:
        if len(self.value) != DIGEST_SIZE:
            raise Invalid(f"a body digest has {DIGEST_SIZE} bytes, got {len(self.value)}")

    @classmethod
    def of(cls, body: bytes) -> ContentDigest:
        """The digest of a body in memory: `Content-Digest` with SHA-256 (RFC 9530)."""
        short = len(body) < SHORT_BODY
        return cls("sha-256", crypto_hash_sha256(body) if short else hashlib.sha256(body).digest())

    @classmethod
    def of_stream(cls, blake3_digest: bytes) -> ContentDigest:
        """The digest of a streamed body, from its BLAKE3, which the sender already knows."""
        return cls("blake3", blake3_digest)

    @property
    def component(self) -> str:
        return _DIGEST_HEADER[self.algorithm].lower()

    @property
    def header(self) -> tuple[str, str]:
        """The name and the value of the header that contains the digest."""
        prefix = "sha-256=" if self.algorithm == "sha-256" else ""
        return _DIGEST_HEADER[self.algorithm], f"{prefix}:{_b64(self.value)}:"

    def check(self, actual: bytes) -> None:
        """Raises NotBound unless `actual`, the digest of the received bytes, equals the signed one."""
        if not hmac.compare_digest(self.value, actual):
            raise NotBound("the body is not the one that was signed; sign and send it again", reason="body")

    def check_body(self, body: bytes) -> None:
        """Raises NotBound unless `body` has the signed digest."""
        self.check(hashlib.sha256(body).digest() if self.algorithm == "sha-256" else digest(body))


class ParsedSignature(msgspec.Struct, frozen=True):
    """The signature headers of a request, well-formed but not verified yet.

    `params`: the text after `svc=`, which is signed unchanged; `components`: the names of the signed parts;
    `created`: Unix seconds; `body`: the signed digest; `authorization`: the value of that header."""

    params: str
    components: tuple[str, ...]
    created: int
    nonce: str
    key_id: str
    signature: bytes
    body: ContentDigest | None
    authorization: str | None


@lru_cache(maxsize=64)
def authority_of(origin: str) -> str:
    """The `@authority` of an origin: `https://Node.example:443` gives `node.example`.

    Raises Invalid for anything but an http or https URL of a host.
    """
    try:
        parts = urlsplit(origin)
        port = parts.port
    except ValueError:
        raise Invalid(f"{origin!r} is not an origin") from None
    strange = parts.username is not None or parts.path not in ("", "/") or parts.query or parts.fragment
    if (
        parts.scheme not in ("http", "https")
        or not parts.hostname
        or strange
        or not _VISIBLE.fullmatch(origin)
    ):
        raise Invalid(f"{origin!r} is not an origin; expected http(s)://host[:port]")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    default = 443 if parts.scheme == "https" else 80
    return host if port in (None, default) else f"{host}:{port}"


def signature_base(components: Sequence[tuple[str, str]], params: str) -> bytes:
    """The bytes to sign, as in RFC 9421 §2.5. `components`: pairs (name of a signed part, its value), already
    checked; `params`: the signature's parameters."""
    lines = [f'"{name}": {value}' for name, value in components]
    return "\n".join([*lines, f'"@signature-params": {params}']).encode("ascii")


def sign(
    key: DeviceKey,
    method: str,
    authority: str,
    path: str,
    query: str,
    *,
    body: ContentDigest | None,
    authorization: str | None,
    now: int,
    nonce: str | None = None,
) -> dict[str, str]:
    """The headers that bind one request to `key`: the header of the digest, Signature-Input and Signature.

    `authority`: as `authority_of` returns it. `path` and `query` are the percent-encoded text of the request
    line, `query` without its question mark. `body` None means no body. `authorization`: the value of that
    header, if the request has it. `now` is in Unix seconds. Raises Invalid for text that a request line or
    header cannot contain."""
    if body is None and method not in SAFE_METHODS:
        body = ContentDigest.of(b"")
    covered = _components(method, body, authorization)
    fault = _unsignable(method, authority, path, query)
    if fault or (authorization is not None and not _FIELD_VALUE.fullmatch(authorization)):
        raise Invalid(
            f"cannot sign this request: {fault or 'authorization'} holds characters HTTP does not allow"
        )
    params = _params(covered, now, nonce or b64u(randombytes(NONCE_BYTES)), key.id)
    base = signature_base(_values(covered, method, authority, path, query, body, authorization), params)
    headers = dict([body.header]) if body is not None else {}
    return headers | {"Signature-Input": f"svc={params}", "Signature": f"svc=:{_b64(key.sign(base))}:"}


def parse(headers: Headers) -> ParsedSignature:
    """Parse the signature of a request. `headers`: all (name, value) headers of the request, in any case and
    order.

    Raises NotBound if the signature is missing, if one of its headers appears twice, or if a header is not
    exactly as `sign` writes it."""
    fields = _collect_fields(headers)
    written = re.fullmatch(_INPUT, _require_field(fields, "signature-input"))
    if written is None:
        raise _header_error("Signature-Input")
    signature = _match(_SIGNATURE, _require_field(fields, "signature"), "Signature")
    return ParsedSignature(
        params=written["params"],
        components=tuple(name.strip('"') for name in written["components"].split(" ")),
        created=int(written["created"]),
        nonce=written["nonce"],
        key_id=written["key_id"],
        signature=signature,
        body=_body(fields),
        authorization=fields.get("authorization"),
    )


def verify(
    parsed: ParsedSignature,
    method: str,
    authority: str,
    path: str,
    query: str,
    *,
    public_key: bytes,
    now: int,
) -> None:
    """Raise NotBound unless `public_key` signed this request and the signature is neither too old nor from
    the future.

    `public_key`: the trusted key for `parsed.key_id`, which is the token's bound key or a registered device
    key. The caller must compare the body with `parsed.body` afterwards. NotBound has a `reason` (stale,
    future, components, key, signature) and `server_time` (Unix seconds), so that a client can correct its
    clock and try again."""

    def refuse(reason: str, detail: str) -> NotBound:
        return NotBound(detail, reason=reason, server_time=now)

    if parsed.created < now - SIGNATURE_MAX_AGE:
        raise refuse(
            "stale", "the request signature is too old; check this machine's clock and send it again"
        )
    if parsed.created > now + SIGNATURE_MAX_SKEW:
        raise refuse("future", "the request signature is from the future; check this machine's clock")
    if _unsignable(method, authority, path, query):
        raise refuse("components", "the request line holds characters that cannot be signed")
    if (parsed.body is None) != (method in SAFE_METHODS):
        raise refuse("components", f"a {method} request covers {'no' if parsed.body else 'a'} body digest")
    covered = _components(method, parsed.body, parsed.authorization)
    if parsed.components != covered:
        raise refuse("components", f"the signature must cover {' '.join(covered)}, in this order")
    if not hmac.compare_digest(key_id(public_key), parsed.key_id):
        raise refuse("key", "the request is signed by another key than the one its session is bound to")
    values = _values(covered, method, authority, path, query, parsed.body, parsed.authorization)
    if not verify_ed25519(public_key, signature_base(values, parsed.params), parsed.signature):
        raise refuse("signature", "the request signature does not match this request")


def _components(method: str, body: ContentDigest | None, authorization: str | None) -> tuple[str, ...]:
    if body is not None and method in SAFE_METHODS:
        raise Invalid(f"a {method} request has no body to sign")
    digests = (body.component,) if body is not None else ()
    return _COVERED + digests + (("authorization",) if authorization is not None else ())


def _values(
    covered: Sequence[str],
    method: str,
    authority: str,
    path: str,
    query: str,
    body: ContentDigest | None,
    authorization: str | None,
) -> list[tuple[str, str]]:
    values = {
        "@method": method,
        "@authority": authority.lower(),
        "@path": path or "/",
        "@query": f"?{query}",
        "authorization": authorization or "",
    }
    if body is not None:
        values[body.component] = body.header[1]
    return [(name, values[name]) for name in covered]


def _params(covered: Sequence[str], created: int, nonce: str, signer: str) -> str:
    names = " ".join(f'"{name}"' for name in covered)
    return f'({names});created={created};nonce="{nonce}";keyid="{signer}";alg="ed25519";tag="{TAG}"'


def _unsignable(method: str, authority: str, path: str, query: str) -> str | None:
    """The name of the first argument that must not be signed: "method" for an invalid method; "authority",
    "path" or "query" for a text with characters such as line breaks. None if all four are valid."""
    if not _METHOD.fullmatch(method):
        return "method"
    parts = {"authority": authority, "path": path, "query": query}
    return next((name for name, text in parts.items() if not _VISIBLE.fullmatch(text)), None)


def _collect_fields(headers: Headers) -> dict[str, str]:
    fields: dict[str, str] = {}
    for raw_name, value in headers:
        name = raw_name.lower()
        if name not in _HEADERS_READ:
            continue
        if name in fields:
            raise NotBound(f"{raw_name} appears twice; send it once", reason="malformed")
        fields[name] = value.strip(" \t")
    if "authorization" in fields and not _FIELD_VALUE.fullmatch(fields["authorization"]):
        raise _header_error("Authorization")
    return fields


def _require_field(fields: dict[str, str], name: str) -> str:
    if name not in fields:
        raise NotBound(
            "this request must be signed by the device key its session is bound to; run: svc login",
            reason="missing",
        )
    if len(fields[name]) > _HEADER_CHARS_MAX:
        raise _header_error(name)
    return fields[name]


def _body(fields: dict[str, str]) -> ContentDigest | None:
    buffered, streamed = fields.get("content-digest"), fields.get("svc-content-blake3")
    if buffered is not None and streamed is not None:
        raise NotBound("a body has one digest header, this request has two", reason="malformed")
    if buffered is not None:
        return ContentDigest("sha-256", _match(_DIGEST["sha-256"], buffered, "Content-Digest"))
    if streamed is not None:
        return ContentDigest("blake3", _match(_DIGEST["blake3"], streamed, "Svc-Content-BLAKE3"))
    return None


def _match(pattern: str, text: str, header: str) -> bytes:
    """The bytes of the base64 text that the first group of `pattern` matches in the value of `header`. Raises
    NotBound if the pattern does not match or the base64 is not canonical."""
    match = re.fullmatch(pattern, text)
    if match is None:
        raise _header_error(header)
    raw = base64.b64decode(match[1])
    if _b64(raw) != match[1]:
        raise _header_error(header)
    return raw


def _header_error(header: str) -> NotBound:
    return NotBound(f"{header} is not written as the profile {TAG} asks", reason="malformed")


def _b64(raw: bytes) -> str:
    return base64.b64encode(raw).decode("ascii")
