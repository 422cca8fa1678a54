"""Starting and stopping, as an operator sees it: real processes, exit codes, one line."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sqlite3
import stat
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from relay.base import edition
from relay.base.edition import EDITION
from tests.campaign.world import Fork
from tests.patience import PATIENCE, until

GOOD = {
    "TR_EDITION": EDITION,
    "TR_PUBLIC_URL": "https://node.example",
    "TR_ENROLL_CHALLENGE": "0123456789abcdef",
    "TR_VALIDATE_JWT_AUD": "fedcba9876543210",
}


def environment(variables):
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("TR_", "RAUTHY_", "S3_", "RELAY_"))}
    return {**kept, "PYTHONPATH": str(Path.cwd()), "RUST_LOG": "error", **variables}


def relay(*arguments, **variables):
    return subprocess.run(
        [sys.executable, "-m", "relay", *arguments],
        env=environment(variables),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )


class Served:
    def __init__(self, data, *arguments, **variables):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "relay", "serve", "--port", "0", "--data", str(data), *arguments],
            env=environment(variables),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.line = self.process.stdout.readline()
        self.url = self.line.rpartition(" ")[2].strip()

    def end(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        rest, errors = self.process.communicate(timeout=PATIENCE)
        return rest, errors


@contextlib.contextmanager
def served(data, *arguments, **variables):
    one = Served(data, *arguments, **variables)
    try:
        yield one
    finally:
        if one.process.poll() is None:
            one.process.kill()
            one.process.communicate()


REFUSALS = [
    ("TR_ENROLL_CHALLENGE", None, "TR_ENROLL_CHALLENGE is not set"),
    ("TR_ENROLL_CHALLENGE", "short", "TR_ENROLL_CHALLENGE is shorter"),
    ("TR_VALIDATE_JWT_AUD", None, "TR_VALIDATE_JWT_AUD is not set"),
    ("TR_EDITION", None, "TR_EDITION is not set"),
    ("TR_EDITION", "managed", "does not match the compiled edition"),
    ("TR_REPOS_ENABLED", "maybe", "neither on"),
    ("TR_LAKEFS_S3_CONDITIONAL_PUT", "sometimes", "neither native nor emulated"),
    ("TR_PUBLIC_URL", None, "TR_PUBLIC_URL is not set"),
    ("TR_PUBLIC_URL", "https://node.example/prefix", "more than an origin"),
    ("TR_PUBLIC_URL", "ftp://node.example", "not an origin"),
    ("TR_PUBLIC_URL", "http://node.example", "is not encrypted"),
    (
        "RAUTHY_REDIRECT_URI",
        "https://other.example/auth/callback",
        "must be https://node.example/auth/callback",
    ),
    ("MANAGED_KEY_SECRET", "abc", "MANAGED_KEY_SECRET is not 32 bytes in hex"),
    ("DATABASE_URL", "postgresql://relay@db/", "postgresql://USER:PASSWORD@HOST:PORT/NAME"),
    ("DATABASE_URL", "postgresql:///relay?host=/nowhere", "PostgreSQL: "),
    ("DATABASE_URL", "mysql://x", "not of the form sqlite:///PATH"),
    ("TR_ENROLL_CHALLENGE_FILE", "/nonexistent/secret", "both TR_ENROLL_CHALLENGE and"),
    ("RELAY_ADMIN_SECRET_FILE", "/nonexistent/secret", "cannot be read"),
    ("SSL_CERT_PATH", "/nonexistent/cert.pem", "does not exist"),
    ("RUST_LOG", "loud", "RUST_LOG names none"),
    ("TR_PUBLIC_URL", "https://[::1", "not an origin"),
    ("TR_QOUTA_BYTES", "5", "did you mean TR_QUOTA_BYTES?"),
    ("TR_PUBLIC_URL_FILE", "/etc/url", "the relay has no such setting"),
    ("TR_SSH_IDLE", "60", "TR_SSH_IDLE is set without TR_SSH_PORT"),
    ("RAUTHY_CLIENT_SECRET_FILE", "/run/oidc", "RAUTHY_CLIENT_SECRET_FILE is set without RAUTHY_URL"),
    ("S3_ACCESS_KEY", "key", "S3_ACCESS_KEY is set without S3_ENDPOINT"),
    ("TR_LAKEFS_S3_CONDITIONAL_PUT", "native", "CONDITIONAL_PUT is set without S3_ENDPOINT"),
    ("RAUTHY_REDIRECT_URI", "https://node.example/auth/callback", "is set without RAUTHY_URL"),
    ("POSTGRES_PASSWORD", "secret", "DATABASE_URL names no PostgreSQL database"),
    ("TR_OIDC_SIGN_UP", "on", "names an identity provider"),
    ("TR_QUOTA_CREATIONS", "refs=1, refs=2", "names refs twice"),
    ("TR_SOURCE_URL", "javascript:alert(1)", "is not an address"),
    ("TR_NODE_NAME", "a\nb", "cannot be shown"),
    ("INITIAL_RELAY_ADMIN_EMAIL", "somebody", "is not an e-mail address"),
    ("TR_NODE_NAME", "unmigrated", "the database is not migrated; run: relay migrate"),
]


@pytest.mark.parametrize(("name", "value", "reason"), REFUSALS)
def test_strict_start_refuses_with_one_line(tmp_path, name, value, reason):
    """The first in a process like any other, the others in forks, which need not load the relay again."""
    variables = {k: v for k, v in {**GOOD, name: value}.items() if v is not None}
    words = ["serve", "--port", "0", "--data", str(tmp_path)]
    if (name, value, reason) == REFUSALS[0]:
        done = relay(*words, **variables)
        code, out, err = done.returncode, done.stdout, done.stderr
    else:
        with (tmp_path / "err").open("w") as log:
            fork = Fork(words, log, environment(variables))
        with fork.stdout:
            out = fork.stdout.read()
        code, err = fork.wait(PATIENCE), (tmp_path / "err").read_text()
    assert code == 1
    assert out == ""
    assert err.count("\n") == 1
    assert err.startswith("relay: ")
    assert reason in err


TOGETHER = [
    ({"TR_DEVICE_KEY_SIGN_IN": "off", "TR_DEVICE_KEY_SIGN_UP": "on"}, "TR_DEVICE_KEY_SIGN_IN is off"),
    ({"S3_ENDPOINT": "nonsense", "S3_BUCKET": "packs"}, "not the address of an object store"),
    ({"S3_ENDPOINT": "https://s3.example", "S3_BUCKET": "a/../b"}, "not the name of a bucket"),
    ({"SSL_CERT_PATH": __file__, "SSL_KEY_PATH": __file__}, "no certificate with its key"),
]


@pytest.mark.parametrize(("variables", "reason"), TOGETHER)
def test_settings_that_cannot_work_together_are_refused_with_one_line(tmp_path, variables, reason):
    with (tmp_path / "err").open("w") as log:
        words = ["serve", "--dev", "--port", "0", "--data", str(tmp_path / "data")]
        fork = Fork(words, log, environment({**GOOD, **variables}))
    with fork.stdout:
        assert fork.stdout.read() == ""
    assert fork.wait(PATIENCE) == 1
    err = (tmp_path / "err").read_text()
    assert err.startswith("relay: ")
    assert err.count("\n") == 1
    assert reason in err


def test_migrate_then_strict_start_then_readyz(tmp_path):
    url = f"sqlite:///{tmp_path / 'relay.db'}"
    assert relay("migrate", MIGRATION_DATABASE_URL=url).returncode == 0
    assert relay("migrate", MIGRATION_DATABASE_URL=url).returncode == 0
    secret = tmp_path / "challenge"
    secret.write_text(GOOD["TR_ENROLL_CHALLENGE"] + "\n")
    variables = {k: v for k, v in GOOD.items() if k != "TR_ENROLL_CHALLENGE"}
    with served(tmp_path, TR_ENROLL_CHALLENGE_FILE=str(secret), **variables) as one:
        assert one.line.startswith("relay: listening on http://127.0.0.1:")
        assert httpx.get(f"{one.url}/ready", trust_env=False).status_code == 200
        answer = httpx.get(f"{one.url}/readyz", trust_env=False)
        assert answer.status_code == 503  # nobody has started the signer
        assert answer.json()["checks"] == {
            "database": "ok",
            "sync": "ok",
            "data_folder": "ok",
            "object_store": "ok",
            "signer": "down",
            "schema": "ok",
            "space": "ok",
        }
        config = httpx.get(f"{one.url}/api/v1/client-config", trust_env=False).json()
        assert config["node"]["identity"] == "https://node.example"


def test_migrate_of_what_cannot_be_migrated_exits_1(tmp_path):
    (tmp_path / "relay.db").write_bytes(b"no database" * 1000)
    done = relay("migrate", "--data", str(tmp_path))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("\n") == 1


def test_a_dev_start_on_a_terminal_shows_no_log(tmp_path):
    """What to do next is not scrolled away by what its jobs and requests log."""
    master, slave = os.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "relay", "serve", "--dev", "--port", "0", "--data", str(tmp_path / "data")],
        env={name: value for name, value in environment({}).items() if name != "RUST_LOG"},
        stdin=slave,
        stdout=slave,
        stderr=slave,
    )
    os.close(slave)
    with os.fdopen(master, "rb", buffering=0) as terminal:
        said = b""
        while b"svc repo create" not in said:
            said += terminal.read(4096)
        url = said.split()[3].decode()
        assert httpx.get(f"{url}/readyz", trust_env=False).status_code == 200
        process.terminate()
        with contextlib.suppress(OSError):  # Linux's end of a terminal
            while more := terminal.read(4096):
                said += more
    assert process.wait(PATIENCE) == 0
    assert len(said.decode().splitlines()) == 4, said


def test_dev_start_names_the_address_at_which_people_sign_in(tmp_path):
    with served(tmp_path / "data", "--dev", TR_PUBLIC_URL="http://192.0.2.7:8080") as one:
        assert one.process.stdout.readline() == "Next, in another terminal:\n"
        assert "--server http://192.0.2.7:8080 " in one.process.stdout.readline()


def test_dev_start_says_what_comes_next_keeps_its_secrets_and_leaves_nothing(tmp_path):
    data = tmp_path / "data"
    with served(data, "--dev") as one:
        assert one.line == f"relay: listening on {one.url}\n"
        assert [one.process.stdout.readline() for _ in range(3)] == [
            "Next, in another terminal:\n",
            f"  svc login --server {one.url} --device-key --handle YOURNAME\n",
            "  svc repo create PROJECT\n",
        ]
        ready = httpx.get(f"{one.url}/readyz", trust_env=False)
        assert (ready.status_code, ready.json()["status"]) == (200, "ok")
        children = processes(data)
        assert len(children) == 2  # the relay and its signer
        rest, errors = one.end()
        assert (one.process.returncode, rest, errors) == (0, "", "")
    assert gone(data)
    kept = {path.name: path.read_text() for path in (data / "secrets").iterdir()}
    keys = (data / "signer.keys").read_bytes()
    assert stat.S_IMODE(data.stat().st_mode) == 0o700
    assert (data / ".svc").is_file(), "no working copy takes it"
    private = [data / "relay.db", data / "signer.keys", *(data / "secrets").iterdir()]
    assert {stat.S_IMODE(path.stat().st_mode) for path in private} == {0o600}
    with served(data, "--dev") as one:
        assert httpx.get(f"{one.url}/health", trust_env=False).json() == {"status": "ok"}
    assert {path.name: path.read_text() for path in (data / "secrets").iterdir()} == kept
    assert (data / "signer.keys").read_bytes() == keys


def test_sigkill_of_the_relay_ends_the_signer(tmp_path):
    with served(tmp_path / "data", "--dev") as one:
        assert len(processes(tmp_path / "data")) == 2
        one.process.kill()
        one.process.communicate()
        assert gone(tmp_path / "data")


def test_a_second_process_on_one_folder_is_refused(tmp_path):
    with served(tmp_path, "--dev"):
        done = relay("serve", "--dev", "--port", "0", "--data", str(tmp_path))
        assert done.returncode == 1
        assert "another relay is serving" in done.stderr
        assert done.stderr.count("\n") == 1


def test_a_port_in_use_is_refused_in_one_line(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = relay("serve", "--dev", "--port", str(port), "--data", str(tmp_path))
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert f"cannot listen on 127.0.0.1 port {port}" in done.stderr


@pytest.mark.parametrize("port", ["-1", "65536", "many"])
def test_a_port_that_is_none_is_refused_as_an_argument(tmp_path, port):
    done = relay("serve", "--dev", f"--port={port}", "--data", str(tmp_path))
    assert done.returncode == 2
    assert done.stderr.endswith(f"'{port}' is not a port, 0 to 65535\n")


def test_migrating_where_no_file_can_be_made_says_so_in_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    done = relay("migrate", "--data", str(tmp_path / "file"))
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "relay.db cannot be written: " in done.stderr


def test_the_quota_of_nobody_is_an_error_without_a_table(tmp_path):
    assert relay("migrate", "--data", str(tmp_path)).returncode == 0
    done = relay("quota", "nobody", "--data", str(tmp_path))
    assert (done.returncode, done.stdout) == (1, "")
    assert "there is no account nobody" in done.stderr


def test_sigterm_lets_an_answer_finish_and_says_so_first(tmp_path):
    """A request whose body is still arriving is answered after the signal; new connections are not taken."""
    with served(tmp_path / "data", "--dev") as one:
        host, port = one.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=PATIENCE) as slow:
            slow.sendall(
                b"POST /auth/guest-login HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                b"Content-Length: 2\r\n\r\n{"
            )
            for _ in range(3):  # whoever came earlier has been let in by then
                assert httpx.get(f"{one.url}/health", trust_env=False, timeout=PATIENCE).is_success
            one.process.send_signal(signal.SIGTERM)
            until(lambda: refuses(host, int(port)), "it takes no connections")
            slow.sendall(b"}")
            assert slow.recv(65536).startswith(b"HTTP/1.1 2")
        one.process.communicate(timeout=PATIENCE)
        assert one.process.returncode == 0


def refuses(host, port):
    """Whether nobody listens there."""
    try:
        socket.create_connection((host, port), timeout=PATIENCE).close()
    except ConnectionError:
        return True
    return False


def test_operator_commands_work_beside_a_running_relay(tmp_path):
    data = tmp_path / "data"
    with served(data, "--dev"):
        with sqlite3.connect(data / "relay.db") as db:
            db.execute(
                "INSERT INTO account (id, kind, handle, phase, operator, created_at) "
                "VALUES ('a', 'user', 'mira', 'oidc_linked', 0, 0)"
            )
            db.execute(
                "INSERT INTO repo (id, owner_id, name, kind, class, description, default_branch, state, "
                "tree_key, tree_key_id, created_at, updated_at) VALUES ('r', 'a', 'game', 'app', "
                "'published_public', '', 'main', 'archived', x'00', 'k', 0, 0)"
            )

        def state():
            with sqlite3.connect(data / "relay.db") as db:
                return db.execute("SELECT state FROM repo").fetchone()[0]

        for action, expected in (("suspend", "suspended"), ("kill", "killed"), ("resume", "archived")):
            assert relay("repo", action, "mira/game", "--data", str(data)).returncode == 0
            assert state() == expected
        again = relay("repo", "resume", "mira/game", "--data", str(data))
        assert (again.returncode, again.stderr) == (
            1,
            "relay: mira/game is archived; there is nothing to resume\n",
        )
        missing = relay("repo", "kill", "mira/none", "--data", str(data))
        assert (missing.returncode, missing.stderr) == (1, "relay: there is no repository mira/none\n")


def test_version_and_routes():
    assert relay("version").stdout == f"relay {edition.VERSION} ({EDITION}, {edition.COMMIT})\n"
    assert "/api/v1/repos/{id}/refs/{type}/{name...}" in relay("routes").stdout


def test_version_is_cheap():
    code = "import sys; from relay.run.cli import main; main(['version']); print(sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE)
    for heavy in ("sanic", "sqlalchemy", "alembic", "uvloop"):
        assert f"'{heavy}'" not in done.stdout


def processes(data):
    """Ids of the processes whose command line names this data folder."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and os.fsencode(data) in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
    return found


def gone(data):
    """Whether all of them end within some seconds."""
    until = time.monotonic() + PATIENCE
    while processes(data) and time.monotonic() < until:
        time.sleep(0.02)
    return not processes(data)


def test_a_relay_without_its_libraries_says_what_to_install() -> None:
    """As after `pip install .`, which brings the client alone."""
    hide = "import sys; sys.modules['sqlalchemy'] = None; from relay.__main__ import main; main()"
    ended = subprocess.run([sys.executable, "-c", hide], capture_output=True, text=True, timeout=PATIENCE)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr == (
        "relay: the server's libraries are not installed; run: pip install 'svc[relay]'\n"
    )
