//! System calls that the C library has no function for.

/// Calls `libc::syscall`, which takes any number of arguments; elsewhere a macro stands in for it.
#[cfg(all(target_os = "linux", not(brigade_elsewhere)))]
macro_rules! syscall {
    ($($argument:expr),* $(,)?) => { libc::syscall($($argument),*) };
}

#[cfg(any(not(target_os = "linux"), brigade_elsewhere))]
macro_rules! syscall {
    ($($argument:tt)*) => { libc::syscall!($($argument)*) };
}
