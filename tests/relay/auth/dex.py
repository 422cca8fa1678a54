"""Dex, an identity provider written in Go by others, and a proxy between it and the relay that can lie."""

from __future__ import annotations

import base64
import json
import re
import secrets
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx

from tests import patience
from tests.relay.auth.people import TRUST
from tests.relay.auth.provider import CLIENT, SECRET

PACKAGE = "github.com/dexidp/dex/cmd/dex"
MODULES = {  # of 6 August 2026: Dex has no versions that Go's way of naming them allows
    "github.com/dexidp/dex": "v0.0.0-20260806151424-ab64ed778070",
    "github.com/dexidp/dex/api/v2": "v2.4.1-0.20260806151424-ab64ed778070",
}
PUBLIC, OTHER = "svc-public", "other"  # clients beside CLIENT; OTHER is a different program's
PASSWORD = "password"
HASH = "$2a$10$2b2cU8CPhOTaGrs1HRQuAueS7JTT5ZHsHSzYiFPm1leZck7Mc8T4W"  # bcrypt of PASSWORD
TOKEN_SECONDS = 300  # that an ID token is valid
PEOPLE = 40


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


class Dex:
    """The provider as the relay sees it, through the proxy. `issuer`: its address. `down`: nothing is passed
    on. `change`: makes the ID token that the relay gets from the one that Dex signed. `keys`: replaces the
    published keys. `tokens`: what Dex signed."""

    def __init__(self) -> None:
        self.down = False
        self.change: Callable[[str], str] = lambda token: token
        self.tokens: list[str] = []
        self.people = [f"p{secrets.token_hex(5)}" for _ in range(PEOPLE)]
        self._unused = iter(self.people)
        self._port = free_port()
        self._http = httpx.Client(base_url=f"http://127.0.0.1:{self._port}", trust_env=False, verify=TRUST)
        dex = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                dex._pass_on(self, b"")

            def do_POST(self) -> None:
                dex._pass_on(self, self.rfile.read(int(self.headers["content-length"])))

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.issuer = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    @contextmanager
    def running(self, executable: Path, folder: Path, relay_url: str) -> Iterator[None]:
        """A context in which Dex serves, with the relay as its client."""
        (folder / "dex.json").write_text(json.dumps(self._config(relay_url)))
        with (folder / "dex.log").open("wb") as log:
            command = [str(executable), "serve", str(folder / "dex.json")]
            with subprocess.Popen(command, cwd=folder, stdout=log, stderr=log) as process:
                try:
                    patience.until(lambda: self._answers() or process.poll() is not None, "Dex answers")
                    assert process.poll() is None, (folder / "dex.log").read_text()
                    yield
                finally:
                    process.kill()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._http.close()

    def new_person(self) -> str:
        """The name of somebody who never signed in."""
        return next(self._unused)

    def sign_in(self, location: str, person: str, back_to: str) -> dict[str, str]:
        """Sign `person` in at Dex as a browser would. Returns the query with which the browser is sent to an
        address that begins with `back_to`."""
        with httpx.Client(verify=TRUST, trust_env=False, timeout=patience.PATIENCE) as http:
            answer = http.get(location)
            for _ in range(12):
                while answer.is_redirect:
                    target = str(answer.url.join(answer.headers["location"]))
                    if target.startswith(back_to):
                        query = parse_qs(urlsplit(target).query)
                        return {name: values[0] for name, values in query.items()}
                    answer = http.get(target)
                action = re.search(r'<form method="post" action="([^"]+)"', answer.text)
                assert action, answer.text
                form = {"login": f"{person}@example.org", "password": PASSWORD}
                answer = http.post(str(answer.url.join(action[1].replace("&amp;", "&"))), data=form)
        raise AssertionError("Dex never led back")

    def token_for(self, client: str, person: str, nonce: str, scope: str = "openid profile") -> str:
        """The ID token that Dex issues to the program `client` for this person, with this nonce."""
        callback = "http://127.0.0.1/other"
        query = {"client_id": client, "response_type": "code", "redirect_uri": callback, "scope": scope}
        location = f"{self.issuer}/auth?{urlencode({**query, 'nonce': nonce, 'state': 's'})}"
        code = self.sign_in(location, person, callback)["code"]
        pair = base64.b64encode(f"{client}:{OTHER}".encode()).decode()
        form = {"grant_type": "authorization_code", "code": code, "redirect_uri": callback}
        answer = self._http.post("/token", data=form, headers={"authorization": f"Basic {pair}"})
        return str(answer.raise_for_status().json()["id_token"])

    def public_keys(self) -> list[dict[str, Any]]:
        return list(self._http.get("/keys").raise_for_status().json()["keys"])

    def _answers(self) -> bool:
        try:
            return self._http.get("/healthz").status_code == 200
        except httpx.HTTPError:
            return False

    def _pass_on(self, request: BaseHTTPRequestHandler, body: bytes) -> None:
        if self.down:
            status, kind, location, answer_body = 502, "text/plain", None, b"down"
        else:
            headers = {
                name: value
                for name, value in request.headers.items()
                if name.lower() in ("authorization", "content-type", "cookie", "accept")
            }
            answer = self._http.request(
                request.command, request.path, content=body, headers=headers, timeout=patience.PATIENCE
            )
            status, kind = answer.status_code, answer.headers.get("content-type", "text/plain")
            location, answer_body = answer.headers.get("location"), answer.content
            if request.path == "/token" and status == 200:
                tokens = answer.json()
                self.tokens.append(tokens["id_token"])
                answer_body = json.dumps({**tokens, "id_token": self.change(tokens["id_token"])}).encode()
        request.send_response(status)
        request.send_header("content-type", kind)
        request.send_header("content-length", str(len(answer_body)))
        if location is not None:
            request.send_header("location", location)
        request.end_headers()
        request.wfile.write(answer_body)

    def _config(self, relay_url: str) -> dict[str, Any]:
        return {
            "issuer": self.issuer,
            "storage": {"type": "memory"},
            "web": {"http": f"127.0.0.1:{self._port}"},
            "oauth2": {"skipApprovalScreen": True},
            "expiry": {"idTokens": f"{TOKEN_SECONDS}s"},
            "staticClients": [
                {
                    "id": CLIENT,
                    "secret": SECRET,
                    "name": "svc",
                    "redirectURIs": [f"{relay_url}/auth/callback"],
                    "trustedPeers": [OTHER],
                },
                {
                    "id": PUBLIC,
                    "name": "svc without a secret",
                    "public": True,
                    "redirectURIs": [f"{relay_url}/auth/callback/public"],
                },
                {"id": OTHER, "secret": OTHER, "name": "Other", "redirectURIs": ["http://127.0.0.1/other"]},
            ],
            "enablePasswordDB": True,
            "staticPasswords": [
                {
                    "email": f"{person}@example.org",
                    "hash": HASH,
                    "username": person,
                    "preferredUsername": person,
                    "userID": f"id-of-{person}",
                }
                for person in self.people
            ],
        }
