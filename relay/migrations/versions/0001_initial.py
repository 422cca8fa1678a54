"""The first schema."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

COUNTED = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "account",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("handle", sa.String(), nullable=True),
        sa.Column("email", sa.String(), nullable=True),
        sa.Column("name", sa.String(), nullable=True),
        sa.Column("password_hash", sa.String(), nullable=True),
        sa.Column("phase", sa.String(), nullable=False),
        sa.Column("operator", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("disabled_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_account")),
        sa.UniqueConstraint("email", name=op.f("uq_account_email")),
        sa.UniqueConstraint("handle", name=op.f("uq_account_handle")),
    )
    op.create_table(
        "audit",
        sa.Column("id", COUNTED, autoincrement=True, nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("actor", sa.String(), nullable=False),
        sa.Column("action", sa.String(), nullable=False),
        sa.Column("subject", sa.String(), nullable=False),
        sa.Column("data", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audit")),
    )
    op.create_table(
        "challenge",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("purpose", sa.String(), nullable=False),
        sa.Column("account", sa.String(), nullable=False),
        sa.Column("session_id", sa.String(), nullable=True),
        sa.Column("ed25519", sa.LargeBinary(), nullable=False),
        sa.Column("x25519", sa.LargeBinary(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("secret", sa.LargeBinary(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_challenge")),
    )
    op.create_table(
        "device_code",
        sa.Column("hash", sa.LargeBinary(), nullable=False),
        sa.Column("user_code", sa.String(), nullable=False),
        sa.Column("x25519", sa.LargeBinary(), nullable=False),
        sa.Column("ed25519", sa.LargeBinary(), nullable=False),
        sa.Column("label", sa.String(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("sealed", sa.LargeBinary(), nullable=True),
        sa.Column("interval", sa.Integer(), nullable=False),
        sa.Column("polled_at", sa.BigInteger(), nullable=True),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("hash", name=op.f("pk_device_code")),
        sa.UniqueConstraint("user_code", name=op.f("uq_device_code_user_code")),
    )
    op.create_table(
        "idempotency",
        sa.Column("account_id", sa.String(), nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("request", sa.LargeBinary(), nullable=False),
        sa.Column("status", sa.Integer(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("account_id", "key", name=op.f("pk_idempotency")),
    )
    op.create_index(op.f("ix_idempotency_expires_at"), "idempotency", ["expires_at"], unique=False)
    op.create_table(
        "job",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("key", sa.String(), nullable=True),
        sa.Column("data", sa.Text(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("leased_until", sa.BigInteger(), nullable=True),
        sa.Column("run_at", sa.BigInteger(), nullable=False),
        sa.Column("done_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_job")),
        sa.UniqueConstraint("key", name=op.f("uq_job_key")),
    )
    op.create_index(op.f("ix_job_run_at"), "job", ["run_at"], unique=False)
    op.create_table(
        "nonce",
        sa.Column("key_id", sa.String(), nullable=False),
        sa.Column("nonce", sa.String(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("key_id", "nonce", name=op.f("pk_nonce")),
        sqlite_with_rowid=False,
    )
    op.create_index(op.f("ix_nonce_expires_at"), "nonce", ["expires_at"], unique=False)
    op.create_table(
        "pack",
        sa.Column("id", COUNTED, autoincrement=True, nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_pack")),
        sa.UniqueConstraint("name", name=op.f("uq_pack_name")),
    )
    op.create_table(
        "device_key",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("account_id", sa.String(), nullable=False),
        sa.Column("ed25519", sa.LargeBinary(), nullable=False),
        sa.Column("x25519", sa.LargeBinary(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("registration", sa.LargeBinary(), nullable=False),
        sa.Column("caps", sa.String(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("last_used_at", sa.BigInteger(), nullable=True),
        sa.Column("revoked_at", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["account_id"], ["account.id"], name=op.f("fk_device_key_account_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_device_key")),
    )
    op.create_index(op.f("ix_device_key_account_id"), "device_key", ["account_id"], unique=False)
    op.create_table(
        "frame",
        sa.Column("pack_id", COUNTED, nullable=False),
        sa.Column("offset", sa.BigInteger(), nullable=False),
        sa.Column("stored_len", sa.Integer(), nullable=False),
        sa.Column("raw_len", sa.Integer(), nullable=False),
        sa.Column("codec", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["pack_id"], ["pack.id"], name=op.f("fk_frame_pack_id")),
        sa.PrimaryKeyConstraint("pack_id", "offset", name=op.f("pk_frame")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "pairing_code",
        sa.Column("hash", sa.LargeBinary(), nullable=False),
        sa.Column("account_id", sa.String(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.Column("used_at", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["account_id"], ["account.id"], name=op.f("fk_pairing_code_account_id")),
        sa.PrimaryKeyConstraint("hash", name=op.f("pk_pairing_code")),
    )
    op.create_table(
        "repo",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("owner_id", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("class", sa.String(), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("default_branch", sa.String(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("resume_state", sa.String(), nullable=True),
        sa.Column("parent_id", sa.String(), nullable=True),
        sa.Column("tree_key", sa.LargeBinary(), nullable=False),
        sa.Column("tree_key_id", sa.String(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.Column("deleted_at", sa.BigInteger(), nullable=True),
        sa.Column("purge_at", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["owner_id"], ["account.id"], name=op.f("fk_repo_owner_id")),
        sa.ForeignKeyConstraint(["parent_id"], ["repo.id"], name=op.f("fk_repo_parent_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_repo")),
        sa.UniqueConstraint("owner_id", "name", name=op.f("uq_repo_owner_id_name")),
    )
    op.create_index(op.f("ix_repo_owner_id"), "repo", ["owner_id"], unique=False)
    op.create_table(
        "session",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("account_id", sa.String(), nullable=False),
        sa.Column("parent_id", sa.String(), nullable=True),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("label", sa.String(), nullable=False),
        sa.Column("device_key_id", sa.String(), nullable=True),
        sa.Column("caps", sa.String(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.Column("last_used_at", sa.BigInteger(), nullable=True),
        sa.Column("revoked_at", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["account_id"], ["account.id"], name=op.f("fk_session_account_id")),
        sa.ForeignKeyConstraint(["parent_id"], ["session.id"], name=op.f("fk_session_parent_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_session")),
    )
    op.create_index(op.f("ix_session_account_id"), "session", ["account_id"], unique=False)
    op.create_index(op.f("ix_session_parent_id"), "session", ["parent_id"], unique=False)
    op.create_table(
        "blame_cache",
        sa.Column("repo_id", sa.String(), nullable=False),
        sa.Column("seal_id", sa.String(), nullable=False),
        sa.Column("path", sa.String(), nullable=False),
        sa.Column("owners", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["repo_id"], ["repo.id"], name=op.f("fk_blame_cache_repo_id")),
        sa.PrimaryKeyConstraint("repo_id", "seal_id", "path", name=op.f("pk_blame_cache")),
    )
    op.create_table(
        "collaborator",
        sa.Column("repo_id", sa.String(), nullable=False),
        sa.Column("account_id", sa.String(), nullable=False),
        sa.Column("role", sa.String(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["account_id"], ["account.id"], name=op.f("fk_collaborator_account_id")),
        sa.ForeignKeyConstraint(["repo_id"], ["repo.id"], name=op.f("fk_collaborator_repo_id")),
        sa.PrimaryKeyConstraint("repo_id", "account_id", name=op.f("pk_collaborator")),
    )
    op.create_index(op.f("ix_collaborator_account_id"), "collaborator", ["account_id"], unique=False)
    op.create_table(
        "event",
        sa.Column("id", COUNTED, autoincrement=False, nullable=False),
        sa.Column("repo_id", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("data", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["repo_id"], ["repo.id"], name=op.f("fk_event_repo_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_event")),
    )
    op.create_index(op.f("ix_event_repo_id"), "event", ["repo_id"], unique=False)
    op.create_table(
        "object",
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("pack_id", sa.BigInteger(), nullable=False),
        sa.Column("frame_offset", sa.BigInteger(), nullable=False),
        sa.Column("offset", sa.Integer(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("directory", sa.Boolean(), nullable=False),
        sa.Column("last_seen", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["pack_id", "frame_offset"],
            ["frame.pack_id", "frame.offset"],
            name=op.f("fk_object_pack_id_frame_offset"),
        ),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_object")),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_object_frame", "object", ["pack_id", "frame_offset"], unique=False)
    op.create_table(
        "ref",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("repo_id", sa.String(), nullable=False),
        sa.Column("type", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("head", sa.String(), nullable=True),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("sealed_seq", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.Column("deleted_at", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["repo_id"], ["repo.id"], name=op.f("fk_ref_repo_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_ref")),
    )
    op.create_index(
        "uq_ref_living",
        "ref",
        ["repo_id", "type", "name"],
        unique=True,
        sqlite_where=sa.text("deleted_at IS NULL"),
        postgresql_where=sa.text("deleted_at IS NULL"),
    )
    op.create_table(
        "refresh_token",
        sa.Column("hash", sa.LargeBinary(), nullable=False),
        sa.Column("session_id", sa.String(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.Column("used_at", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["session_id"], ["session.id"], name=op.f("fk_refresh_token_session_id")),
        sa.PrimaryKeyConstraint("hash", name=op.f("pk_refresh_token")),
    )
    op.create_index(op.f("ix_refresh_token_session_id"), "refresh_token", ["session_id"], unique=False)
    op.create_table(
        "repo_alias",
        sa.Column("owner", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("repo_id", sa.String(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["repo_id"], ["repo.id"], name=op.f("fk_repo_alias_repo_id")),
        sa.PrimaryKeyConstraint("owner", "name", name=op.f("pk_repo_alias")),
    )
    op.create_table(
        "repo_object",
        sa.Column("repo_id", sa.String(), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["repo_id"], ["repo.id"], name=op.f("fk_repo_object_repo_id")),
        sa.PrimaryKeyConstraint("repo_id", "digest", name=op.f("pk_repo_object")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "chunked_file",
        sa.Column("repo_id", sa.String(), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("manifest", sa.LargeBinary(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("last_seen", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["repo_id"], ["repo.id"], name=op.f("fk_chunked_file_repo_id")),
        sa.PrimaryKeyConstraint("repo_id", "digest", name=op.f("pk_chunked_file")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "seal",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("repo_id", sa.String(), nullable=False),
        sa.Column("branch", sa.String(), nullable=False),
        sa.Column("generation", sa.BigInteger(), nullable=False),
        sa.Column("root", sa.LargeBinary(), nullable=False),
        sa.Column("payload", sa.LargeBinary(), nullable=False),
        sa.Column("signature", sa.LargeBinary(), nullable=False),
        sa.Column("account_id", sa.String(), nullable=False),
        sa.Column("device_key_id", sa.String(), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["account_id"], ["account.id"], name=op.f("fk_seal_account_id")),
        sa.ForeignKeyConstraint(["device_key_id"], ["device_key.id"], name=op.f("fk_seal_device_key_id")),
        sa.ForeignKeyConstraint(["repo_id"], ["repo.id"], name=op.f("fk_seal_repo_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_seal")),
    )
    op.create_index(op.f("ix_seal_repo_id"), "seal", ["repo_id"], unique=False)
    op.create_table(
        "checkpoint",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("branch_id", sa.String(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("reason", sa.String(), nullable=False),
        sa.Column("turn_id", sa.String(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["branch_id"], ["ref.id"], name=op.f("fk_checkpoint_branch_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_checkpoint")),
    )
    op.create_index(op.f("ix_checkpoint_branch_id"), "checkpoint", ["branch_id"], unique=False)
    op.create_table(
        "lane",
        sa.Column("branch_id", sa.String(), nullable=False),
        sa.Column("path", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("gen", sa.BigInteger(), nullable=False),
        sa.Column("epoch", sa.Integer(), nullable=False),
        sa.Column("ver", sa.BigInteger(), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("genesis", sa.LargeBinary(), nullable=False),
        sa.Column("edited", sa.Boolean(), nullable=False),
        sa.Column("last_replica", sa.BigInteger(), nullable=False),
        sa.Column("last_seq", sa.BigInteger(), nullable=False),
        sa.Column("second_seq", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["branch_id"], ["ref.id"], name=op.f("fk_lane_branch_id")),
        sa.PrimaryKeyConstraint("branch_id", "path", name=op.f("pk_lane")),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_lane_ver", "lane", ["branch_id", "ver"], unique=False)
    op.create_table(
        "lane_dir",
        sa.Column("branch_id", sa.String(), nullable=False),
        sa.Column("path", sa.String(), nullable=False),
        sa.Column("files", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["branch_id"], ["ref.id"], name=op.f("fk_lane_dir_branch_id")),
        sa.PrimaryKeyConstraint("branch_id", "path", name=op.f("pk_lane_dir")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "lane_final",
        sa.Column("branch_id", sa.String(), nullable=False),
        sa.Column("gen", sa.BigInteger(), nullable=False),
        sa.Column("epoch", sa.Integer(), nullable=False),
        sa.Column("genesis", sa.LargeBinary(), nullable=False),
        sa.Column("state", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["branch_id"], ["ref.id"], name=op.f("fk_lane_final_branch_id")),
        sa.PrimaryKeyConstraint("branch_id", "gen", "epoch", name=op.f("pk_lane_final")),
    )
    op.create_table(
        "lane_log",
        sa.Column("branch_id", sa.String(), nullable=False),
        sa.Column("gen", sa.BigInteger(), nullable=False),
        sa.Column("epoch", sa.Integer(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("part", sa.Integer(), nullable=False),
        sa.Column("operation", sa.LargeBinary(), nullable=False),
        sa.Column("account_id", sa.String(), nullable=False),
        sa.Column("device_key_id", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(["branch_id"], ["ref.id"], name=op.f("fk_lane_log_branch_id")),
        sa.PrimaryKeyConstraint("branch_id", "gen", "epoch", "seq", "part", name=op.f("pk_lane_log")),
    )
    op.create_table(
        "prepare",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("branch_id", sa.String(), nullable=False),
        sa.Column("account_id", sa.String(), nullable=False),
        sa.Column("device_key_id", sa.String(), nullable=False),
        sa.Column("expected_head", sa.String(), nullable=True),
        sa.Column("at_seq", sa.BigInteger(), nullable=True),
        sa.Column("seals", sa.LargeBinary(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["branch_id"], ["ref.id"], name=op.f("fk_prepare_branch_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_prepare")),
    )
    op.create_index(op.f("ix_prepare_branch_id"), "prepare", ["branch_id"], unique=False)
    op.create_table(
        "replica",
        sa.Column("id", sa.BigInteger(), nullable=False),
        sa.Column("branch_id", sa.String(), nullable=False),
        sa.Column("account_id", sa.String(), nullable=False),
        sa.Column("device_key_id", sa.String(), nullable=False),
        sa.Column("settled", sa.BigInteger(), nullable=False),
        sa.Column("highest", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["account_id"], ["account.id"], name=op.f("fk_replica_account_id")),
        sa.ForeignKeyConstraint(["branch_id"], ["ref.id"], name=op.f("fk_replica_branch_id")),
        sa.ForeignKeyConstraint(["device_key_id"], ["device_key.id"], name=op.f("fk_replica_device_key_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_replica")),
    )
    op.create_index(op.f("ix_replica_branch_id"), "replica", ["branch_id"], unique=False)
    op.create_table(
        "seal_change",
        sa.Column("seal_id", sa.String(), nullable=False),
        sa.Column("path", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=True),
        sa.Column("digest", sa.LargeBinary(), nullable=True),
        sa.Column("size", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["seal_id"], ["seal.id"], name=op.f("fk_seal_change_seal_id")),
        sa.PrimaryKeyConstraint("seal_id", "path", name=op.f("pk_seal_change")),
        sqlite_with_rowid=False,
    )
    op.create_index(op.f("ix_seal_change_path"), "seal_change", ["path"], unique=False)
    op.create_table(
        "seal_parent",
        sa.Column("seal_id", sa.String(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("parent_id", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(["seal_id"], ["seal.id"], name=op.f("fk_seal_parent_seal_id")),
        sa.PrimaryKeyConstraint("seal_id", "position", name=op.f("pk_seal_parent")),
        sqlite_with_rowid=False,
    )
    op.create_index(op.f("ix_seal_parent_parent_id"), "seal_parent", ["parent_id"], unique=False)
    op.create_table(
        "update_answer",
        sa.Column("replica", sa.BigInteger(), nullable=False),
        sa.Column("n", sa.BigInteger(), nullable=False),
        sa.Column("answer", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["replica"], ["replica.id"], name=op.f("fk_update_answer_replica")),
        sa.PrimaryKeyConstraint("replica", "n", name=op.f("pk_update_answer")),
        sqlite_with_rowid=False,
    )
