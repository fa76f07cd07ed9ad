#!/usr/bin/env bash
# Makes a virtual environment with everything pinned in it. Usage: setup.sh VENV
set -euo pipefail

venv=$1
for python in python3 python3.14 python3.13 python3.12 python3.11; do
  if command -v "$python" >/dev/null && "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    found=$python
    break
  fi
done
if [ -z "${found:-}" ]; then
  echo "Python 3.11 or newer is needed, and none is on PATH" >&2
  exit 1
fi

echo "setting up $venv with $("$found" --version)"
if ! "$found" -m venv "$venv"; then
  echo "$found has no venv module; on Debian and Ubuntu: apt-get install python3-venv" >&2
  exit 1
fi
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check uv
# uv does not read pip's configuration: give it the index that pip uses.
index=$("$venv/bin/python" -m pip config get global.index-url 2>/dev/null || true)
export UV_DEFAULT_INDEX=${UV_DEFAULT_INDEX:-${PIP_INDEX_URL:-${index:-}}}
[ -n "$UV_DEFAULT_INDEX" ] || unset UV_DEFAULT_INDEX
"$venv/bin/uv" pip install --quiet --python "$venv/bin/python" --compile-bytecode -r requirements.txt -r requirements-dev.txt
"$venv/bin/python" -m compileall -q include dags tests bench config
