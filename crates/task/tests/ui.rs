//! The errors of the compiler for functions that workers cannot run, which callers meet first.

#[test]
fn the_compiler_says_why_a_function_cannot_run_elsewhere() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
