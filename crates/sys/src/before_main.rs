//! Code that runs before `main`, for executables whose `main` belongs to somebody else (a test harness).

/// Has `$function` (a `fn()`) called when the executable starts, before its `main`.
///
/// Works where items are allowed. The function runs on the main thread, alone, before Rust's own runtime is set up:
/// arguments and environment can be read, but a stack overflow is a plain SIGSEGV.
#[macro_export]
macro_rules! before_main {
    ($function:path) => {
        const _: () = {
            extern "C" fn run_before_main() {
                $function();
            }
            // The C runtime calls each entry of this section once before `main`; functions with the C calling
            // convention that take no argument are what it expects there.
            #[used]
            #[unsafe(link_section = ".init_array")]
            static ENTRY: extern "C" fn() = run_before_main;
        };
    };
}
