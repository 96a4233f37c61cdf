//! Runs code before `main`, for executables whose `main` belongs to somebody else (a test harness).

/// Calls `$function` (a `fn()`) when the executable starts, before its `main`.
///
/// Works at item position. The function runs on the main thread, alone, before Rust's own runtime
/// is set up: arguments and environment can be read, but a stack overflow is a plain SIGSEGV.
#[macro_export]
macro_rules! before_main {
    ($function:path) => {
        const _: () = {
            extern "C" fn run_before_main() {
                $function();
            }
            // The C runtime calls each entry of this section once before `main`; it expects
            // functions with the C calling convention that take no argument.
            #[used]
            #[cfg_attr(target_vendor = "apple", unsafe(link_section = "__DATA,__mod_init_func"))]
            #[cfg_attr(windows, unsafe(link_section = ".CRT$XCU"))]
            #[cfg_attr(
                not(any(target_vendor = "apple", windows)),
                unsafe(link_section = ".init_array")
            )]
            static ENTRY: extern "C" fn() = run_before_main;
        };
    };
}
