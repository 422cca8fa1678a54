"""The command blocks of the guide's pages run as they stand there, on machines of their own (test_pages_run).

A prompt may name its machine (`laptop $`). Where a page shows an error under a command, that error comes.
What a reader fills in, such as ID or an address, is filled in here; a question is answered with `--yes`, as
there is no terminal. Blocks without commands are held to the code: settings to the reference, a proxy's
file to nginx.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from tests.svc.conftest import ROOT
from tests.test_pages_run import NAMED, Host, end, two_hosts

BLOCK = re.compile(r"^[ ]*```(console|sh|yaml|nginx|json)\n(.*?)^[ ]*```", re.MULTILINE | re.DOTALL)
PROMPT = re.compile(r"(?:(\w+) +)?\$ (.*?)(?:\s{2,}#.*)?")
ACTIVATE = "source .venv/bin/activate"
PASSWORD = "correct horse battery"
TOKEN = """
import httpx
http = httpx.Client(base_url="{at}", trust_env=False, headers={{"Origin": "{at}"}})
assert http.post("/auth/sign-up", data={{"handle": "alice", "password": "{password}"}}).status_code == 303
made = http.post("/api/v1/auth/tokens", json={{"label": "ci", "access": "write"}})
print(made.json()["token"])
"""


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[tuple[Host, Host, str]]:
    """Two machines, and the first one's address for the second; README's test has svc as it is installed."""
    with two_hosts(tmp_path, forked=True) as found:
        yield found


class Line(NamedTuple):
    machine: str
    typed: str
    said: str


def blocks(page: str) -> list[tuple[str, str]]:
    """(language, text) of each block of a page of the guide."""
    return BLOCK.findall((ROOT / f"docs/guide/{page}.md").read_text("utf-8"))


def console(text: str) -> list[Line]:
    """What is typed, where, and what the page shows below it."""
    found: list[Line] = []
    for line in text.splitlines():
        prompt = PROMPT.fullmatch(line)
        if prompt:
            found.append(Line(prompt[1] or "", prompt[2], ""))
        else:
            found[-1] = found[-1]._replace(said=f"{found[-1].said}{line}\n")
    return found


def play(host: Host, folder: str, line: Line, **filled: str) -> str:
    """Type the line in a folder of the machine; an error below it on the page is the one that comes."""
    typed = line.typed
    for name, value in filled.items():
        typed = re.sub(rf"\b{name}\b", value, typed)
    wrong = line.said.startswith("svc: ")
    said = host.shell([ACTIVATE, f"cd {folder}", f"! {typed}" if wrong else typed])
    if wrong:
        shown = re.escape(line.said.strip()).replace("3f2a…", "[0-9a-f]+")
        assert re.search(shown, said), (line, said)
    return said


@contextmanager
def served(host: Host, address: str) -> Iterator[str]:
    """A relay on the machine, reached at the address."""
    at = f"http://{address}:8080"
    server = host.serve(
        [ACTIVATE, f"export TR_PUBLIC_URL={at}", f"relay serve --dev --host {address} --data ~/svc-relay"]
    )
    try:
        yield at
    finally:
        end(server)


def alices(host: Host, at: str) -> None:
    """alice, signed in, with `alice/project` in the folder `project`."""
    project = host.folder / "project"
    project.mkdir()
    (project / "notes.py").write_text("def area(w, h):\n    return w * h\n")
    host.shell(
        [
            ACTIVATE,
            "cd project",
            f"svc login --server {at} --device-key --handle alice",
            'svc repo create project -d "A project"',
            "svc repo init alice/project",
            'svc push -m "First"',
        ]
    )


def test_two_devices(hosts: tuple[Host, Host, str]) -> None:
    laptop, desktop, address = hosts
    machines = {"": laptop, "laptop": laptop, "desktop": desktop}
    let_in, work, both, lost = (console(text) for _, text in blocks("two-devices"))
    with served(laptop, address) as at:
        alices(laptop, at)
        said = play(laptop, "project", let_in[0])
        shown = [*map(str.strip, said.splitlines())]
        joins = next(line for line in shown if line.startswith("svc login "))
        page = let_in[0].said.splitlines()[1].strip().replace("https://node.example", at)
        assert re.sub(r"[A-Z0-9-]{14}$", "", joins) == re.sub(r"[A-Z0-9-]{14}$", "", page)
        desktop.shell([ACTIVATE, joins])
        for line in work:
            play(machines[line.machine], "." if "clone" in line.typed else "project", line)
        assert "width" in (laptop.folder / "project/notes.py").read_text()
        for path, word in (("project", "height"), ("project", "depth")):
            machine = laptop if word == "height" else desktop
            notes = machine.folder / path / "notes.py"
            notes.write_text(
                notes.read_text() + f"{word} = 4\n" if word == "depth" else f"# {word}\n" + notes.read_text()
            )
        desktop.shell([ACTIVATE, "cd project", 'svc push -m "Depth"'])
        for line in both:
            play(machines[line.machine], "project", line)
        assert {"height", "depth"} <= set(
            re.findall(r"\w+", (laptop.folder / "project/notes.py").read_text())
        )
        known = json.loads(laptop.shell([ACTIVATE, "cd project", "svc auth device list --json id,this 2>&1"]))
        (other,) = [one["id"] for one in known if not one["this"]]
        play(laptop, "project", lost[0])
        revoke = lost[1]._replace(typed=f"{lost[1].typed} --yes")
        play(laptop, "project", revoke, ID=f"'{other}'")
        said = desktop.shell([ACTIVATE, "cd project", "! svc push -m late"])
        assert "svc login" in said


def script_token(host: Host, at: str) -> str:
    """Made as the page of sign-in says: by an account with a password, in a browser session."""
    (host.folder / "make_token.py").write_text(TOKEN.format(at=at, password=PASSWORD))
    return host.shell([ACTIVATE, "python make_token.py"]).strip()


def test_sign_in(hosts: tuple[Host, Host, str]) -> None:
    first, second, address = hosts
    (drawing, joining), scripts, keys, signed_in = (console(text) for _, text in blocks("sign-in"))
    with served(first, address) as at:
        token = script_token(first, at)
        (first.folder / "project").mkdir()
        play(second, ".", scripts[0]._replace(typed=scripts[0].typed.replace("svct2_…", token)))
        second.shell([ACTIVATE, f"svc login --server {at} --device-key --handle bob"])
        code = second.shell(
            [
                ACTIVATE,
                f"({drawing.typed} --yes > added 2> code &)",
                "until grep -q Waiting code 2>/dev/null; do sleep 0.1; done; grep -o 'svc-pair:.*' code",
            ]
        ).strip()
        assert joining.typed.startswith("svc login --qr svc-pair:1:")
        first.shell([ACTIVATE, f"svc login --qr {code} --yes"])
        second.shell(["until [ -s added ]; do sleep 0.1; done"])
        for line in keys:
            listed = json.loads(second.shell([ACTIVATE, "svc auth key list --json id"]))
            ask = " --yes" if "revoke" in line.typed else ""
            play(second, ".", line._replace(typed=line.typed + ask), ID=listed[0]["id"] if listed else "")
        for line in signed_in:
            noun, sign = ("token", "current") if "token" in line.typed else ("device", "this")
            listed = json.loads(second.shell([ACTIVATE, f"svc auth {noun} list --json id,{sign}"]))
            other = next((one["id"] for one in listed if not one[sign]), "")
            ask = " --yes" if "revoke" in line.typed else ""
            filled = {"ID": f"'{other}'", "NAME": "'Bob at home'"}
            play(second, ".", line._replace(typed=line.typed + ask), **filled)
        assert "svc login" in second.shell([ACTIVATE, "! svc auth status"])


def test_scripting(hosts: tuple[Host, Host, str]) -> None:
    first, second, address = hosts
    found = blocks("scripting")
    piped, values, invoked, questions, routes = (console(text) for kind, text in found if kind == "console")
    (job,) = (yaml.safe_load(text) for kind, text in found if kind == "yaml")
    with served(first, address) as at:
        token = script_token(second, at)
        (first.folder / "project").mkdir()
        (first.folder / "project/Makefile").write_text("report:\n\tdate > report.txt\n")
        export = [ACTIVATE, f"export SVC_SERVER={at} SVC_TOKEN={token}"]
        first.shell([*export, "cd project", "svc repo create project", "svc repo init alice/project"])
        first.shell([*export, "cd project", 'svc push -m "First"'])
        assert job["env"] == {"SVC_SERVER": "https://node.example", "SVC_TOKEN": "${{ secrets.SVC_TOKEN }}"}
        second.shell([*export, *(f"({step['run']})" for step in job["steps"])])
        first.shell([*export, "cd project", "svc pull", "test -s report.txt", "unset SVC_TOKEN"])
        first.environment["SVC_HOME"] = str(first.folder / "carols-home")  # the token's key is alice's
        first.shell([ACTIVATE, f"svc login --server {at} --device-key --handle carol"])
        first.shell([ACTIVATE, "mkdir mine && cd mine", "svc repo create mine",
                     "svc repo init carol/mine", "echo x > x", "svc push -m First"])  # fmt: skip
        for line in (*piped, *routes):
            assert play(first, "mine", line), line
        typed = [line.typed for line in values]
        assert re.search(
            r"^carol/notes [A-Z0-9-]{14}$", first.shell([ACTIVATE, *typed, "echo $repo $code"]), re.M
        )
        words = [line.typed.split()[2] for line in invoked]  # test_invoke.py carries each out
        assert words == ["sync_status", "issue_list", "gallery_thumbnail", "--list"]
        play(first, "mine", questions[0])
        asks = Line("", questions[0].typed.removesuffix(" --yes") + " -R carol/notes", "svc: ")
        assert "--yes" in first.shell([ACTIVATE, f"! {asks.typed}"])


def test_git(hosts: tuple[Host, Host, str]) -> None:
    """The owner's machine has svc, and the stranger's has git alone."""
    first, stranger, address = hosts
    found = blocks("git")
    public, private = (console(text) for kind, text in found if kind == "console")
    (job,) = (yaml.safe_load(text) for kind, text in found if kind == "yaml")
    (alone,) = (text for kind, text in found if kind == "sh")
    with served(first, address) as at:
        token = script_token(first, at)
        (first.folder / "work").mkdir()
        (first.folder / "work/notes.py").write_text("area = 4\n")
        export = [ACTIVATE, f"export SVC_SERVER={at} SVC_TOKEN={token} HOME={first.folder}"]
        for name, public_flag in (("project", " --public"), ("secret", "")):
            shown = [f"svc repo create {name}{public_flag}", f"svc repo init alice/{name}"]
            first.shell([*export, "cd work", *shown, 'svc push -m "First"', "rm -r .svc"])

        def git_alone(*typed: str) -> str:
            lines = [one.replace("https://node.example", at) for one in typed]
            return stranger.shell(
                ["! command -v svc", f"export HOME={stranger.folder} GIT_TERMINAL_PROMPT=0", *lines]
            )

        git_alone(*(line.typed for line in public))
        for folder in ("project", "latest", "lazily"):
            assert (stranger.folder / folder / "notes.py").read_text() == "area = 4\n"
        git_alone("! git clone https://node.example/alice/secret.git")
        git_alone(f"export SVC_TOKEN={token}", alone)
        assert (stranger.folder / "secret/notes.py").read_text() == "area = 4\n"

        first.shell(
            [
                *export,
                "mkdir ci",
                "cd ci",
                *(step["run"].replace("https://node.example", at) for step in job["steps"]),
            ]
        )
        assert (first.folder / "ci/secret/notes.py").read_text() == "area = 4\n"
        first.shell([*export, "git config --global --remove-section credential." + at])
        typed = [line.typed.replace("https://node.example", at) for line in private]
        first.shell([*export, *typed, f"svc repo clone {at}/alice/secret.git by-svc"])
        for folder in ("secret", "by-svc"):
            assert (first.folder / folder / "notes.py").read_text() == "area = 4\n"


def test_hosting_a_relay(hosts: tuple[Host, Host, str]) -> None:
    host, _, _ = hosts
    found = blocks("relay")
    own, offline, backup = (console(text) for kind, text in found if kind == "console")
    settings, account, provider, quota, bucket, postgres = (text for kind, text in found if kind == "sh")
    (providers,) = (text for kind, text in found if kind == "json")
    etc, data = host.folder / "etc", host.folder / "lib"
    etc.mkdir()
    for name in ("enroll", "audience"):
        (etc / name).write_text("x" * 32)
    known = (ROOT / "docs/reference/environment.md").read_text("utf-8")
    for name in re.findall(r"^\s*([A-Z][A-Z0-9_]+)=", settings + provider + bucket + postgres, re.MULTILINE):
        assert f"`{name.removesuffix('_FILE')}" in known, name
    (etc / "provider").write_text("secret")
    (etc / "providers.json").write_text(re.sub(r"/run/secrets/\w+", str(etc / "provider"), providers))
    server = host.serve([ACTIVATE, *(line.typed for line in own)])
    end(server)
    exports = [
        f"export {line.split('#')[0].strip()}".replace("/etc/svc", str(etc)).replace(
            "/var/lib/svc", str(data)
        )
        for line in settings.replace("https://node.example", "http://127.0.0.1:8080").splitlines()
    ]
    exports.append(f"export TR_OIDC_PROVIDERS={etc / 'providers.json'}")
    host.shell([ACTIVATE, *exports, "relay migrate"])
    signer = subprocess.Popen(
        [*host.prefix, "bash", "-ec", "\n".join([ACTIVATE, *exports, "exec relay signer"])],
        cwd=host.folder, env=host.environment, text=True, start_new_session=True,
    )  # fmt: skip
    try:
        server = host.serve([ACTIVATE, *exports, "relay serve --host 127.0.0.1 --port 8080"])
        try:
            told = host.shell([ACTIVATE, *exports, *account.splitlines()])
            assert re.search(r"svc login .*--device-key --handle mira --pair [A-Z0-9-]{14}", told)
            host.shell([ACTIVATE, *exports, *quota.splitlines()])
            joins = re.search(r"svc login .*", told)
            assert joins is not None
            host.shell([ACTIVATE, f"{joins[0]} --server http://127.0.0.1:8080", "svc repo create notes"])
            for line in offline:
                host.shell([ACTIVATE, *exports, line.typed.replace("OWNER/NAME", "mira/notes")])
            copies = [line.typed.replace("/srv/", f"{host.folder}/srv/") for line in backup]
            host.shell(["mkdir srv", ACTIVATE, *exports, *copies])
        finally:
            end(server)
    finally:
        end(signer)


def test_the_proxys_file_is_one_that_nginx_takes(tmp_path: Path) -> None:
    (text,) = (text for kind, text in blocks("relay") if kind == "nginx")
    if shutil.which("nginx") is None:
        pytest.skip("nginx is not installed here; the block holds settings of nginx and no command of ours")
    mapped = "map $http_upgrade $connection_upgrade { '' ''; default upgrade; }"
    file = tmp_path / "nginx.conf"
    file.write_text(f"events {{}}\nhttp {{ {mapped} server {{ listen 8099; {text} }} }}")
    done = subprocess.run(
        ["nginx", "-t", "-p", str(tmp_path), "-c", str(file)], capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_no_block_of_these_pages_is_left_out() -> None:
    counted = {
        page: [kind for kind, _ in blocks(page)]
        for page in ("two-devices", "relay", "sign-in", "scripting", "git")
    }
    assert counted == {
        "two-devices": ["console"] * 4,
        "relay": ["console", "sh", "sh", "sh", "json", "sh", "nginx", "console", "console", "sh", "sh"],
        "sign-in": ["console"] * 4,
        "scripting": ["console", "console", "console", "console", "yaml", "console"],
        "git": ["console", "console", "yaml", "sh"],
    }
    assert NAMED
