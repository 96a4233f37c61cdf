#!/bin/sh
# Calls the compiler, which is the first argument, with AddressSanitizer: see src/asan.rs.
RUSTC_BOOTSTRAP=1 exec "$@" -Zsanitizer=address
