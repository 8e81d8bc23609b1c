#!/usr/bin/env bash
# Prints the first interpreter of Python 3.11 or newer that can make virtual environments.
# Refuses with exit code 3 and a remedy when there is none. PYTHON= names one to use instead.
set -euo pipefail

usable() {
    "$1" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

for candidate in ${PYTHON:-python3 python3.11 python3.12 python3.13 python3.14}; do
    if usable "$candidate"; then
        command -v "$candidate"
        exit 0
    fi
done
echo "no Python of version 3.11 or newer with the venv module was found (tried: ${PYTHON:-python3, python3.11 to 3.14});" >&2
echo "install one (on Debian: apt-get install python3 python3-venv) or name it with PYTHON=/path/to/python3" >&2
exit 3
