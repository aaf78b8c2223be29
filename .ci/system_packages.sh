#!/bin/sh
# Installs what the Python packages can't bring: a C++17 compiler, Python's headers and venv, and bubblewrap.
# Does nothing where all is there. Where it can't install, it says what is missing and lets the build decide.
set -eu

missing=""
command -v c++ >/dev/null 2>&1 || command -v g++ >/dev/null 2>&1 || missing="$missing g++"
command -v make >/dev/null 2>&1 || missing="$missing make"
command -v bwrap >/dev/null 2>&1 || missing="$missing bubblewrap"
python="${PYTHON:-python3}"
"$python" -c 'import ensurepip' >/dev/null 2>&1 || missing="$missing python3-venv"
"$python" -c 'import os, sysconfig, sys; sys.exit(not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")))' \
  || missing="$missing python3-dev"
[ -n "$missing" ] || exit 0

sudo=""
[ "$(id -u)" = 0 ] || sudo="sudo -n"
if command -v apt-get >/dev/null 2>&1 && { [ -z "$sudo" ] || $sudo true 2>/dev/null; }; then
  echo "installing:$missing"
  $sudo apt-get update -qq
  # shellcheck disable=SC2086
  DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -qq --no-install-recommends $missing >/dev/null
else
  echo "missing, please install with your package manager:$missing" >&2
fi
