"""What each variable of the environment changes, seen from outside."""

from __future__ import annotations

import contextlib
import shutil
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from localstore.core.encoding import b64u
from localstore.core.identity.keys import DeviceKey, TransportKey
from relay import config
from relay.base.environment import StartRefused
from tests.patience import PATIENCE
from tests.relay.conftest import Relay
from tests.relay.run.test_start import served

ORIGIN = "https://node.example"
QUIET = {"TR_RATE_LIMITS": "off", "RUST_LOG": "off"}


@contextlib.contextmanager
def serving(folder: Path, **variables: str) -> Iterator[httpx.Client]:
    running = Relay(folder, {**QUIET, **variables})
    running.start()
    try:
        with httpx.Client(
            base_url=f"http://127.0.0.1:{running.node.config.port}", trust_env=False, timeout=PATIENCE
        ) as http:
            yield http
    finally:
        running.stop()


def node(http: httpx.Client) -> dict[str, object]:
    return dict(http.get("/api/v1/client-config").json()["node"])


def read(**variables: str) -> config.Config:
    return config.read(variables, dev=True, host="127.0.0.1", port=0, data=Path("data"))


def test_the_node_says_its_name_origin_and_source(tmp_path: Path) -> None:
    with serving(
        tmp_path,
        TR_NODE_NAME="alpha",
        TR_PUBLIC_URL=ORIGIN + "/",
        TR_SOURCE_URL="https://code.example/svc",
    ) as http:
        said = node(http)
        assert (said["name"], said["identity"]) == ("alpha", ORIGIN)
        assert said["source_url"] == "https://code.example/svc"
        assert http.get("/version").json()["source_url"] == "https://code.example/svc"
        public = b64u(DeviceKey.generate().public), b64u(TransportKey.generate().public)
        start = {"device_ed25519": public[0], "transport_x25519": public[1], "label": "x"}
        code = http.post("/api/v1/auth/cli/device-code", json=start).json()
        assert code["verification_uri"] == ORIGIN + "/cli/authorize"


def test_the_name_is_the_host_when_none_is_given(tmp_path: Path) -> None:
    with serving(tmp_path, TR_PUBLIC_URL=ORIGIN) as http:
        assert node(http)["name"] == "node.example"
        assert node(http)["source_url"] == ORIGIN + "/source.tar.gz"


def test_version_and_node_have_the_promised_members(tmp_path: Path) -> None:
    with serving(tmp_path) as http:
        version = http.get("/version").json()
        said = node(http)
    assert (version["edition"], version["api_version"]) == (said["edition"], 1)
    assert type(version["api_version"]) is int
    assert isinstance(version["source_url"], str)
    assert {"version", "commit", "built_at", "min_client"} <= set(version)
    assert said["screening"] == "unscreened"
    assert said["e2ee"]["status"] == "disabled"  # type: ignore[index]


@pytest.mark.parametrize("scope", ["single_user", "org", "private"])
def test_encrypted_projects_wait_for_their_processes(tmp_path: Path, scope: str) -> None:
    with serving(tmp_path, **{f"TR_{scope.upper()}_E2EE_ENABLED": "on"}) as http:
        said = node(http)["e2ee"]
        ready = http.get("/readyz")
    assert isinstance(said, dict)
    assert (said["status"], bool(said["reason"])) == ("unavailable", True)
    assert [name for name in ("single_user", "org", "private") if said[name]] == [scope]
    assert (ready.status_code, ready.json()["checks"]["e2ee"]) == (503, "down")


def test_the_admin_secret_opens_the_metrics_from_elsewhere(tmp_path: Path) -> None:
    """A request that came through a proxy is not of this machine."""
    with serving(tmp_path, RELAY_ADMIN_SECRET="s" * 32, TR_PROXY_HOPS="1") as http:
        for secret, status in (("s" * 32, 200), ("t" * 32, 404), ("", 404)):
            headers = {"X-Forwarded-For": "203.0.113.9", "X-Admin-Secret": secret}
            assert http.get("/metrics", headers=headers).status_code == status, secret


def test_device_keys_and_local_accounts_can_be_forbidden(tmp_path: Path) -> None:
    with serving(tmp_path, TR_DEVICE_KEY_SIGN_IN="off", TR_LOCAL_SIGN_UP="off") as http:
        assert "device_key" not in node(http)["sign_in"]  # type: ignore[operator]
        form = {"handle": "mira", "password": "correct horse battery"}
        answer = http.post("/auth/sign-up", data=form, headers={"Origin": str(http.base_url).rstrip("/")})
        assert answer.status_code in (403, 404)


def test_naming_an_identity_provider_closes_no_door(tmp_path: Path) -> None:
    """Accounts of the node go on signing in, also while the provider cannot be reached."""
    form = {"handle": "mira", "password": "correct horse battery"}
    with serving(tmp_path, RAUTHY_URL="https://id.example", RAUTHY_CLIENT_ID="svc") as http:
        assert node(http)["sign_in"] == ["guest", "local", "oidc:rauthy", "device_key"]
        http.headers["Origin"] = str(http.base_url).rstrip("/")
        assert http.get("/auth/login").status_code == 200
        assert http.post("/auth/sign-up", data=form).status_code == 303
        assert http.post("/auth/login", data=form).status_code == 303


