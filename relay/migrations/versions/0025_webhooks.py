"""Repositories have webhooks and security reports, and jobs have lanes."""

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"


def upgrade() -> None:
    op.add_column("job", sa.Column("lane", sa.String()))
    op.create_table(
        "webhook",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("repo_id", sa.String(), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("host", sa.String(), nullable=False),
        sa.Column("secret", sa.LargeBinary(), nullable=False),
        sa.Column("events", sa.String(), nullable=False),
        sa.Column("active", sa.Boolean(), nullable=False),
        sa.Column("disabled", sa.String()),
        sa.Column("creator_id", sa.String(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.Column("failing_since", sa.BigInteger()),
        sa.ForeignKeyConstraint(["repo_id"], ["repo.id"], name=op.f("fk_webhook_repo_id")),
        sa.ForeignKeyConstraint(["creator_id"], ["account.id"], name=op.f("fk_webhook_creator_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_webhook")),
    )
    op.create_index("ix_webhook_listed", "webhook", ["repo_id", "id"])
    op.create_index("ix_webhook_made", "webhook", ["creator_id", "created_at"])
    op.create_table(
        "webhook_message",
        sa.Column("event_id", sa.BigInteger(), nullable=False, autoincrement=False),
        sa.Column("repo_id", sa.String(), nullable=False),
        sa.Column("type", sa.String(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["repo_id"], ["repo.id"], name=op.f("fk_webhook_message_repo_id")),
        sa.PrimaryKeyConstraint("event_id", name=op.f("pk_webhook_message")),
        sqlite_with_rowid=False,
    )
    op.create_index(op.f("ix_webhook_message_repo_id"), "webhook_message", ["repo_id"])
    op.create_index("ix_webhook_message_kept", "webhook_message", ["created_at"])
    op.create_table(
        "webhook_delivery",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("webhook_id", sa.String(), nullable=False),
        sa.Column("event_id", sa.BigInteger(), nullable=False),
        sa.Column("redelivery", sa.Boolean(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("status", sa.Integer()),
        sa.Column("reason", sa.Text()),
        sa.Column("duration", sa.BigInteger()),
        sa.Column("sent_headers", sa.Text()),
        sa.Column("answer_headers", sa.Text()),
        sa.Column("answer_body", sa.LargeBinary()),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("attempted_at", sa.BigInteger()),
        sa.Column("next_at", sa.BigInteger()),
        sa.ForeignKeyConstraint(
            ["webhook_id"], ["webhook.id"], name=op.f("fk_webhook_delivery_webhook_id")
        ),
        sa.ForeignKeyConstraint(
            ["event_id"], ["webhook_message.event_id"], name=op.f("fk_webhook_delivery_event_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_webhook_delivery")),
    )
    op.create_index(op.f("ix_webhook_delivery_event_id"), "webhook_delivery", ["event_id"])
    op.create_index("ix_webhook_delivery_listed", "webhook_delivery", ["webhook_id", "id"])
    op.create_index("ix_webhook_delivery_of_state", "webhook_delivery", ["webhook_id", "state", "id"])
    over = sa.text("state != 'waiting'")
    op.create_index(
        "ix_webhook_delivery_over",
        "webhook_delivery",
        ["created_at"],
        sqlite_where=over,
        postgresql_where=over,
    )
    op.create_table(
        "report",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("repo_id", sa.String(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("severity", sa.String(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("reporter_id", sa.String(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("decided_at", sa.BigInteger()),
        sa.ForeignKeyConstraint(["repo_id"], ["repo.id"], name=op.f("fk_report_repo_id")),
        sa.ForeignKeyConstraint(["reporter_id"], ["account.id"], name=op.f("fk_report_reporter_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_report")),
    )
    op.create_index("ix_report_listed", "report", ["repo_id", "id"])
    op.create_index("ix_report_of_state", "report", ["repo_id", "state", "id"])
    op.create_index("ix_report_posted", "report", ["reporter_id", "created_at"])
