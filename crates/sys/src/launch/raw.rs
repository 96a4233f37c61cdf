//! System calls that touch nothing but their arguments: no `errno`, which the child would share with a parent that runs.

use core::arch::asm;

/// Makes a system call. Answers what the kernel says: a negative number is an error.
///
/// # Safety
/// The arguments must be what the call asks for.
#[cfg(target_arch = "x86_64")]
pub(super) unsafe fn call(number: i64, arguments: [usize; 4]) -> isize {
    let [first, second, third, fourth] = arguments;
    let result: isize;
    // SAFETY: as the caller promises. The kernel changes rax, rcx and r11 only.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number => result,
            in("rdi") first, in("rsi") second, in("rdx") third, in("r10") fourth,
            lateout("rcx") _, lateout("r11") _,
            options(nostack),
        );
    }
    result
}

/// Makes a system call. Answers what the kernel says: a negative number is an error.
///
/// # Safety
/// The arguments must be what the call asks for.
#[cfg(target_arch = "aarch64")]
pub(super) unsafe fn call(number: i64, arguments: [usize; 4]) -> isize {
    let [first, second, third, fourth] = arguments;
    let result: isize;
    // SAFETY: as the caller promises. The kernel changes x0 only.
    unsafe {
        asm!(
            "svc 0",
            in("x8") number,
            inlateout("x0") first => result,
            in("x1") second, in("x2") third, in("x3") fourth,
            options(nostack),
        );
    }
    result
}
