"""The migrations make exactly the schema, once, forward only."""

from __future__ import annotations

import sqlite3

import msgspec
import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine

from localstore.core.model.live import UpdateAnswer
from relay import migrations
from relay.base.environment import StartRefused
from relay.db.schema import metadata

OLDER_USE = """
    INSERT INTO account (id, kind, handle, phase, operator, created_at) VALUES
        ('a', 'user', 'ann', 'x', FALSE, 1), ('b', 'user', 'bob', 'x', FALSE, 1);
    INSERT INTO repo (id, owner_id, name, kind, class, description, default_branch, state, tree_key,
                      tree_key_id, created_at, updated_at) VALUES
        ('r1', 'a', 'one', 'app', 'x', '', 'main', 'active', 'k', 'k', 1, 1),
        ('r2', 'a', 'two', 'app', 'x', '', 'main', 'deleted', 'k', 'k', 1, 1),
        ('r3', 'b', 'one', 'app', 'x', '', 'main', 'archived', 'k', 'k', 1, 1);
    INSERT INTO pack (id, name, size, created_at) VALUES (1, 'p', 99, 1);
    INSERT INTO frame (pack_id, "offset", stored_len, raw_len, codec) VALUES (1, 0, 99, 99, 0);
    INSERT INTO object (digest, pack_id, frame_offset, "offset", size, directory, last_seen) VALUES
        ('x', 1, 0, 0, 60, FALSE, 1), ('y', 1, 0, 60, 39, TRUE, 1);
    INSERT INTO repo_object (repo_id, digest) VALUES ('r1', 'x'), ('r1', 'y'), ('r2', 'x');
"""
USED = [("a", 99, 2, 1, 60, 1, 1), ("b", 0, 0, 1, 0, 0, 0)]
USED_BY = (
    "SELECT account_id, bytes, objects, repositories, deleted_bytes, deleted_objects, deleted_repositories "
    "FROM account_usage ORDER BY account_id"
)


def test_migrations_make_the_schema(tmp_path):
    url = f"sqlite:///{tmp_path / 'relay.db'}"
    assert migrations.current(url) is None
    assert migrations.upgrade(url) == migrations.HEAD
    with create_engine(url).connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, metadata) == []


def test_a_migrated_table_is_spelled_like_the_schema(tmp_path):
    """Keys, uniqueness and indexes too, which the comparison above does not all look at."""
    migrated, made = tmp_path / "migrated.db", tmp_path / "made.db"
    migrations.upgrade(f"sqlite:///{migrated}")
    metadata.create_all(create_engine(f"sqlite:///{made}"))
    assert described(migrated) == described(made)


def described(path):
    with sqlite3.connect(path) as db:
        tables = [
            name
            for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type='table' ORDER BY name")
            if name not in ("alembic_version", "sqlite_sequence")
        ]
        return {
            table: (
                sorted(db.execute(f"SELECT name, type, \"notnull\", pk FROM pragma_table_info('{table}')")),
                sorted(
                    (
                        _named(row[0]),
                        row[1],
                        tuple(db.execute(f"SELECT name FROM pragma_index_info('{row[0]}')")),
                    )
                    for row in db.execute(f"SELECT name, \"unique\" FROM pragma_index_list('{table}')")
                ),
                sorted(db.execute(f'SELECT "table", "from", "to" FROM pragma_foreign_key_list(\'{table}\')')),
                db.execute("SELECT wr FROM pragma_table_list WHERE name=?", (table,)).fetchone(),
            )
            for table in tables
        }


def _named(index):
    """SQLite numbers the indexes it makes for constraints in the order of the constraints."""
    return "automatic" if index.startswith("sqlite_autoindex") else index


def test_rows_of_an_older_schema_come_along(tmp_path, monkeypatch):
    url = f"sqlite:///{tmp_path / 'relay.db'}"
    with monkeypatch.context() as patch:
        patch.setattr(migrations, "HEAD", "0001")
        migrations.upgrade(url)
    with sqlite3.connect(tmp_path / "relay.db") as db:
        db.execute("INSERT INTO nonce VALUES('key', 'nonce', 7)")
        answer = UpdateAnswer(n=2, result="ok", seq=5, gen=5, digest="ab")
        db.execute("INSERT INTO update_answer VALUES(1, 2, ?)", (msgspec.json.encode(answer),))
    assert migrations.upgrade(url) == migrations.HEAD
    with sqlite3.connect(tmp_path / "relay.db") as db:
        assert db.execute("SELECT * FROM nonce").fetchall() == [("key", "nonce", 7)]
        [(kept,)] = db.execute("SELECT answer FROM update_answer").fetchall()
        assert UpdateAnswer(*msgspec.msgpack.decode(kept)) == answer
        plan = db.execute("EXPLAIN QUERY PLAN SELECT * FROM nonce WHERE expires_at < 5").fetchall()
        assert "ix_nonce_expires_at" in plan[0][3]


