from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localstore.core.errors import Invalid
from localstore.core.launch import Launch, Ready, fill
from localstore.core.manifest import RepoManifest, parse
from localstore.core.model.limits import APP_FILE_CLAMP, BLOB_FILE, CHUNKED_FILE, MANIFEST_BYTES, MIB

FULL = b"""
kind: app
name: Notes
depends: [Alice/toolkit, bob/lib]
models: [llama3.2, "qwen:7b", llama3.2]
ollama_port_override: 11500
ollama_tag: llama3.2:1b
limits: {max_file_mib: 64, later: [1, 2]}
something_new: {a: [b]}
"""


def test_reads_every_member_and_leaves_unknown_keys() -> None:
    assert parse(FULL) == RepoManifest(
        kind="app",
        name="Notes",
        depends=("alice/toolkit", "bob/lib"),
        models=("llama3.2", "qwen:7b"),
        ollama_port_override=11500,
        ollama_tag="llama3.2:1b",
        max_file_mib=64,
    )


@pytest.mark.parametrize(
    "data", [b"", b"\n# nothing\n", b"{}", b"kind:\nmodels: null\nlimits: ~\n", b"\xef\xbb\xbfother: 1"]
)
def test_nothing_given(data: bytes) -> None:
    assert parse(data) == RepoManifest()


@pytest.mark.parametrize(
    ("mib", "kind", "cap"),
    [
        (64, "app", 64 * MIB),
        (500, "app", APP_FILE_CLAMP),
        (1, "app", BLOB_FILE),
        (64, "lib", BLOB_FILE),
        (64, "model", CHUNKED_FILE),
    ],
)
def test_file_cap(mib: int, kind: str, cap: int) -> None:
    assert parse(b"limits: {max_file_mib: %d}" % mib).file_cap(kind) == cap
    assert RepoManifest().file_cap(kind) == (CHUNKED_FILE if kind == "model" else BLOB_FILE)


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"kind: game", "kind must be one of"),
        (b"kind: [app]", "kind must be"),
        (b"name: 'a\\nb'\nname: \"a\\nb\"", "name must be a line"),
        (b"depends: alice/x", "depends must be a list"),
        (b"depends: [../x]", "depends must be a list of OWNER/NAME"),
        (b"depends: [example.org/a/b]", "without a host"),
        (b"models: {a: 1}", "models must be a list"),
        (b"models: [[a]]", "models must be a line"),
        (b"ollama_port_override: 0", "from 1 to 65535"),
        (b"ollama_port_override: 65536", "from 1 to 65535"),
        (b"ollama_port_override: 1e4", "from 1 to 65535"),
        (b"limits: {max_file_mib: -1}", r"limits\.max_file_mib must be a whole number"),
        (b"limits: [1]", "limits must be a mapping"),
        (b"- a", "must be a mapping"),
        (b"just text", "must be a mapping"),
        (b"\xff\xfe", "not UTF-8"),
        (b"a: \x01", "characters"),
        (b"a: b: c", "line 1"),
        (b"? [a]\n: b", "not valid YAML"),
        (b"a: 1\n---\nb: 2", "not valid YAML"),
        (b"a: &x [1]\nb: *x", "aliases"),
        (b"[" * 60_000, "nested deeper"),
        (b"a: " + b"x" * MANIFEST_BYTES, "larger than"),
    ],
)
def test_bad_manifests_are_one_clear_error(data: bytes, told: str) -> None:
    with pytest.raises(Invalid, match=told):
        parse(data)


def test_yaml_tags_build_nothing() -> None:
    assert parse(b"x: !!python/name:os.system a") == RepoManifest()


@given(st.binary(max_size=60) | st.text("[]{}:-?&*!|>'\"%@`#, \nab~", max_size=60).map(str.encode))
@settings(max_examples=300, deadline=None)
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        assert isinstance(parse(data), RepoManifest)
    except Invalid as refused:
        assert refused.detail


def test_a_launch_is_read_whole() -> None:
    data = b"""
models: [tiny]
launch:
  command: [python, app.py, "{llm.url}", "{other}"]
  env: {MODEL: "{model}"}
  ready: {http: "http://127.0.0.1:8000/up", seconds: 5}
"""
    launch = parse(data).launch
    assert launch == Launch(
        command=("python", "app.py", "{llm.url}", "{other}"),
        env=(("MODEL", "{model}"),),
        ready=Ready(http="http://127.0.0.1:8000/up", seconds=5),
    )
    assert launch.placeholders == {"llm.url", "model"}
    assert launch.page == "http://127.0.0.1:8000/up"
    assert fill("{llm.url}/{other}", {"llm.url": "x"}) == "x/{other}"


@pytest.mark.parametrize(
    ("launch", "told"),
    [
        ("[python]", "launch must be a mapping"),
        ("{command: python app.py}", "launch.command must be a list"),
        ("{command: []}", "launch.command must be a list"),
        ("{command: [[a]]}", "launch.command must be of texts"),
        ('{command: ["{model}"]}', "whose first word is a program"),
        ("{command: [a], shell: true}", "launch must be a mapping with command, env, ready alone"),
        ('{command: [a, "{llm.adress}"]}', "launch.command must be without"),
        ('{command: [a, "{model}"]}', "launch must be without {model}"),
        ('{command: ["a\\0b"]}', "launch.command must be of texts"),
        ("{command: [a], env: {A=B: c}}", "launch.env must be a mapping whose names"),
        ("{command: [a], env: [A]}", "launch.env must be a mapping"),
        ("{command: [a], ready: {port: 70000}}", "launch.ready.port must be a whole number"),
        ("{command: [a], ready: {port: 1, http: x}}", "launch.ready must be a mapping"),
        ('{command: [a], ready: {http: "http://example.org:80/"}}', "launch.ready.http must be an address"),
        ('{command: [a], ready: {http: "file:///etc/passwd"}}', "launch.ready.http must be an address"),
        ('{command: [a], ready: {http: "http://127.0.0.1:8000/ x"}}', "launch.ready.http must be an address"),
        (
            '{command: [a], ready: {http: "http://localho\u017ft:8000/"}}',
            "launch.ready.http must be an address",
        ),
        (
            '{command: [a], ready: {http: "http://127.0.0.1:8000/\xe9"}}',
            "launch.ready.http must be an address",
        ),
        ("{command: [a], ready: {seconds: -1}}", "launch.ready.seconds must be a whole number"),
        (f"{{command: [{', '.join('a' * 201)}]}}", "launch.command must be a list of 1 to 200"),
    ],
)
def test_a_senseless_launch_is_refused(launch: str, told: str) -> None:
    with pytest.raises(Invalid, match=re.escape(told)):
        parse(f"launch: {launch}\n".encode())
