#!/usr/bin/env bash
# Runs the checks and the tests, each step to its end, and prints what each took; fails if any step failed.
#   tools/check.sh          everything that a change must pass
#   tools/check.sh lint     the steps that run no test
#   tools/check.sh storm    the long crash tests; neither these nor what follows are part of the above
#   tools/check.sh nightly  long histories, every planted defect, of which the tests try some, and simulate
#   tools/check.sh simulate the long search for schedules of faults that break something
# VENV= names the environment (default .venv); PYTEST_JOBS= how many test processes
# (by default one more than there are cores, since many tests wait for processes that they started).
set -uo pipefail
cd "$(dirname "$0")/.."

mode=${1:-all}
bin=$(cd "${VENV:-.venv}" && pwd)/bin
export PATH="$bin:$PATH"
unset PYTHONPATH
unset PYTHONDONTWRITEBYTECODE # else every process compiles again what the one before it compiled

began=$(date +%s%N)
names=() seconds=() endings=()
failed=0
closing=""
scratch=$(mktemp -d)
beside_process=""
trap '[ -z "$beside_process" ] || kill "$beside_process"; rm -rf "$scratch"' EXIT

note() { # note NAME STARTED ENDED CODE: keeps how a step ended, for the table
    names+=("$1")
    seconds+=("$((($3 - $2) / 100000000))")
    if [ "$4" = 0 ]; then endings+=(ok); else endings+=("failed ($4)") && failed=1; fi
}

step() { # step NAME COMMAND...: runs it, shows its output, notes its time and ending
    local name=$1 started code=0
    shift
    printf '\n--- %s: %s\n' "$name" "$*"
    started=$(date +%s%N)
    "$@" || code=$?
    note "$name" "$started" "$(date +%s%N)" "$code"
}

beside() { # beside COMMAND...: runs it while others run; `joined` says what came of it
    printf '\n--- beside the rest: %s\n' "$*"
    beside_started=$(date +%s%N)
    (code=0 && { "$@" || code=$?; } && date +%s%N >"$scratch/ended" && exit "$code") >"$scratch/beside" 2>&1 &
    beside_process=$!
}

joined() { # joined NAME: waits for what runs beside, shows its output, notes its time and ending
    local code=0
    wait "$beside_process" || code=$?
    beside_process=""
    printf '\n--- %s\n' "$1"
    cat "$scratch/beside"
    note "$1" "$beside_started" "$(cat "$scratch/ended")" "$code"
}

table() {
    local index total=$((($(date +%s%N) - began) / 100000000))
    printf '\n%-18s %8s  %s\n' step seconds ending
    for index in "${!names[@]}"; do
        printf '%-18s %6d.%d  %s\n' "${names[index]}" $((seconds[index] / 10)) $((seconds[index] % 10)) \
            "${endings[index]}"
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
    pytest -n "$jobs" --dist loadfile --durations 10 --color no "$@" | tee "$scratch/pytest.log"
    local code=${PIPESTATUS[0]}
    closing=$(tail -n 1 "$scratch/pytest.log")
    return "$code"
}

types() {
    local code=0
    mypy || code=1
    example_types || code=1
    return "$code"
}

lint() { # all checks but that of types
    step "ruff check" ruff check --quiet .
    step "ruff format" ruff format --check --quiet .
    step "layers" lint-imports --no-logo --no-cache
    step "files" python tools/check_files.py
    step "imports" python tools/check_imports.py
}

simulate() { step "simulate" python -m tools.simulate search 100000 2; }

kills=(tests/storm/test_storm.py tests/storm/test_parts.py tests/storm/test_live_edges.py)
long=(-o timeout=3600 -o faulthandler_timeout=3500 --kills 200)

case $mode in
    lint)
        step "types" types
        lint
        step "suppressions" python -m tools.suppressions # otherwise a test of the house looks at them
        ;;
    storm) step "kills" tests -n 0 -s "${long[@]}" "${kills[@]}" ;;
    nightly)
        step "histories" tests --dist load "${long[@]}" tests/storm "${kills[@]/#/--ignore=}"
        step "planted" tests "${long[@]}" -m nightly tests
        simulate
        ;;
    simulate) simulate ;;
    all)
        beside types # it keeps one core busy, and what comes first leaves one idle
        lint
        # Without the footage the tests that need it use the synthetic scene, or say what they miss.
        step "footage" bash -c 'tools/fetch_footage.sh || [ "$?" = 3 ]'
        step "pytest" tests
        joined "types (beside)"
        ;;
    *)
        echo "usage: tools/check.sh [lint|storm|nightly|simulate]" >&2
        exit 2
        ;;
esac
table
[ -z "$closing" ] || printf '\n%s\n' "$closing"
exit "$failed"
