"""Sends a running relay valid and invalid requests made from its OpenAPI document, and checks every answer.

    python -m scripts.fuzz.api [--examples 500] [--seed 1] [--only repo.]

Schemathesis makes requests from the document, some that fit it and some that do not. Names, ids and keys in
them are often replaced by existing ones, so that requests reach the handlers. Each request is sent without a
session, as a guest, from the owner's terminal or browser, or with a forged token. An answer must have a
status, a content type and a body that the document names, and every answer 404 must have one of three fixed
bodies, so that it does not tell what exists. The relay gets this script's environment, so DATABASE_URL and
S3_… can name its stores.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hypothesis
import requests
import schemathesis
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from localstore.core.errors import EditionLacks, NotFound
from localstore.core.identity.bearer import authorization
from localstore.core.identity.request_signature import SAFE_METHODS, ContentDigest, sign
from localstore.core.model.billing import BillingCapability
from localstore.core.model.cloud import CloudCapability
from localstore.core.model.seal import E2eeUnavailable
from relay.http.problems import NOT_FOR_GIT, NOT_FOUND_BODY
from relay.pages import refusal
from scripts.fuzz.together import join_names, organisation, together
from tests.relay.auth.people import TRUST, Browser, Device, Terminal
from tests.relay.conftest import Account, Signed
from tests.relay.histories import Repository, create


def no_fault(context: Any, response: Any, case: Any) -> bool | None:
    """A check for Schemathesis: a 5xx answer is a fault, unless it says that this edition or node lacks the
    feature."""
    if response.status_code in (501, 503) and response.json()["code"] in LACKING:
        return None
    return not_a_server_error(context, response, case)


NOT_FOUND_PAGE = refusal(NotFound()).body
CHECKS = [
    no_fault,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
LACKING = (E2eeUnavailable.code, EditionLacks.code, CloudCapability.code, BillingCapability.code)
CALLERS = ("nobody", "guest", "terminal", "browser", "forger")
HEADERS: list[dict[str, str]] = [
    {},
    {"Range": "bytes=0-1"},
    {"Range": "bytes=9999-"},
    {"If-None-Match": "*"},
    {"Idempotency-Key": "one"},
    {"Upgrade": "websocket", "Connection": "Upgrade"},
]
VARIABLES = {
    "TR_RATE_LIMITS": "off",
    "RUST_LOG": "error",
    "TR_REPO_MERGE_ENABLED": "on",
    "TR_SOCIAL_ENABLED": "on",
}
# What requests rely on: after a new description or a new head the targets still fit.
STANDING = (
    "user_id",
    "handle",
    "session_id",
    "id",
    "name",
    "visibility",
    "default_branch",
    "archived",
    "state",
    "protected",
)
MODES = _POSITIVE, _NEGATIVE = schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE


@dataclass
class RelayProcess:
    """A relay in its own process. `log`: the file with its stderr."""

    url: str
    process: subprocess.Popen[str]
    log: Path

    def anonymous_memory(self) -> int:
        """The anonymous memory of the process (RssAnon) in bytes."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition("RssAnon:")[2].split()[0]) * 1024

    def alive(self) -> bool:
        return self.process.poll() is None


