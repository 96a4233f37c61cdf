//! Operations with which foreign code in a task can harm its process, and safe Rust cannot.
//!
//! These functions break promises that other code relies on, and are still safe to call: the tests
//! that call them check how the rest of the process reacts.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// Creates a copy of this process, which has only the calling thread. Returns the copy's pid, and
/// `None` in the copy.
///
/// # Errors
/// If the system has no room for another process.
pub fn fork() -> io::Result<Option<u32>> {
    // SAFETY: the C library's memory is usable in the copy; what else breaks there is the subject
    // of the test.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(None),
        pid => Ok(Some(pid.unsigned_abs())),
    }
}

/// Closes a descriptor, no matter who owns it.
pub fn close(descriptor: i32) {
    // SAFETY: no memory is involved. Its owner gets errors, or another file, which is the subject
    // of the test.
    unsafe { libc::close(descriptor) };
}

/// Closes every descriptor, no matter who owns it.
pub fn close_all() {
    // SAFETY: as in `close`.
    unsafe { libc::syscall(libc::SYS_close_range, 0, u32::MAX, 0_u32) };
}

/// Replaces the file behind a descriptor, no matter who owns it.
///
/// # Errors
/// The error of `dup2`.
pub fn replace(descriptor: i32, by: impl AsFd) -> io::Result<()> {
    // SAFETY: as in `close`.
    let replaced = unsafe { libc::dup2(by.as_fd().as_raw_fd(), descriptor) };
    if replaced == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Gives up the rights of root for good, like a program that needs them only at its start. Returns
/// `true` if it changed anything; for another user it does nothing.
pub fn drop_privileges() -> bool {
    // SAFETY: no memory is involved. The rights that other code relies on are gone, which is the
    // subject of the test.
    unsafe { libc::geteuid() == 0 && libc::setgid(NOBODY) == 0 && libc::setuid(NOBODY) == 0 }
}

/// The user and group without rights, on every Linux.
const NOBODY: u32 = 65534;

/// Ignores SIGTERM from now on.
pub fn ignore_termination() {
    // SAFETY: ignoring a signal installs no handler; SIGTERM is a valid signal.
    unsafe { libc::signal(libc::SIGTERM, libc::SIG_IGN) };
}

/// Returns another descriptor of the same open file, no matter who owns it.
///
/// # Errors
/// If it is not open, or descriptors run out.
pub fn duplicate(descriptor: i32) -> io::Result<OwnedFd> {
    // SAFETY: the number is used for this one call, which fails if it is not open.
    let borrowed = unsafe { BorrowedFd::borrow_raw(descriptor) };
    Ok(rustix::io::fcntl_dupfd_cloexec(borrowed, 3)?)
}

/// Writes over bytes that this program promised only to read, as a stray pointer does.
pub fn overwrite(bytes: &[u8], value: u8) {
    for byte in bytes {
        // SAFETY: there is none. The compiler may assume that the bytes stay as they are, so only
        // other processes may look at them afterwards. Their view is the subject of the test.
        unsafe { std::ptr::from_ref(byte).cast_mut().write_volatile(value) };
    }
}

/// Reads from an address, whatever is there.
#[inline(never)]
pub fn read(address: u64) -> u8 {
    // SAFETY: there is none. The fault is the subject of the test.
    unsafe { std::ptr::read_volatile(pointer(address)) }
}

/// Writes to an address, whatever is there.
#[inline(never)]
pub fn write(address: u64) {
    // SAFETY: as in `read`.
    unsafe { std::ptr::write_volatile(pointer(address).cast_mut(), 1) };
}

/// Calls an address, whatever is there.
#[inline(never)]
pub fn call(address: u64) {
    // SAFETY: as in `read`; a pointer to a function has the width of an address.
    let function = unsafe { std::mem::transmute::<*const u8, extern "C" fn()>(pointer(address)) };
    std::hint::black_box(function)();
}

/// Frees memory twice.
#[inline(never)]
pub fn free_twice() {
    // SAFETY: there is none. The C library aborts, which is the subject of the test.
    unsafe {
        let memory = libc::malloc(100);
        libc::free(memory);
        libc::free(std::hint::black_box(memory));
    }
}

/// Runs an instruction that no processor knows.
#[inline(never)]
pub fn run_an_invalid_instruction() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the signal that it raises is the subject of the test.
    unsafe {
        std::arch::asm!("ud2");
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as above.
    unsafe {
        std::arch::asm!("udf #0");
    }
}

/// Runs the instruction of a breakpoint.
#[inline(never)]
pub fn run_a_breakpoint() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the signal that it raises is the subject of the test.
    unsafe {
        std::arch::asm!("int3");
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as above.
    unsafe {
        std::arch::asm!("brk #0");
    }
}

/// Divides by zero, as C does. Returns on processors that have no such fault.
#[inline(never)]
pub fn divide_by_zero() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the registers are named; the signal that it raises is the subject of the test.
    unsafe {
        std::arch::asm!("div {zero:r}", zero = in(reg) 0_u64, inout("rax") 1_u64 => _, inout("rdx") 0_u64 => _);
    }
}

