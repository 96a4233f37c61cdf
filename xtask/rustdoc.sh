#!/bin/sh
# Runs the examples of a crate's documentation, and looks for faults in it, as errors: see
# src/test.rs. `cargo doc` would compile all dependencies once more, in another way.
set -e
rustdoc "$@"
grep -q '^publish = false' "$CARGO_MANIFEST_DIR/Cargo.toml" && exit
for argument; do
    shift
    [ "$argument" = --test ] || set -- "$@" "$argument"
done
RUSTC_BOOTSTRAP=1 exec rustdoc "$@" -Dwarnings -Zunstable-options --check
