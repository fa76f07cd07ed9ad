#!/bin/sh
# Forgets old DAG runs, which are one for each URL: a hundred thousand of them slow Airflow's scheduler.
#
# Run it from cron on a host that has Airflow's configuration, every hour or day; never from a task, which would
# hold a slot and delete its own run. The history of what was archived is in the ledger, not here.
#
#   DAYS=3          runs that are older are forgotten
#   AUDIT_DAYS=90   so long is the audit log kept: who triggered and changed what
#   BATCH=5000      rows deleted in one transaction
#   DRY_RUN=1       say what would be deleted, and delete nothing
set -eu

DAYS=${DAYS:-3} AUDIT_DAYS=${AUDIT_DAYS:-90} BATCH=${BATCH:-5000} DRY_RUN=${DRY_RUN:-}
AIRFLOW=${AIRFLOW:-airflow}

for days in "$DAYS" "$AUDIT_DAYS"; do
  case $days in
    '' | *[!0-9]* | 0) echo "clean_airflow_history: '$days' is no number of days; give DAYS=3 AUDIT_DAYS=90" >&2; exit 2 ;;
  esac
done

before() { date -u -d "$1 days ago" '+%Y-%m-%d %H:%M:%S+00:00'; }

clean() {
  "$AIRFLOW" db clean --yes --skip-archive --batch-size "$BATCH" --error-on-cleanup-failure ${DRY_RUN:+--dry-run} "$@"
}

# Not --exclude-dag-ids: tables without a dag_id (task_reschedule, deadline) can't be cleaned with it (Airflow 3.3).
clean --clean-before-timestamp "$(before "$DAYS")" \
  --tables dag_run,task_instance,task_instance_history,task_reschedule,xcom,deadline,callback,asset_event,job,trigger
clean --clean-before-timestamp "$(before "$AUDIT_DAYS")" --tables log

# Task logs are files, where they are not in object storage; `db clean` leaves them.
logs=$("$AIRFLOW" config get-value logging base_log_folder 2>/dev/null || true)
if [ -d "$logs" ]; then
  if [ -n "$DRY_RUN" ]; then
    find "$logs" -path '*dag_id=*' -type f -mtime "+$DAYS" -print
  else
    find "$logs" -path '*dag_id=*' -type f -mtime "+$DAYS" -delete
    find "$logs" -mindepth 1 -path '*dag_id=*' -type d -empty -mmin +60 -delete
  fi
fi