/// Moves the stack pointer to an address where no stack is, and uses it.
#[inline(never)]
pub fn lose_the_stack() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: there is none. The signal is the subject of the test, and nothing returns.
    unsafe {
        std::arch::asm!("mov rsp, 64", "push rax", options(noreturn));
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as above.
    unsafe {
        std::arch::asm!("mov x9, 64", "mov sp, x9", "str x9, [sp]", options(noreturn));
    }
}

/// Maps a page that may not be accessed, and returns its address.
///
/// # Panics
/// If the system has no memory.
pub fn guard_page() -> u64 {
    let flags = rustix::mm::MapFlags::PRIVATE;
    let none = rustix::mm::ProtFlags::empty();
    // SAFETY: a new mapping at an address of the kernel's choice overlaps nothing.
    let page = unsafe { rustix::mm::mmap_anonymous(std::ptr::null_mut(), 4096, none, flags) };
    #[expect(clippy::expect_used, reason = "documented under Panics")]
    let page = page.expect("memory");
    page.addr() as u64
}

/// Maps the first page of a file for reading, and returns its address.
///
/// # Errors
/// The error of `mmap`.
pub fn map(file: impl AsFd) -> io::Result<u64> {
    let flags = rustix::mm::MapFlags::SHARED;
    let read = rustix::mm::ProtFlags::READ;
    // SAFETY: as in `guard_page`.
    let page = unsafe { rustix::mm::mmap(std::ptr::null_mut(), 4096, read, flags, file, 0) }?;
    Ok(page.addr() as u64)
}

/// Unmaps a page.
pub fn unmap(address: u64) {
    // SAFETY: there is none. Its users get faults, which are the subject of the test.
    let _ = unsafe { rustix::mm::munmap(pointer(address).cast_mut().cast(), 4096) };
}

/// Loads a library, and calls a function of it that takes and returns a number.
///
/// # Errors
/// If there is no such library or function.
pub fn call_library(
    library: &std::ffi::CStr,
    function: &std::ffi::CStr,
    argument: u64,
) -> io::Result<u64> {
    // SAFETY: the names end with a zero; what the library does is the subject of the test.
    unsafe {
        let library = libc::dlopen(library.as_ptr(), libc::RTLD_NOW);
        if library.is_null() {
            return Err(io::ErrorKind::NotFound.into());
        }
        let function = libc::dlsym(library, function.as_ptr());
        if function.is_null() {
            return Err(io::ErrorKind::NotFound.into());
        }
        let function =
            std::mem::transmute::<*mut libc::c_void, extern "C" fn(u64) -> u64>(function);
        Ok(function(argument))
    }
}

fn pointer(address: u64) -> *const u8 {
    std::ptr::with_exposed_provenance(usize::try_from(address).unwrap_or(usize::MAX))
}

/// Ends this process with a code when the signal arrives.
pub fn exit_on(signal: i32, code: i32) {
    static CODE: std::sync::atomic::AtomicI32 = std::sync::atomic::AtomicI32::new(0);
    extern "C" fn end(_: i32) {
        // SAFETY: it ends the process and has no conditions.
        unsafe { libc::_exit(CODE.load(std::sync::atomic::Ordering::Relaxed)) }
    }
    CODE.store(code, std::sync::atomic::Ordering::Relaxed);
    // SAFETY: the handler only ends the process.
    unsafe { libc::signal(signal, end as *const () as libc::sighandler_t) };
}

/// Makes a system call with any arguments. Returns its result, or the error as a negative number.
pub fn system_call(number: i64, arguments: [u64; 6]) -> i64 {
    let [first, second, third, rest @ ..] = arguments;
    // SAFETY: it may do anything, which is the subject of the test.
    let result = unsafe { libc::syscall(number, first, second, third, rest[0], rest[1], rest[2]) };
    if result == -1 {
        -i64::from(io::Error::last_os_error().raw_os_error().unwrap_or(0))
    } else {
        result
    }
}

/// Creates a file in memory.
///
/// # Errors
/// The error of the system.
pub fn memory_file() -> io::Result<OwnedFd> {
    Ok(rustix::fs::memfd_create("misdeed", rustix::fs::MemfdFlags::CLOEXEC)?)
}

/// Makes a file as long as that, and maps all of it for writing, for the rest of this process.
/// Returns its address.
///
/// # Errors
/// The error of the system.
pub fn map_shared(file: impl AsFd, length: usize) -> io::Result<u64> {
    use rustix::mm::{MapFlags, ProtFlags, mmap};
    rustix::fs::ftruncate(&file, length as u64)?;
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new mapping at an address of the kernel's choice overlaps nothing.
    let address = unsafe { mmap(std::ptr::null_mut(), length, access, MapFlags::SHARED, file, 0) }?;
    Ok(address.expose_provenance() as u64)
}