@contextlib.contextmanager
def serving(folder: Path, **variables: str) -> Iterator[RelayProcess]:
    """A context that runs a relay with a new data folder below `folder`. `variables`: added to its
    environment."""
    log = folder / "relay.log"
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("TR_", "RELAY_"))}
    command = [sys.executable, "-m", "relay", "serve", "--dev", "--port", "0", "--data", str(folder / "data")]
    with log.open("w") as errors:
        process = subprocess.Popen(
            command,
            env={**kept, **VARIABLES, **variables},
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        if "listening on" not in line:
            raise RuntimeError(f"the relay did not start: {log.read_text()[-2000:]}")
        yield RelayProcess(line.rpartition(" ")[2].strip(), process, log)
    finally:
        process.terminate()
        process.wait(30)


class Bound(requests.auth.AuthBase):
    """Signs requests as `svc` in a terminal does: adds the session's token to each request, and a signature
    if the request changes something."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        one, method = self._terminal, request.method or "GET"
        assert one.token is not None
        request.headers["Authorization"] = authorization(one.token)
        if method not in SAFE_METHODS:
            path, _, query = request.path_url.partition("?")
            body = request.body or b""
            assert isinstance(body, bytes | str)  # as requests makes it, unless a stream is given
            signed = sign(
                one.key,
                method,
                one.url.removeprefix("http://"),
                path,
                query,
                body=ContentDigest.of(body.encode() if isinstance(body, str) else body),
                authorization=authorization(one.token),
                now=int(time.time()),
            )
            request.headers.update(signed)
        return request


class RequestTargets:
    """The things that the requests can find. An owner has a browser, a terminal and an organisation; there is
    also a guest. A public and a private repository have seals, an issue, a proposal and so on. `names`: for
    the name of a parameter, the existing values that fit it."""

    def __init__(self, url: str) -> None:
        self.url = url
        handle = f"u{secrets.token_hex(6)}"
        self.browser = Browser(url).sign_up(handle)
        self.guest = Browser(url)
        assert self.guest.post("/auth/guest-login").is_success
        device = Device(url)
        pair = self.browser.post("/api/v1/auth/pairing-codes").json()["code"]
        granted = device.sign_in(handle, pair=pair).json()
        self.terminal = device.client(granted["token"])
        assert self.terminal.token is not None
        owner = Account(granted["user_id"], handle, device.key, granted["session_id"], self.terminal.token)
        self._http = requests_of(owner, url)
        self.shown = create(self._http, owner, "shown", visibility="public")
        hidden = create(self._http, owner, "hidden")
        self.names = join_names(
            self._names(owner, [self.shown, hidden]), together(self.shown), organisation(self._http)
        )
        self._known = self._state()

    def _names(self, owner: Account, repos: list[Repository]) -> dict[str, list[Any]]:
        seals: list[str] = []
        for repo in repos:
            seals += repo.seal({"a.txt": b"one\n", "d/b.bin": b"\0" * 9}, {"a.txt": b"one\ntwo\n"})
            seals += repo.seal({"c.txt": b"one\ntwo\n", "a.txt": None})
            repo.branch("other", seals[-1])
        digests = ["5ca7ad8ed1d0b4cd6bb1d5f0d7fc0ec3e5ff1bdcd9d14c9b3ee2c4cd6d2b8d1f"]
        digests += [entry["blake3"] for entry in repos[0].get(f"/tree/{seals[1]}", recursive=1)["entries"]]
        return {
            "id": [repo.id for repo in repos],
            "repos": [[repo.id] for repo in repos],
            "sha": seals,
            "seal_id": seals,
            "from": seals,
            "head": [*seals, "main", "other", None],
            "base": [*seals, "main", "other"],
            "expected_head": [*seals, None],
            "path": ["a.txt", "c.txt", "d/b.bin", "d", ""],
            "branch": ["main", "other"],
            "name": ["main", "shown", "hidden", "a.txt"],
            "ref": ["main", "other"],
            "type": ["branch", "tag"],
            "blake3": digests,
            "digest": digests,
            "device_key_id": [owner.key.id],
            "owner": [owner.handle, "@me"],
            "handle": [owner.handle],
            "kind": ["app", "apps", "lib"],
            "prepare_id": seals,
        }

    def stands(self) -> bool:
        """Whether nothing was deleted, renamed or signed out, so that `names` is still right."""
        return self._state() == self._known

    def _state(self) -> list[Any]:
        """The state by which `stands` notices a change: who the owner and the guest are, and the name,
        visibility and branches of each repository."""
        repos = [f"/api/v1/repos/{one}" for one in self.names["id"]]
        told = [one.get("/auth/userinfo").json() for one in (self.browser, self.guest)]
        told += [self._http.get(path).json() for path in repos]
        branches = [one for path in repos for one in self._http.get(f"{path}/refs").json().get("items", [])]
        told += [one for one in branches if one["name"] in self.names["branch"]]
        return [{name: one.get(name) for name in STANDING} for one in told]

    def close(self) -> None:
        for one in (self.browser, self.guest, self._http):
            one.close()

    def session(self, caller: str) -> tuple[requests.Session, requests.auth.AuthBase | None]:
        """How `caller` (one of CALLERS, such as "guest") sends requests. Returns (session with the caller's
        cookies and headers, object that signs the requests or None)."""
        session = requests.Session()
        session.trust_env = False
        if caller in ("guest", "browser"):
            one = self.guest if caller == "guest" else self.browser
            session.headers["Origin"] = self.url
            session.headers["Cookie"] = f"tr_session={one.cookies['tr_session']}"
        if caller == "forger":
            session.headers["Authorization"] = "Bearer AAAA"
        return session, Bound(self.terminal) if caller == "terminal" else None


def requests_of(owner: Account, url: str) -> Any:
    import httpx

    auth = Signed(owner, url.removeprefix("http://"))
    return httpx.Client(base_url=url, auth=auth, verify=TRUST, trust_env=False, timeout=30)


def insert_known_values(draw: Any, value: Any, names: dict[str, list[Any]], name: str = "") -> Any:
    """Replace some values inside the JSON `value` by existing names and ids, and return the result. `name`:
    the JSON member or parameter that has this value. `names`: for the name of a member or parameter, the
    existing values that fit it."""
    if name in names and draw(st.integers(0, 3)):
        return draw(st.sampled_from(names[name]))
    if isinstance(value, dict):
        return {key: insert_known_values(draw, one, names, key) for key, one in value.items()}
    if isinstance(value, list):
        return [insert_known_values(draw, one, names) for one in value]
    return value


def attack(
    targets: RequestTargets, operation: Any, examples: int, seed: int, modes: Sequence[Any] = MODES
) -> int:
    """Send random requests for one operation, `examples` for each mode of Schemathesis: valid ones, then
    invalid ones. Returns how many were sent. Raises an error for the first wrong answer."""
    sent = itertools.count()
    sessions = {caller: targets.session(caller) for caller in CALLERS}

    def once(data: Any, case: Any) -> None:
        for place in ("path_parameters", "query", "body"):
            value = getattr(case, place)
            if isinstance(value, dict):
                setattr(case, place, insert_known_values(data.draw, value, targets.names))
        caller = data.draw(st.sampled_from(CALLERS))
        session, auth = sessions[caller]
        answer = case.call(
            base_url=targets.url,
            session=session,
            auth=auth,
            headers=data.draw(st.sampled_from(HEADERS)),
            allow_redirects=False,
            timeout=30,
        )
        next(sent)
        case.validate_response(answer, checks=CHECKS, headers={"X-Caller": caller})
        if answer.status_code == 404 and case.method != "HEAD":
            assert answer.content in (NOT_FOUND_BODY, NOT_FOUND_PAGE, NOT_FOR_GIT), answer.content

    for mode in modes:
        run = hypothesis.given(data=st.data(), case=operation.as_strategy(generation_mode=mode))(once)
        run = hypothesis.settings(
            max_examples=examples,
            deadline=None,
            database=None,
            phases=[hypothesis.Phase.generate, hypothesis.Phase.shrink],
            suppress_health_check=list(hypothesis.HealthCheck),
        )(hypothesis.seed(seed)(run))
        with contextlib.suppress(hypothesis.errors.Unsatisfiable):  # nothing can be wrong about no parameters
            run()
    return next(sent)


def operations(url: str, only: str = "") -> list[Any]:
    """The operations in the relay's OpenAPI document whose ids begin with `only`."""
    document = requests.get(f"{url}/api/v1/openapi.json", timeout=30).json()
    answers: Iterable[Any] = schemathesis.openapi.from_dict(document).get_all_operations()
    every = [answer.ok() for answer in answers]
    return [operation for operation in every if operation.definition.raw["operationId"].startswith(only)]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--examples", type=int, default=500, help="for each operation and mode")
    parser.add_argument("--seed", type=int, default=secrets.randbits(32))
    parser.add_argument("--only", default="", help="operations whose id begins so")
    asked = parser.parse_args()
    print(f"seed {asked.seed}", flush=True)
    bad = 0
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder)) as relay:
        for operation in operations(relay.url, asked.only):
            targets = RequestTargets(relay.url)  # what the last one may have deleted, renamed or signed out
            try:
                sent = attack(targets, operation, asked.examples, asked.seed)
                print(f"{operation.label}: {sent} requests", flush=True)
            except (Exception, BaseExceptionGroup) as error:
                bad += 1
                print(f"{operation.label}: {error}", flush=True)
            finally:
                targets.close()
        print(json.dumps({"alive": relay.alive(), "anonymous_memory": relay.anonymous_memory(), "bad": bad}))
        print(relay.log.read_text()[-4000:])
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
