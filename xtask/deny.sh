#!/bin/sh
# Calls the compiler, which is the first argument, with warnings as errors: see src/features.rs.
exec "$@" -Dwarnings
