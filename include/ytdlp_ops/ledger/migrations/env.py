"""How Alembic runs the ledger's migrations: on the connection that `connecting.migrate` hands in."""

from __future__ import annotations

from alembic import context

from include.ytdlp_ops.ledger.connecting import VERSION_TABLE
from include.ytdlp_ops.ledger.schema import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    version_table=VERSION_TABLE,
    transactional_ddl=False,
)
context.run_migrations()
