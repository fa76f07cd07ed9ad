"""The table of ends: one row per attempt and outcome."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from include.ytdlp_ops.ledger.schema import UtcTime

revision = "0001"
down_revision: str | None = None


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "ytdlp_outcomes",
        sa.Column("outcome_id", sa.String(64), primary_key=True, comment="of base, stage, item, token, place"),
        sa.Column("item_hash", sa.String(64), nullable=False, comment="SHA-256 of item_id, to look it up by"),
        sa.Column("queue_base", sa.String(64), nullable=False),
        sa.Column("stage", sa.String(16), nullable=False),
        sa.Column("item_id", sa.Text, nullable=False),
        sa.Column("place", sa.String(16), nullable=False, comment="result, fail, skipped or deferred"),
        sa.Column("code", sa.String(64)),
        sa.Column("outcome", sa.String(16)),
        sa.Column("message", sa.Text),
        sa.Column("url", sa.Text),
        sa.Column("extractor", sa.String(128)),
        sa.Column("video_id", sa.String(255)),
        sa.Column("format_id", sa.String(128)),
        sa.Column("profile", sa.String(128)),
        sa.Column("tags", sa.Text, comment="JSON list"),
        sa.Column("source", sa.String(255)),
        sa.Column("submitted_by", sa.String(255)),
        sa.Column("attempt", sa.Integer),
        sa.Column("egress", sa.String(255)),
        sa.Column("account", sa.String(255)),
        sa.Column("host", sa.String(255)),
        sa.Column("dag_id", sa.String(255)),
        sa.Column("run_id", sa.String(255)),
        sa.Column("path", sa.Text),
        sa.Column("destination", sa.String(512), comment="the directory or prefix of path"),
        sa.Column("bytes", sa.BigInteger),
        sa.Column("duration_seconds", sa.Double),
        sa.Column("submitted_at", UtcTime),
        sa.Column("claimed_at", UtcTime),
        sa.Column("started_at", UtcTime),
        sa.Column("finished_at", UtcTime),
        mysql_charset="utf8mb4",
        mysql_engine="InnoDB",
    )
    op.create_index("ytdlp_outcomes_by_item", "ytdlp_outcomes", ["item_hash"])
    op.create_index("ytdlp_outcomes_by_time", "ytdlp_outcomes", ["finished_at"])


def downgrade() -> None:
    """Drop it, with all that is in it."""
    op.drop_table("ytdlp_outcomes")