def test_a_secret_comes_from_a_file_too(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("0" * 63 + "f\n")
    assert read(MANAGED_KEY_SECRET_FILE=str(tmp_path / "secret")).secrets.managed_key == bytes(31) + b"\x0f"


@pytest.mark.parametrize(("digits", "good"), [(63, False), (64, True), (65, False)])
def test_the_managed_key_is_32_bytes_in_hex(digits: int, good: bool) -> None:
    with contextlib.nullcontext() if good else pytest.raises(StartRefused, match="64 digits"):
        read(MANAGED_KEY_SECRET="a" * digits)


def test_secrets_are_in_no_text_of_the_configuration() -> None:
    secret = "d" * 64
    shown = repr(
        read(
            MANAGED_KEY_SECRET=secret,
            RELAY_ADMIN_SECRET=secret,
            DATABASE_URL="postgresql://svc@db.example/svc",
            POSTGRES_PASSWORD=secret,
            RAUTHY_URL="https://id.example",
            RAUTHY_CLIENT_ID="svc",
            RAUTHY_CLIENT_SECRET=secret,
            S3_ENDPOINT="https://s3.example",
            S3_BUCKET="b",
            S3_ACCESS_KEY="id",
            S3_SECRET_KEY=secret,
        )
    )
    assert secret not in shown
    assert str(bytes.fromhex(secret)) not in shown


def test_object_storage_needs_address_and_bucket_together() -> None:
    found = read(S3_ENDPOINT="https://s3.example", S3_BUCKET="b1", S3_REGION="eu-x-1").storage.s3
    assert found is not None
    assert (found.bucket, found.region) == ("b1", "eu-x-1")
    for name, value in (("S3_ENDPOINT", "https://s3.example"), ("S3_BUCKET", "b1")):
        with pytest.raises(StartRefused, match="go together"):
            read(**{name: value})


@pytest.mark.parametrize("name", ["S3_ACCESS_KEY", "S3_SECRET_KEY"])
def test_a_key_of_the_object_storage_needs_its_other_half(name: str) -> None:
    (other,) = {"S3_ACCESS_KEY", "S3_SECRET_KEY"} - {name}
    with pytest.raises(StartRefused, match=f"go together; {other} is missing"):
        read(S3_ENDPOINT="https://s3.example", S3_BUCKET="b1", **{name: "half"})


def test_a_certificate_is_looked_for_where_the_specification_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    told = {
        "TR_EDITION": read().edition,
        "TR_PUBLIC_URL": ORIGIN,
        "TR_ENROLL_CHALLENGE": "0123456789abcdef",
        "TR_VALIDATE_JWT_AUD": "0123456789abcdef",
    }

    def tls() -> tuple[Path, Path] | None:
        return config.read(told, dev=False, host="127.0.0.1", port=0, data=tmp_path).tls

    assert tls() is None, "behind a proxy there is none"
    (tmp_path / "certs").mkdir()
    for name in ("fullchain.pem", "privkey.pem"):
        (tmp_path / "certs" / name).write_text("x")
    assert tls() == (Path("certs/fullchain.pem"), Path("certs/privkey.pem"))


@pytest.mark.parametrize(
    ("told", "level"),
    [
        ("debug", "debug"),
        ("trace", "debug"),
        ("error", "error"),
        ("hub=debug,warn", "warning"),
        ("", "info"),
        ("off", "critical"),
    ],
)
def test_the_log_level(told: str, level: str) -> None:
    assert read(RUST_LOG=told).log_level == level


def test_debug_says_more_than_error(tmp_path: Path) -> None:
    said = {}
    for level in ("debug", "error"):
        with served(tmp_path / level, "--dev", RUST_LOG=level) as one:
            httpx.get(f"{one.url}/version", trust_env=False)
            said[level] = one.end()[1]
    assert said["error"] == ""
    assert '"route":"node.version"' in said["debug"]


@pytest.mark.skipif(shutil.which("openssl") is None, reason="makes the certificate")
def test_with_a_certificate_the_node_ends_tls_itself(tmp_path: Path) -> None:
    certificate, private = tmp_path / "cert.pem", tmp_path / "key.pem"
    body = ["-x509", "-newkey", "ed25519", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    names = ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    subprocess.run(
        ["openssl", "req", *body, *names, "-out", str(certificate), "-keyout", str(private)],
        check=True,
        capture_output=True,
    )
    with served(tmp_path / "data", "--dev", SSL_CERT_PATH=str(certificate), SSL_KEY_PATH=str(private)) as one:
        port = one.url.rpartition(":")[2]
        trusted = ssl.create_default_context(cafile=str(certificate))
        answer = httpx.get(f"https://localhost:{port}/health", verify=trusted, trust_env=False)
        assert answer.json() == {"status": "ok"}
        with pytest.raises(httpx.TransportError):
            httpx.get(f"http://localhost:{port}/health", trust_env=False)
