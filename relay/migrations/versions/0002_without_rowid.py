"""On SQLite, rows of the tables that grow with files live in their primary key, not beside it a second time."""

from alembic import op

revision = "0002"
down_revision = "0001"

TABLES = (
    "lane",
    "lane_dir",
    "nonce",
    "object",
    "repo_object",
    "seal_change",
    "seal_parent",
    "update_answer",
)


def upgrade() -> None:
    if op.get_bind().dialect.name != "sqlite":
        return
    for name in TABLES:
        with op.batch_alter_table(name, recreate="always", table_kwargs={"sqlite_with_rowid": False}):
            pass
