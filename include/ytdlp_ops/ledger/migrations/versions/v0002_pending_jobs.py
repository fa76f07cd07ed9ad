"""The way in by SQL."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from include.ytdlp_ops.ledger.schema import BIG_ID, LONG_TEXT, UtcTime, utc_now

revision = "0002"
down_revision: str | None = "0001"


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "pending_jobs",
        sa.Column("id", BIG_ID, primary_key=True, autoincrement=True),
        sa.Column("url", sa.Text, nullable=False, comment="URL or YouTube id"),
        sa.Column("tags", sa.Text, comment="JSON list of words"),
        sa.Column("extra", LONG_TEXT, comment="JSON object: formats, profile, force … and your own"),
        sa.Column(
            "status",
            sa.String(16),
            nullable=False,
            server_default="pending",
            comment="pending, locked, working, result, skipped, fail",
        ),
        sa.Column("pending_time", UtcTime, nullable=False, server_default=utc_now()),
        sa.Column("locked_time", UtcTime),
        sa.Column("working_time", UtcTime),
        sa.Column("completed_time", UtcTime),
        sa.Column("looked_time", UtcTime, comment="when its outcome was last looked for"),
        sa.Column("request_id", sa.String(64), comment="of the intake that locked it"),
        sa.Column("queued_ms", sa.BigInteger, comment="Redis time before it was submitted"),
        sa.Column("item_id", sa.Text),
        sa.Column("jobs", LONG_TEXT, comment="JSON list: the formats that it became"),
        sa.Column("result", LONG_TEXT, comment="JSON object: code and message, or what was made"),
        sa.Column("output", LONG_TEXT, comment="JSON list of paths"),
        mysql_charset="utf8mb4",
        mysql_engine="InnoDB",
    )
    op.create_index("pending_jobs_by_status", "pending_jobs", ["status", "id"])
    op.create_index("pending_jobs_by_request", "pending_jobs", ["request_id"])


def downgrade() -> None:
    """Drop it, with all that is in it."""
    op.drop_table("pending_jobs")
