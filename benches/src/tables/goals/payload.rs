//! The goals for large values.

use super::Bound::AtMost;
use super::Measure::Ratio;
use super::{Goal, goal, raw, ring};
use crate::results::Key;
use crate::tables::unit::Unit;

/// A goal for a vector of bytes, in copies of as many.
const fn vector(description: &'static str, name: &'static str, copy: &'static str) -> Goal {
    over(description, ring("payload", name), raw("payload", copy), 1.5)
}

/// A goal for a struct with such a vector.
const fn within(description: &'static str, name: &'static str, vector: &'static str) -> Goal {
    over(description, ring("payload", name), ring("payload", vector), 1.1)
}

const fn over(
    description: &'static str,
    figure: Key<'static>,
    over: Key<'static>,
    most: f64,
) -> Goal {
    goal(description, Ratio(figure, over), Unit::Times, AtMost(most))
}

pub(super) const GOALS: &[Goal] = &[
    vector("16 MiB in, over a copy", "in_16777216_seconds", "copy_16777216_seconds"),
    vector("16 MiB out, over a copy", "out_16777216_seconds", "copy_16777216_seconds"),
    vector("256 MiB in, over a copy", "in_268435456_seconds", "copy_268435456_seconds"),
    vector("256 MiB out, over a copy", "out_268435456_seconds", "copy_268435456_seconds"),
    within(
        "16 MiB in a struct, in, over the vector alone",
        "struct_in_16777216_seconds",
        "in_16777216_seconds",
    ),
    within(
        "16 MiB in a struct, out, over the vector alone",
        "struct_out_16777216_seconds",
        "out_16777216_seconds",
    ),
    within(
        "256 MiB in a struct, in, over the vector alone",
        "struct_in_268435456_seconds",
        "in_268435456_seconds",
    ),
    within(
        "256 MiB in a struct, out, over the vector alone",
        "struct_out_268435456_seconds",
        "out_268435456_seconds",
    ),
];
