#!/usr/bin/env bash
# Calls the compiler, which is the first argument, by clippy's driver, with warnings as errors: see
# src/linted.rs. A library or program that is compiled with its tests too is linted there only.
# Not sh, which would drop variables such as `CARGO_BIN_EXE_brigade-escape`.
case " $* " in
*" --test "*) ;;
*/src/lib.rs\ * | */src/main.rs\ *)
    grep -q '^test = false' "$CARGO_MANIFEST_DIR/Cargo.toml" || exec "$@" -Dwarnings
    ;;
esac
exec clippy-driver "$@"
