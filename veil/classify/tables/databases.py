"""Command lines of databases. The statements that stand in options or operands are looked at by ``judge``."""

from __future__ import annotations

from typing import Any

_DROPS = {"category": "destructive", "why": "drops", "lost": "what is in the database"}

ROWS: dict[str, dict[str, Any]] = {
    "psql mysql mariadb sqlcmd clickhouse-client clickhouse cqlsh mongosh mongo "
    "redis-cli valkey-cli influx cockroach usql "
    "sqlplus  snowsql mysqlsh": {"judge": "database", "category": "network", "why": "connects to a database"},
    "sqlite3 duckdb": {"judge": "sqlite", "category": "mutating", "why": "opens a database, which may write it"},
    "pg_dump pg_dumpall mysqldump mongodump pg_restore mongorestore createdb createuser "
    "pg_isready mysqladmin mysqlimport "
    "mongoimport mongoexport pgbench vacuumdb reindexdb": {"category": "network", "why": "connects to a database"},
    "dropdb dropuser": _DROPS,
}
