#!/usr/bin/env bash
# Makes .venv from uv.lock with the machine's own Python, makes sure that there is a Java, and provides
# what tests need beyond that (tools/provide.py). All but that goes into .venv and .cache; `make setup`
# calls this only when something changed.
set -euo pipefail
cd "$(dirname "$0")/.."

# What the caller's shell has active is none of ours.
unset VIRTUAL_ENV CONDA_PREFIX PYTHONHOME PYTHONPATH
export UV_PROJECT_ENVIRONMENT="$PWD/.venv"
export UV_PYTHON_DOWNLOADS=never
# uv trusts a list of its own unless told to trust whom the machine trusts.
machine_trusts=/etc/ssl/certs/ca-certificates.crt
[ -n "${SSL_CERT_FILE:-}" ] || [ ! -e $machine_trusts ] || export SSL_CERT_FILE=$machine_trusts

uv_home="$PWD/.cache/uv-home"
log="$PWD/.cache/setup.log"

exec 3>&2  # people read 3, whatever goes to the log
say() { printf 'setup: %s\n' "$*" >&3; }
fail() { say "$*"; exit 1; }

# The path of the first Python of version 3.11 or newer, behind any shim or virtual environment.
find_python() {
  local name path
  for name in ${PYTHON:-python3.11 python3.12 python3.13 python3.14 python3 python}; do
    path=$("$name" -c 'import sys
if sys.version_info >= (3, 11): print(getattr(sys, "_base_executable", sys.executable))' 2>/dev/null) ||
      continue
    [ -z "$path" ] || { printf '%s\n' "$path"; return; }
  done
  return 1
}

# Debian splits venv and pip off Python, and refuses pip outside of a virtual environment, so: a
# virtual environment of its own for uv, or else a plain folder, or else ask Debian for venv.
install_uv() {
  say "installing uv into .cache/uv-home"
  mkdir -p .cache
  { uv_into_venv || uv_into_folder || { install_venv && uv_into_venv; }; } >"$log" 2>&1 || {
    cat "$log" >&2
    fail "cannot install uv. Hint: install uv by hand, or pip or venv for $python" \
      "(on Debian, as root: apt-get install python3-venv)"
  }
  hash -r  # forget where an earlier uv was
}
uv_into_venv() {
  rm -rf "$uv_home"
  "$python" -m venv "$uv_home" && "$uv_home/bin/python" -m pip install uv
}
uv_into_folder() {
  rm -rf "$uv_home"
  "$python" -m pip install --target "$uv_home" uv
}
install_venv() {
  [ "$(id -u)" = 0 ] && command -v apt-get || return 1
  say "installing python3-venv with apt-get"
  export DEBIAN_FRONTEND=noninteractive
  apt-get update && apt-get install -y --no-install-recommends python3-venv
}

python=$(find_python) ||
  fail "no Python 3.11 or newer on PATH. Hint: install one, or name it: make setup PYTHON=/path"
say "using $python"

# `uv --version` rather than `command -v`: a version manager's shim may stand for nothing.
uv --version >/dev/null 2>&1 || {
  export PATH="$uv_home/bin:$PATH"
  uv --version >/dev/null 2>&1 || install_uv
}
uv sync --quiet --frozen --all-extras --group dev --group docs --python "$python"

java_home=$(.venv/bin/python -m thalweg.spark.java --provide)
say "Java is in $java_home"
say "preparing Spark's classes, once: sites then start in half the time"
.venv/bin/python -m thalweg.spark.class_archive >/dev/null 2>&1 ||
  say "that did not work; everything else does, slower"

.venv/bin/python tools/provide.py | while read -r line; do say "$line"; done

touch .venv/.thalweg-setup
