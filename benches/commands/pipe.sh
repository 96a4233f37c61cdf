#!/bin/sh
# Compares `brigade run --pipe` and `--pipe-part` with GNU parallel's on 1 GB of text in memory, through `wc -l` and `gzip -1`.
# Both take turns, and the figures are medians of the ratios of rounds, because other work disturbs both alike.
# Requires parallel, python3 and a release build: sh benches/commands/pipe.sh [path of brigade] [rounds]
set -eu
brigade=${1:-target/release/brigade}
rounds=${2:-5}
work=$(mktemp -d /dev/shm/pipe.XXXXXX)
trap 'rm -rf "$work"' EXIT
yes 'the quick brown fox jumps over the lazy dog 0123456789' | head -n 200000 | awk '{ print NR * 7919 % 100003, $0 }' > "$work/piece"
while [ "$(stat -c %s "$work/text" 2> /dev/null || echo 0)" -lt 1000000000 ]; do
    cat "$work/piece" >> "$work/text"
done
cat > "$work/pairs.py" <<'PYTHON'
import os, statistics, subprocess, sys, time

brigade, text, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])

def seconds(line):
    start = time.monotonic()
    result = subprocess.run(["sh", "-c", line], stdout=subprocess.PIPE, check=True).stdout
    return time.monotonic() - start, result

def compare(name, ours, theirs, rounds):
    pairs = []
    for _ in range(rounds):
        (our_time, our_result), (their_time, their_result) = seconds(ours), seconds(theirs)
        assert our_result == their_result, (our_result[:80], their_result[:80])
        pairs.append((our_time, their_time))
    ratio = statistics.median(theirs / ours for ours, theirs in pairs)
    ours, theirs = (statistics.median(times) for times in zip(*pairs))
    print(f"{name:36} brigade {ours:7.2f} s   parallel {theirs:7.2f} s   {ratio:5.2f} times as fast", flush=True)

def both(options, command, source, count):
    run = {
        "ours": f"{brigade} run --no-pin -j2 {options} -- {command}",
        "theirs": f"parallel -j2 {options} {command}",
    }
    return [source.format(line) + f" | {count}" for line in run.values()]

lines, sizes = "awk '{ n += $1 } END { print n }'", "gzip -dc | cksum"
pipe, part = f"cat {text} | {{}}", f"{{}}"
for command, count, keep, rounds in [("wc -l", lines, "", rounds), ("gzip -1", sizes, "-k ", 1)]:
    for options, source in [
        ("--pipe", pipe),
        ("--pipe --block 10M", pipe),
        (f"--pipe-part -a {text}", part),
        (f"--pipe-part -a {text} --block -1", part),
    ]:
        name = options.replace(f"-a {text} ", "").replace(f"-a {text}", "")
        compare(f"{command}: {name}", *both(keep + options, command, source, count), rounds)
PYTHON
python3 "$work/pairs.py" "$brigade" "$work/text" "$rounds"
