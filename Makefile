# Every command sets up what it needs: Python >= 3.11, git and make are enough.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.PHONY: help setup run test test-all faults soak check fix bench lock clean

VENV := .venv
PY := $(VENV)/bin/python
# A shell may forbid bytecode; imports would cost twice.
unexport PYTHONDONTWRITEBYTECODE
export PYTHONPATH := $(CURDIR)

help: ## what there is
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

setup: $(VENV)/.installed ## make .venv and install everything pinned, bytecode compiled

$(VENV)/.installed: requirements.txt requirements-dev.txt scripts/setup.sh
	@bash scripts/setup.sh $(VENV)
	@touch $@

run: setup ## archive URL=… (or three samples) through the whole system; ONCE=1 ends when done
	@exec $(PY) -m include.ytdlp_ops.local $(URL) $(if $(ONCE),--once)

test: setup ## every quick test, a whole-stack run included
	$(PY) -m pytest -m "not slow" -n 2 --dist loadfile --no-loadscope-reorder $(ARGS)

test-all: setup ## and the slow ones: faults, soak
	$(PY) -m pytest -n 2 --dist loadfile --no-loadscope-reorder $(ARGS)

faults: setup ## the scenarios of failure, SEEDS=20 times each
	SEEDS=$(or $(SEEDS),5) $(PY) -m pytest tests/faults $(ARGS)

soak: setup ## N=1000000 items through killed workers
	N=$(or $(N),50000) $(PY) -m pytest tests/faults -k soak $(ARGS)

check: setup ## ruff, mypy --strict, import-linter, pinned requirements
	$(VENV)/bin/ruff check
	$(VENV)/bin/ruff format --check
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports

fix: setup ## let ruff mend what it can
	$(VENV)/bin/ruff check --fix
	$(VENV)/bin/ruff format

bench: setup ## measure; prints a table, writes bench/results/latest.json
	$(PY) -m bench $(ARGS)

lock: setup ## pin requirements.in and requirements-dev.in anew
	$(VENV)/bin/uv pip compile -q --universal --python-version 3.11 --no-header --no-emit-index-url --upgrade requirements.in -o requirements.txt
	$(VENV)/bin/uv pip compile -q --universal --python-version 3.11 --no-header --no-emit-index-url --upgrade requirements-dev.in -o requirements-dev.txt

clean: ## remove .venv, caches and the local stack's data
	rm -rf $(VENV) .local .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache bench/results
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
