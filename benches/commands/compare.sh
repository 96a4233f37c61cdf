#!/bin/sh
# Compares `brigade run` with a Rust loop of spawn and wait, xargs and GNU parallel, on /bin/true and on real work.
# Requires hyperfine, parallel and a release build: sh benches/commands/compare.sh [path of brigade]
set -eu
brigade=${1:-target/release/brigade}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
rustc -O "$(dirname "$0")/spawn_wait.rs" -o "$work/spawn_wait"
seq 2000 > "$work/numbers"
sed 's|^|/bin/true |' "$work/numbers" > "$work/commands"

echo "2,000 x /bin/true, two at a time"
hyperfine --shell=none --warmup 1 --runs 5 \
    "$work/spawn_wait 2000 /bin/true" \
    "$brigade run -j2 $work/commands" \
    "xargs -a $work/numbers -P2 -n1 /bin/true" \
    "parallel -j2 /bin/true :::: $work/numbers"

echo "checksums of 2,000 files below /usr/include and /usr/share/perl, one job per file"
find /usr/include /usr/share/perl -type f | sort | head -n 2000 > "$work/files"
hyperfine --shell=none --warmup 1 --runs 3 \
    "$brigade run -j2 -- sha256sum :::: $work/files" \
    "parallel -j2 sha256sum :::: $work/files"
