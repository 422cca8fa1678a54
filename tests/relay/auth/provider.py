"""An identity provider on this machine, which signs what a test tells it to."""

from __future__ import annotations

import hmac
import json
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import ECKey, RSAKey

from localstore.core.encoding import b64u

CLIENT, SECRET = "svc-test", "a secret: with % signs"
Claims = dict[str, Any]


@dataclass
class Grant:
    """What a code stands for: the claims of its person, and the query with which the browser came."""

    claims: Claims
    query: dict[str, str]


@dataclass
class Provider:
    """`person`: whom the next code names. `forge`: changes the claims before they are signed. `sign`: makes
    the token of them, instead of the provider's key. `metadata`: replaces members of what it says of itself.
    `down`: every answer is a 500. `goes_down`: it is down after it has sent the next browser back. `asked`:
    the forms of the token endpoint. `reads`: the paths that were read."""

    person: Claims = field(default_factory=lambda: {"sub": "s-1", "preferred_username": "mira"})
    forge: Callable[[Claims], Claims] = lambda claims: claims
    sign: Callable[[Claims], str] | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    down: bool = False
    goes_down: bool = False
    asked: list[dict[str, str]] = field(default_factory=list)
    reads: list[str] = field(default_factory=list)
    authorizations: list[str] = field(default_factory=list)
    key: RSAKey = field(default_factory=lambda: RSAKey.generate_key(2048, {"kid": "one", "use": "sig"}))
    published: list[Any] = field(default_factory=list)
    user: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.published = [self.key.as_dict(private=False)]
        self._grants: dict[str, Grant] = {}
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                path = urlsplit(self.path).path
                provider.reads.append(path)
                if path == "/authorize" and not provider.down:
                    provider._send_back(self)
                else:
                    provider._answer(self, path, b"")

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                provider._answer(self, urlsplit(self.path).path, body)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.issuer = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def authorize(self, location: str) -> dict[str, str]:
        """What the browser brings back from this address: the query of the callback."""
        query = {name: values[0] for name, values in parse_qs(urlsplit(location).query).items()}
        code = secrets.token_hex(8)
        self._grants[code] = Grant(dict(self.person), query)
        is_github = urlsplit(location).path.startswith("/login/oauth")
        issuer = f"{self.issuer}/login/oauth" if is_github else self.issuer
        return {"code": code, "state": query["state"], "iss": issuer}

    def _send_back(self, request: BaseHTTPRequestHandler) -> None:
        """Send a browser back at once: `person` is signed in here."""
        target = parse_qs(urlsplit(request.path).query)["redirect_uri"][0]
        self.down, self.goes_down = self.goes_down, False
        request.send_response(302)
        request.send_header("location", f"{target}?{urlencode(self.authorize(request.path))}")
        request.send_header("content-length", "0")
        request.end_headers()

    def token(self, grant: Grant) -> str:
        now = int(time.time())
        claims = {
            "iss": self.issuer,
            "aud": CLIENT,
            "exp": now + 300,
            "iat": now,
            "nonce": grant.query.get("nonce", ""),
            **grant.claims,
        }
        claims = self.forge(claims)
        if self.sign is not None:
            return self.sign(claims)
        return jwt.encode({"alg": "RS256", "kid": "one"}, claims, self.key)

    def _answer(self, request: BaseHTTPRequestHandler, path: str, body: bytes) -> None:
        if self.down:
            self._send(request, 500, {})
        elif path == "/.well-known/openid-configuration":
            self._send(
                request,
                200,
                {
                    "issuer": self.issuer,
                    "authorization_endpoint": f"{self.issuer}/authorize",
                    "token_endpoint": f"{self.issuer}/token",
                    "jwks_uri": f"{self.issuer}/keys",
                    **self.metadata,
                },
            )
        elif path == "/keys":
            self._send(request, 200, {"keys": self.published})
        elif path in ("/token", "/login/oauth/access_token"):
            form = {name: values[0] for name, values in parse_qs(body.decode()).items()}
            self.asked.append(form)
            self.authorizations.append(request.headers.get("authorization") or "")
            grant = self._grants.pop(form.get("code", ""), None)
            if grant is None:
                self._send(request, 400, {"error": "invalid_grant"})
            elif path == "/token":
                self._send(request, 200, {"id_token": self.token(grant), "access_token": "a"})
            else:
                self._send(request, 200, {"access_token": "gho_1", "token_type": "bearer"})
        elif path == "/api/v3/user" and request.headers.get("authorization") == "Bearer gho_1":
            self._send(request, 200, self.user)
        else:
            self._send(request, 404, {})

    @staticmethod
    def _send(request: BaseHTTPRequestHandler, status: int, body: Any) -> None:
        data = json.dumps(body).encode()
        request.send_response(status)
        request.send_header("content-type", "application/json")
        request.send_header("content-length", str(len(data)))
        request.end_headers()
        request.wfile.write(data)


def other_rsa() -> RSAKey:
    return RSAKey.generate_key(2048, {"kid": "one"})


def other_ec() -> ECKey:
    return ECKey.generate_key("P-256", {"kid": "two", "use": "sig"})


def by_hmac(secret: bytes) -> Callable[[Claims], str]:
    """Sign with a shared secret; joserfc itself refuses to take a public key for one."""

    def sign(claims: Claims) -> str:
        head = b64u(b'{"alg":"HS256","kid":"one"}')
        body = f"{head}.{b64u(json.dumps(claims).encode())}"
        return f"{body}.{b64u(hmac.digest(secret, body.encode(), 'sha256'))}"

    return sign


__all__ = ["CLIENT", "SECRET", "Claims", "Grant", "Provider", "by_hmac", "other_ec", "other_rsa"]
