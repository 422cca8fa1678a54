"""Signing in by a provider that others certified: npm's `oidc-provider`, where node is installed."""

from __future__ import annotations

import re
import select
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from localstore.core.model.auth import USER_INFO
from tests import npm
from tests.patience import PATIENCE
from tests.relay.auth.people import TRUST
from tests.relay.auth.provider import CLIENT, SECRET

PACKAGE = "oidc-provider@9.13.3"
SCRIPT = Path(__file__).with_name("oidc_provider.mjs")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the provider's packages."""
    folder = tmp_path_factory.mktemp("npm")
    shutil.copy(SCRIPT, folder)
    npm.install(folder, PACKAGE)
    return folder


@pytest.fixture(scope="module")
def port() -> int:
    return free_port()


@pytest.fixture(scope="module")
def relay_variables(port: int) -> dict[str, str]:
    return {
        "TR_RATE_LIMITS": "off",
        "RUST_LOG": "off",
        "RAUTHY_URL": f"http://127.0.0.1:{port}",
        "RAUTHY_CLIENT_ID": CLIENT,
        "RAUTHY_CLIENT_SECRET": SECRET,
    }


@pytest.fixture
def provider(packages: Path, relay, port: int) -> Iterator[None]:
    command = ["node", str(packages / SCRIPT.name), str(port), f"{relay.url}/auth/callback"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        try:
            ready, _, _ = select.select([process.stdout], [], [], PATIENCE)
            assert ready and "listening" in process.stdout.readline()
            yield
        finally:
            process.kill()


def test_a_certified_provider_signs_somebody_in(relay, provider, browser, name) -> None:
    handle = name()
    first = browser()
    answer = first.get("/auth/login", params={"provider": "rauthy", "return_to": "/settings?tab=sign-in"})
    callback = _through_its_forms(answer.headers["location"], handle, relay.url)
    answer = first.get(callback)
    assert answer.headers["location"] == "/auth/arrival", answer.text
    answer = first.post("/auth/arrival", data={"handle": handle})
    assert answer.status_code == 303 and first.get(USER_INFO.path).json()["signed_in_by"] == "rauthy"
    again = browser()
    answer = again.get("/auth/login", params={"provider": "rauthy"})
    answer = again.get(_through_its_forms(answer.headers["location"], handle, relay.url))
    assert answer.headers["location"] == "/"
    assert again.get(USER_INFO.path).json()["handle"] == handle


def _through_its_forms(location: str, person: str, relay_url: str) -> str:
    """Sign in at the provider as a browser would; the path of the callback it leads to, with its query."""
    with httpx.Client(verify=TRUST, trust_env=False, timeout=PATIENCE) as http:
        answer = http.get(location)
        for _ in range(12):
            while answer.is_redirect:
                target = str(answer.url.join(answer.headers["location"]))
                if target.startswith(relay_url):
                    parts = urlsplit(target)
                    return f"{parts.path}?{parts.query}"
                answer = http.get(target)
            action = re.search(r'action="([^"]+)"', answer.text)
            prompt = re.search(r'name="prompt" value="([^"]+)"', answer.text)
            assert action and prompt, answer.text
            form = {"prompt": prompt[1], "login": person, "password": "any"}
            answer = http.post(str(answer.url.join(action[1])), data=form)
    raise AssertionError("the provider never led back")
