#!/bin/sh
# Calls the compiler, which is the first argument, for models: see src/loom.rs.
exec "$@" --cfg loom
