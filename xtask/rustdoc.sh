#!/bin/sh
# Runs the examples of a crate's documentation, and looks for faults in the pages that users read,
# as errors: see src/test.rs. `cargo xtask ci` makes all pages with `cargo doc`, which compiles all
# dependencies once more, in another way.
set -e
rustdoc "$@"
case $CARGO_PKG_NAME in
brigade | brigade-pool | brigade-task) ;;
*) exit ;;
esac
for argument; do
    shift
    [ "$argument" = --test ] || set -- "$@" "$argument"
done
RUSTC_BOOTSTRAP=1 exec rustdoc "$@" -Dwarnings -Zunstable-options --check
