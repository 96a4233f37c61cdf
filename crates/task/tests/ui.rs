//! The errors of the compiler for functions that workers cannot run, which callers meet first.
//!
//! The compiler words its labels by their length, and the type of a closure has the path of its
//! file. The file of the closure that moves has a long name, so that its error is the same in a
//! checkout with a short path and in one with a long path.
#![cfg(not(loom))]

#[test]
fn the_compiler_says_why_a_function_cannot_run_elsewhere() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
