#!/usr/bin/env bash
# Runs the checks and the tests, each step to its end, and prints what each took; fails if any step failed.
#   tools/check.sh          everything that a change must pass
#   tools/check.sh lint     the steps that run no test
#   tools/check.sh storm    the long crash tests, which are not part of the above
#   tools/check.sh simulate the long search for schedules of faults that break something; neither is that
# VENV= names the environment (default .venv); PYTEST_JOBS= how many test processes
# (by default one more than there are cores, since many tests wait for processes that they started).
set -uo pipefail
cd "$(dirname "$0")/.."

mode=${1:-all}
bin=$(cd "${VENV:-.venv}" && pwd)/bin
export PATH="$bin:$PATH"
unset PYTHONPATH

names=() seconds=() endings=()
failed=0
closing=""
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

step() { # step NAME COMMAND...: runs it, shows its output, notes its time and ending
    local name=$1 started ended code=0
    shift
    printf '\n--- %s: %s\n' "$name" "$*"
    started=$(date +%s%N)
    "$@" || code=$?
    ended=$(date +%s%N)
    names+=("$name")
    seconds+=("$(((ended - started) / 100000000))")
    if [ "$code" = 0 ]; then endings+=(ok); else endings+=("failed ($code)") && failed=1; fi
}

table() {
    local index total=0
    printf '\n%-18s %8s  %s\n' step seconds ending
    for index in "${!names[@]}"; do
        printf '%-18s %6d.%d  %s\n' "${names[index]}" $((seconds[index] / 10)) $((seconds[index] % 10)) \
            "${endings[index]}"
        total=$((total + seconds[index]))
    done
    printf '%-18s %6d.%d  %s\n' total $((total / 10)) $((total % 10)) "$([ "$failed" = 0 ] && echo ok || echo FAILED)"
}

example_types() { # each example is a script of its own, and all are named flow.py
    local flow code=0
    for flow in examples/*/flow.py; do
        [ -e "$flow" ] || continue
        mypy --no-error-summary "$flow" || code=1
    done
    return "$code"
}

tests() { # keeps the closing line, which is shown once more below the table
    local jobs=${PYTEST_JOBS:-$(($(getconf _NPROCESSORS_ONLN) + 1))}
    pytest -n "$jobs" --dist loadgroup --durations 10 --color no "$@" | tee "$scratch/pytest.log"
    local code=${PIPESTATUS[0]}
    closing=$(tail -n 1 "$scratch/pytest.log")
    return "$code"
}

lint() {
    step "ruff check" ruff check --quiet .
    step "ruff format" ruff format --check --quiet .
    step "mypy" mypy
    step "mypy examples" example_types
    step "layers" lint-imports --no-logo --no-cache
    step "files" python tools/check_files.py
    step "imports" python tools/check_imports.py
}

case $mode in
    lint)
        lint
        step "suppressions" python -m tools.suppressions # otherwise a test of the house looks at them
        ;;
    storm)
        step "storm" tests -n 0 -s -o timeout=1800 -o faulthandler_timeout=1700 --kills 200 tests/storm
        step "nightly" tests -o timeout=600 -o faulthandler_timeout=550 --kills 200 -m nightly tests
        ;;
    simulate) step "simulate" python -m tools.simulate search 100000 2 ;;
    all)
        lint
        # Without the footage the tests that need it use the synthetic scene, or say what they miss.
        step "footage" bash -c 'tools/fetch_footage.sh || [ "$?" = 3 ]'
        step "pytest" tests
        ;;
    *)
        echo "usage: tools/check.sh [lint|storm|simulate]" >&2
        exit 2
        ;;
esac
table
[ -z "$closing" ] || printf '\n%s\n' "$closing"
exit "$failed"
