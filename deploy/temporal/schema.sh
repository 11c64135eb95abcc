#!/bin/sh
# Makes Temporal's two databases and brings their schemas to the version of this image (temporalio/admin-tools).
# Every step leaves alone what is there already, so it runs before each start of the server.
# SQL_PLUGIN, SQL_HOST, SQL_PORT, SQL_USER and SQL_PASSWORD say where; temporal-sql-tool reads them itself.
set -eu

schema=${1:-/etc/temporal/schema/postgresql/v12}

bring_up() {
  database=$1
  folder=$2
  temporal-sql-tool --db "$database" create-database
  temporal-sql-tool --db "$database" setup-schema --version 0.0
  temporal-sql-tool --db "$database" update-schema --schema-dir "$schema/$folder/versioned"
}

bring_up temporal temporal
bring_up temporal_visibility visibility
echo "databases temporal and temporal_visibility have their schemas"
