#!/usr/bin/env bash
# Counts people in a video and says where the results are: tools/demo.sh [OUT_FOLDER] [SOURCE]
# Without SOURCE: Debian's street footage where apt can fetch it, otherwise the synthetic scene; it says which.
# VENV= names the environment (default .venv), ENGINE= the engine (default: local on Linux, else threads).
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
bin=$(cd "$root" && cd "${VENV:-.venv}" && pwd)/bin
mkdir -p "${1:-out/demo}"
out=$(cd "${1:-out/demo}" && pwd)
source=${2:-}

if [ -n "$source" ]; then
    case $source in
        *://* | /*) ;;
        *) source=$PWD/$source ;;
    esac
    echo "input    $source (yours)"
elif footage=$("$root/tools/fetch_footage.sh"); then
    source=$footage
    echo "input    $source (real footage from Debian's opencv-doc)"
else
    source=synthetic
    echo "input    the synthetic scene, for want of real footage; SOURCE=video.mp4 takes your own"
fi

engine=${ENGINE:-$([ "$(uname)" = Linux ] && echo local || echo threads)}
rm -f "$out/people.mp4" "$out/counts.jsonl" "$out/report.json"
cd "$out" # outputs of a flow are relative to the folder in which it is built
code=0
"$bin/videoflow" run-local "$root/examples/02-people-counting/flow.py" --engine "$engine" \
    --source "$source" --out people.mp4 --report report.json || code=$?

echo
for name in people.mp4 counts.jsonl report.json; do
    case $name in
        *.mp4) what=video ;;
        *.jsonl) what=counts ;;
        *) what=report ;;
    esac
    if [ -s "$out/$name" ]; then
        printf '%-8s %s\n' "$what" "$out/$name"
    else
        printf '%-8s (not written)\n' "$what"
        [ "$code" != 0 ] || code=1
    fi
done
exit "$code"
