"""The ledger's tables, the same on PostgreSQL, MySQL, MariaDB and SQLite."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import mysql
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

metadata = sa.MetaData()


class UtcTime(sa.TypeDecorator[datetime]):
    """A moment, in milliseconds or better: with a zone in Python, UTC in the database."""

    impl = sa.DateTime(timezone=True)
    cache_ok = True

    def load_dialect_impl(self, dialect: sa.Dialect) -> Any:
        """DATETIME of MySQL keeps whole seconds unless told otherwise."""
        kind = mysql.DATETIME(fsp=3) if dialect.name == "mysql" else sa.DateTime(timezone=True)
        return dialect.type_descriptor(kind)

    def process_bind_param(self, value: datetime | None, dialect: sa.Dialect) -> datetime | None:
        """To UTC; without its zone where the database knows none."""
        if value is None:
            return None
        value = value.astimezone(UTC)
        return value if dialect.name == "postgresql" else value.replace(tzinfo=None)

    def process_result_value(self, value: datetime | None, _dialect: sa.Dialect) -> datetime | None:
        """With a zone."""
        if value is None:
            return None
        return value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)


class unix_ms(FunctionElement[int]):  # noqa: N801 - an SQL function is spelled like one
    """A moment as milliseconds since 1970, as a number to calculate with."""

    type = sa.BigInteger()
    inherit_cache = True


class utc_now(FunctionElement[datetime]):  # noqa: N801 - as above
    """The database's time, UTC whatever its session's zone is."""

    type = sa.DateTime()
    inherit_cache = True


@compiles(unix_ms)
def _spell_unix_ms(element: unix_ms, compiler: SQLCompiler, **kw: Any) -> str:
    moment = compiler.process(element.clauses, **kw)
    return {
        "postgresql": f"CAST(EXTRACT(EPOCH FROM {moment}) * 1000 AS BIGINT)",
        "mysql": f"(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', {moment}) DIV 1000)",
        "sqlite": f"CAST(ROUND((julianday({moment}) - 2440587.5) * 86400000) AS INTEGER)",
    }[compiler.dialect.name]


@compiles(utc_now)
def _spell_utc_now(_element: utc_now, compiler: SQLCompiler, **_: Any) -> str:
    return {
        "postgresql": "CURRENT_TIMESTAMP",
        "mysql": "(UTC_TIMESTAMP(3))",
        "sqlite": "(strftime('%Y-%m-%d %H:%M:%f', 'now'))",
    }[compiler.dialect.name]


LONG_TEXT = sa.Text().with_variant(mysql.MEDIUMTEXT(), "mysql")  # TEXT of MySQL ends at 64 KiB
BIG_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")  # SQLite counts up INTEGER alone

outcomes = sa.Table(
    "ytdlp_outcomes",
    metadata,
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
    sa.Index("ytdlp_outcomes_by_item", "item_hash"),
    sa.Index("ytdlp_outcomes_by_time", "finished_at"),
    mysql_charset="utf8mb4",
    mysql_engine="InnoDB",
)
"""One row per attempt and outcome."""

pending_jobs = sa.Table(
    "pending_jobs",
    metadata,
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
    sa.Index("pending_jobs_by_status", "status", "id"),
    sa.Index("pending_jobs_by_request", "request_id"),
    mysql_charset="utf8mb4",
    mysql_engine="InnoDB",
)
"""The way in by SQL: a row is a URL to archive, and later what became of it."""
