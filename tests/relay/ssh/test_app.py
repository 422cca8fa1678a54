"""The app over SSH: painted, resized, commented in, and what its rights leave out."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.relay.ssh.place import Relay, Screen


def test_the_app_is_painted_says_what_it_may_and_follows_the_window(relay: Relay, key: Path) -> None:
    app = Screen(relay.words(key))
    try:
        app.until("alice/demo")
        app.until("this session may read, comment and review")
        app.send("j")
        app.resize(130, 40)
        app.until_wide(100)
        app.send("\r")
        app.until("1 Over")
        app.send("\x1b")
        app.until_gone("1 Over")  # esc and q that come together are one key
        app.until("Repositories")
        app.send("q")
        assert app.wait() == 0
    finally:
        app.close()


def test_a_command_line_runs_in_the_app_and_others_are_refused(relay: Relay, key: Path) -> None:
    app = Screen(relay.words(key))
    try:
        app.until("alice/demo")
        app.send(":issue list -R alice/demo\r")
        app.until("Typo")
        app.send("\x1b:push\r")
        app.until("not available over SSH")
    finally:
        app.close()


def test_comments_are_written_and_nothing_else(relay: Relay, key: Path) -> None:
    done = relay.ssh(key, "issue comment 1 -R alice/demo -b 'From the tablet'")
    assert done.returncode == 0, done.stderr
    assert "From the tablet" in relay.svc("alice", "issue", "view", "1", "-R", "alice/demo", "--comments")


def test_the_editor_is_not_started(relay: Relay, key: Path) -> None:
    done = relay.ssh(key, "issue comment 1 -R alice/demo", options=("-tt", "-oSetEnv=EDITOR=/bin/sh"))
    assert done.returncode == 2
    assert "there is no editor here" in done.stdout


def test_a_page_is_not_served(relay: Relay, key: Path) -> None:
    done = relay.ssh(key, "tui --web")
    assert done.returncode == 2
    assert "--web needs a browser on this machine" in done.stderr


def test_the_credential_itself_may_no_more(relay: Relay, key: Path) -> None:
    """The relay refuses, whatever program has it."""
    before = {*relay.temporary.glob("svc-ssh-*/home")}
    app = Screen(relay.words(key))
    try:
        app.until("alice/demo")
        (taken,) = {*relay.temporary.glob("svc-ssh-*/home")} - before
        shutil.copytree(taken, relay.folder / "taken")
        for words in (
            ("repo", "create", "more"),
            ("issue", "create", "-R", "alice/demo", "-t", "x", "-b", "y"),
            ("repo", "edit", "-R", "alice/demo", "--description", "x"),
            ("auth", "device", "add"),
        ):
            done = relay.run("taken", *words)
            assert done.returncode == 1, words
            assert "read, comment and review" in done.stderr, done.stderr
        relay.svc("taken", "issue", "comment", "1", "-R", "alice/demo", "-b", "Still here")
    finally:
        app.close()
