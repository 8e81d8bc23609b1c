#!/usr/bin/env bash
# Prints the path of Debian's vtest.avi (768x576, 10 fps, 795 frames of people walking), fetching it when needed.
#
# The video comes out of the package opencv-doc, which is unpacked, not installed: this needs no root, and works
# in containers that leave documentation out. It stays in .work/footage (VIDEOFLOW_FOOTAGE_DIR), never in git.
# Safe to run twice at once. Exit code 3 and one sentence on stderr when it cannot be had.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
folder=${VIDEOFLOW_FOOTAGE_DIR:-$root/.work/footage}
video=$folder/vtest.avi
package=opencv-doc

refuse() {
    echo "no real footage: $1" >&2
    exit 3
}

if [ -s "$video" ]; then
    echo "$video"
    exit 0
fi
for tool in apt-get dpkg-deb; do
    command -v "$tool" >/dev/null || refuse "$tool is not here; give a file of your own with SOURCE="
done

mkdir -p "$folder"
scratch=$(mktemp -d "$folder/fetch.XXXXXX")
trap 'rm -rf "$scratch"' EXIT

download() {
    (cd "$scratch" && apt-get -qq -o APT::Sandbox::User=root -o Acquire::Retries=2 download "$package")
}

if ! download >"$scratch/log" 2>&1; then
    # The package lists may be missing, as in most container images; refreshing them takes root.
    { [ "$(id -u)" = 0 ] && apt-get -qq update && download; } >>"$scratch/log" 2>&1 ||
        refuse "apt-get could not download $package: $(tail -n 1 "$scratch/log")"
fi
dpkg-deb --fsys-tarfile "$scratch/$package"_*.deb |
    tar -x -C "$scratch" --wildcards './usr/share/doc/*/vtest.avi*' ||
    refuse "the package $package holds no vtest.avi"
found=$(find "$scratch/usr" -type f -name 'vtest.avi*' | head -n 1)
case $found in
    *.gz) gunzip "$found" && found=${found%.gz} ;;
esac
mv "$found" "$scratch/ready" && mv "$scratch/ready" "$video" # a rename, so that nobody sees half a file
echo "$video"
