"""On SQLite, rows of the large tables with small rows lie in the index of their key, not beside it.
Answers to updates are kept without the names of their members, a lane's genesis where it is not its digest."""

import json

import msgspec
import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

BY_KEY = (
    "chunked_file",
    "frame",
    "lane",
    "lane_dir",
    "nonce",
    "object",
    "repo_object",
    "seal_change",
    "seal_parent",
    "update_answer",
)
MEMBERS = ("n", "result", "seq", "gen", "epoch", "digest", "state_vector", "code", "detail")
ABSENT = {"seq": 0, "gen": 0, "epoch": 0}  # and "" for the others
KEPT = sa.table(
    "update_answer",
    sa.column("replica", sa.BigInteger()),
    sa.column("n", sa.BigInteger()),
    sa.column("answer", sa.LargeBinary()),
)


LANES = sa.table("lane", sa.column("digest", sa.LargeBinary()), sa.column("genesis", sa.LargeBinary()))


def upgrade() -> None:
    connection = op.get_bind()
    _shorten_answers(connection)
    op.drop_index(op.f("ix_seal_change_path"), table_name="seal_change")
    if connection.dialect.name == "sqlite":
        for name in BY_KEY:
            with op.batch_alter_table(
                name, recreate="always", table_kwargs={"sqlite_with_rowid": False}
            ) as table:
                if name == "lane":
                    table.alter_column("genesis", existing_type=sa.LargeBinary(), nullable=True)
    else:
        op.alter_column("lane", "genesis", existing_type=sa.LargeBinary(), nullable=True)
    connection.execute(sa.update(LANES).where(LANES.c.genesis == LANES.c.digest).values(genesis=None))


def _shorten_answers(connection: sa.Connection) -> None:
    """From JSON to msgpack of the members in order."""
    for replica, n, answer in connection.execute(sa.select(KEPT)).all():
        told = json.loads(answer)
        members = [told.get(name, ABSENT.get(name, "")) for name in MEMBERS]
        connection.execute(
            sa.update(KEPT)
            .where(KEPT.c.replica == replica, KEPT.c.n == n)
            .values(answer=msgspec.msgpack.encode(members))
        )
