"""
What one stage does with one item: takes domain parts together, knows no Airflow.

A stage gets a `RunningItem`, and ends it: as result, fail, skipped or deferred, or handed back.
"""
