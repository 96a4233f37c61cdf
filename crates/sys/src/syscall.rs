//! System calls that the C library has no function for.

/// Calls `libc::syscall`, which takes any number of arguments; elsewhere a macro stands in for it.
#[cfg(target_os = "linux")]
macro_rules! syscall {
    ($($argument:expr),* $(,)?) => { libc::syscall($($argument),*) };
}

#[cfg(not(target_os = "linux"))]
macro_rules! syscall {
    ($($argument:tt)*) => { libc::syscall!($($argument)*) };
}