def test_what_a_first_seal_changed_is_told_by_its_tree_alone(tmp_path, monkeypatch):
    url = f"sqlite:///{tmp_path / 'relay.db'}"
    with monkeypatch.context() as patch:
        patch.setattr(migrations, "HEAD", "0003")
        migrations.upgrade(url)
    with sqlite3.connect(tmp_path / "relay.db") as db:
        for number in (1, 2):
            seal = (f"s{number}", "r", "main", number, b"", b"", b"", "a", "k", "m", 1)
            db.execute("INSERT INTO seal VALUES(?,?,?,?,?,?,?,?,?,?,?)", seal)
            db.execute("INSERT INTO seal_change VALUES(?, 'f', 'text', x'00', 1)", seal[:1])
    migrations.upgrade(url)
    with sqlite3.connect(tmp_path / "relay.db") as db:
        assert db.execute("SELECT seal_id FROM seal_change").fetchall() == [("s2",)]


def test_merged_seals_of_before_stand_in_history(tmp_path, monkeypatch):
    """How each was merged is read from its payload; a time before that of what it came from moves, and with
    it those of what was made of it."""
    url = f"sqlite:///{tmp_path / 'relay.db'}"
    with monkeypatch.context() as patch:
        patch.setattr(migrations, "HEAD", "0037")
        migrations.upgrade(url)
    squashed = b'svc-seal-v1\n{"provenance":{"merge":{"from":["a"],"strategy":"squash"}}}'
    seals = [("a", b"", 50), ("b", squashed, 20), ("c", b"no payload", 30), ("d", b"", 60), ("e", b"", 70)]
    with sqlite3.connect(tmp_path / "relay.db") as db:
        db.execute("PRAGMA foreign_keys=OFF")
        for generation, (name, payload, at) in enumerate(seals, 1):
            db.execute(
                "INSERT INTO seal (id, repo_id, branch, generation, root, payload, signature, account_id, "
                "device_key_id, message, created_at) "
                "VALUES (?, 'r', 'main', ?, x'', ?, x'', 'a', 'k', 'm', ?)",
                (name, generation, payload, at),
            )
        db.execute("INSERT INTO seal_source VALUES ('b', 0, 'a'), ('c', 0, 'a')")
        db.execute("INSERT INTO seal_parent VALUES ('c', 0, 'b'), ('d', 0, 'c'), ('e', 0, 'd')")
    migrations.upgrade(url)
    with sqlite3.connect(tmp_path / "relay.db") as db:
        named = db.execute("SELECT seal_id, strategy FROM seal_source ORDER BY seal_id").fetchall()
        assert named == [("b", "squash"), ("c", None)]
        placed = db.execute("SELECT id, order_at FROM seal ORDER BY id").fetchall()
        assert placed == [("a", None), ("b", 50), ("c", 50), ("d", None), ("e", None)]


def test_upgrading_again_changes_nothing(tmp_path):
    url = f"sqlite:///{tmp_path / 'relay.db'}"
    migrations.upgrade(url)
    before = (tmp_path / "relay.db").read_bytes()
    assert migrations.upgrade(url) == migrations.HEAD
    assert (tmp_path / "relay.db").read_bytes() == before


def test_a_newer_schema_serves_older_binaries(tmp_path):
    """Rollback means the previous binaries on the current schema."""
    url = f"sqlite:///{tmp_path / 'relay.db'}"
    migrations.upgrade(url)
    with sqlite3.connect(tmp_path / "relay.db") as db:
        db.execute("UPDATE alembic_version SET version_num='9999'")
    migrations.check(url)
    assert migrations.upgrade(url) == "9999"


def test_head_is_the_last_script(tmp_path):
    config = Config()
    config.set_main_option("script_location", str(migrations.__path__[0]))
    assert ScriptDirectory.from_config(config).get_heads() == [migrations.HEAD]


def test_what_is_no_database_is_refused_in_one_sentence(tmp_path):
    (tmp_path / "relay.db").write_bytes(b"not a database at all" * 100)
    with pytest.raises(StartRefused, match="is not an SQLite database"):
        migrations.upgrade(f"sqlite:///{tmp_path / 'relay.db'}")


