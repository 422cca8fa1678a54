"""What was kept of live updates counts against the quota of the repository's owner."""

from __future__ import annotations

from alembic import op

revision = "0023"
down_revision = "0022"

_SIZES = """
    SELECT r.repo_id, SUM(LENGTH(b.changes) + COALESCE(LENGTH(b.edits), 0)) AS size
    FROM live_batch b JOIN ref r ON r.id = b.branch_id GROUP BY r.repo_id
"""


def upgrade() -> None:
    op.execute("""
        INSERT INTO repo_usage (repo_id, bytes, objects, deleted)
        SELECT id, 0, 0, state = 'deleted' FROM repo WHERE id NOT IN (SELECT repo_id FROM repo_usage)
    """)
    op.execute(f"""
        UPDATE repo_usage SET bytes = bytes + (
            SELECT CAST(s.size AS BIGINT) FROM ({_SIZES}) s WHERE s.repo_id = repo_usage.repo_id
        ) WHERE repo_id IN (SELECT s.repo_id FROM ({_SIZES}) s)
    """)
    for column, deleted in (("bytes", "NOT u.deleted"), ("deleted_bytes", "u.deleted")):
        op.execute(f"""
            UPDATE account_usage SET {column} = {column} + COALESCE((
                SELECT CAST(SUM(s.size) AS BIGINT) FROM ({_SIZES}) s
                JOIN repo o ON o.id = s.repo_id JOIN repo_usage u ON u.repo_id = s.repo_id
                WHERE o.owner_id = account_usage.account_id AND {deleted}
            ), 0)
        """)
