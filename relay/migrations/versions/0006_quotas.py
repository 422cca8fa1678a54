"""What accounts and repositories use is counted, with what is there already."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"

_WHATS = ("bytes", "objects", "repositories")
_SIZES = """
    SELECT ro.repo_id, CAST(SUM(o.size) AS BIGINT), COUNT(*), r.state = 'deleted'
    FROM repo_object ro JOIN object o ON o.digest = ro.digest JOIN repo r ON r.id = ro.repo_id
    GROUP BY ro.repo_id, r.state
"""


def upgrade() -> None:
    op.create_table(
        "account_usage",
        sa.Column("account_id", sa.String(), nullable=False),
        *(
            sa.Column(f"{when}{what}", sa.BigInteger(), nullable=False)
            for what in _WHATS
            for when in ("", "deleted_")
        ),
        *(sa.Column(f"max_{what}", sa.BigInteger(), nullable=True) for what in _WHATS),
        sa.PrimaryKeyConstraint("account_id", name=op.f("pk_account_usage")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "repo_usage",
        sa.Column("repo_id", sa.String(), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("objects", sa.BigInteger(), nullable=False),
        sa.Column("deleted", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("repo_id", name=op.f("pk_repo_usage")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "address_usage",
        sa.Column("address", sa.String(), nullable=False),
        sa.Column("accounts", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("address", name=op.f("pk_address_usage")),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_address_usage_expires_at", "address_usage", ["expires_at"], unique=False)
    op.create_table(
        "heartbeat",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_heartbeat")),
    )
    op.execute(f"INSERT INTO repo_usage (repo_id, bytes, objects, deleted) {_SIZES}")
    op.execute("""
        INSERT INTO repo_usage (repo_id, bytes, objects, deleted)
        SELECT id, 0, 0, state = 'deleted' FROM repo WHERE id NOT IN (SELECT repo_id FROM repo_usage)
    """)
    op.execute("""
        INSERT INTO account_usage (account_id, bytes, objects, repositories,
                                   deleted_bytes, deleted_objects, deleted_repositories)
        SELECT r.owner_id,
               CAST(SUM(CASE WHEN u.deleted THEN 0 ELSE u.bytes END) AS BIGINT),
               CAST(SUM(CASE WHEN u.deleted THEN 0 ELSE u.objects END) AS BIGINT),
               CAST(SUM(CASE WHEN u.deleted THEN 0 ELSE 1 END) AS BIGINT),
               CAST(SUM(CASE WHEN u.deleted THEN u.bytes ELSE 0 END) AS BIGINT),
               CAST(SUM(CASE WHEN u.deleted THEN u.objects ELSE 0 END) AS BIGINT),
               CAST(SUM(CASE WHEN u.deleted THEN 1 ELSE 0 END) AS BIGINT)
        FROM repo r JOIN repo_usage u ON u.repo_id = r.id GROUP BY r.owner_id
    """)