def test_what_accounts_use_already_is_counted(tmp_path, monkeypatch):
    url = f"sqlite:///{tmp_path / 'relay.db'}"
    with monkeypatch.context() as patch:
        patch.setattr(migrations, "HEAD", "0005")
        migrations.upgrade(url)
    with sqlite3.connect(tmp_path / "relay.db") as db:
        db.executescript(OLDER_USE)
    migrations.upgrade(url)
    with sqlite3.connect(tmp_path / "relay.db") as db:
        assert db.execute(USED_BY).fetchall() == USED
        kept = db.execute(
            "SELECT repo_id, bytes, objects, deleted FROM repo_usage ORDER BY repo_id"
        ).fetchall()
        assert kept == [("r1", 99, 2, 0), ("r2", 60, 1, 1), ("r3", 0, 0, 0)]


def test_what_live_edits_left_behind_is_counted(tmp_path, monkeypatch):
    url = f"sqlite:///{tmp_path / 'relay.db'}"
    with monkeypatch.context() as patch:
        patch.setattr(migrations, "HEAD", "0005")
        migrations.upgrade(url)
        with sqlite3.connect(tmp_path / "relay.db") as db:
            db.executescript(OLDER_USE)
        patch.setattr(migrations, "HEAD", "0022")
        migrations.upgrade(url)
    with sqlite3.connect(tmp_path / "relay.db") as db:
        db.execute("PRAGMA foreign_keys=OFF")
        for ref, of in (("m1", "r1"), ("w1", "r1"), ("m2", "r2"), ("m3", "r3")):
            db.execute(
                "INSERT INTO ref (id, repo_id, type, name, seq, sealed_seq, created_at, updated_at) "
                "VALUES (?, ?, 'branch', ?, 1, 0, 1, 1)",
                (ref, of, ref),
            )
        rows = [
            ("m1", 1, b"123", b"4567"),
            ("m1", 2, b"1", None),
            ("w1", 1, b"12", None),
            ("m2", 1, b"1", b""),
        ]
        db.executemany("INSERT INTO live_batch (branch_id, seq, changes, edits) VALUES (?, ?, ?, ?)", rows)
    migrations.upgrade(url)
    with sqlite3.connect(tmp_path / "relay.db") as db:
        kept = db.execute("SELECT repo_id, bytes, deleted FROM repo_usage ORDER BY repo_id").fetchall()
        assert kept == [("r1", 99 + 10, 0), ("r2", 60 + 1, 1), ("r3", 0, 0)]
        assert db.execute(USED_BY).fetchall() == [("a", 109, 2, 1, 61, 1, 1), ("b", 0, 0, 1, 0, 0, 0)]


def test_issues_of_before_are_found_by_their_words(tmp_path, monkeypatch):
    url = f"sqlite:///{tmp_path / 'relay.db'}"
    with monkeypatch.context() as patch:
        patch.setattr(migrations, "HEAD", "0023")
        migrations.upgrade(url)
    with sqlite3.connect(tmp_path / "relay.db") as db:
        db.executescript(OLDER_USE.split("INSERT INTO pack")[0])
        db.executemany(
            "INSERT INTO subject (repo_id, number, kind, state, title, folded_title, body, "
            "author_id, comments, created_at, updated_at) "
            "VALUES (?, ?, 'issue', 'open', ?, ?, 'Its text', 'a', 0, 1, 1)",
            [(repo, n, f"Title {n}", "-") for repo in ("r1", "r2") for n in range(1, 700)],
        )
    migrations.upgrade(url)
    with sqlite3.connect(tmp_path / "relay.db") as db:
        assert db.execute("SELECT repo_id, kind, state FROM subject_word WHERE word = '699'").fetchall() == [
            ("r1", "issue", "open"),
            ("r2", "issue", "open"),
        ]
        assert db.execute("SELECT COUNT(*) FROM subject_word").fetchone() == (2 * 699 * 4,)


def test_events_of_an_older_schema_are_forgotten_and_their_numbers_not_used_again(tmp_path, monkeypatch):
    url = f"sqlite:///{tmp_path / 'relay.db'}"
    with monkeypatch.context() as patch:
        patch.setattr(migrations, "HEAD", "0008")
        migrations.upgrade(url)
    with sqlite3.connect(tmp_path / "relay.db") as db:
        db.execute("PRAGMA foreign_keys=OFF")
        db.executemany("INSERT INTO event VALUES(?, 'r', 'live', '{}', 1)", [(n,) for n in (3, 7)])
    migrations.upgrade(url)
    with sqlite3.connect(tmp_path / "relay.db") as db:
        assert db.execute("SELECT * FROM cursor").fetchall() == [("swept", 7)]
        # A build from before these columns announces as it did.
        db.execute("INSERT INTO event(id, repo_id, kind, data, created_at) VALUES(NULL, 'r', 'ref', '{}', 1)")
        assert db.execute("SELECT id, actor, audience FROM event").fetchall() == [(8, "", "reader")]
