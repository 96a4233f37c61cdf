//! The registers of an interrupted thread, as the kernel saves them.

use libc::ucontext_t;

/// Returns the instruction and the stack pointer.
#[cfg(target_arch = "x86_64")]
pub(super) fn pointers(context: &ucontext_t) -> (u64, u64) {
    let registers = &context.uc_mcontext.gregs;
    let [instruction, stack] = [libc::REG_RIP, libc::REG_RSP]
        .map(|index| usize::try_from(index).ok().and_then(|index| registers.get(index)));
    let value = |register: Option<&i64>| register.map_or(0, |value| value.cast_unsigned());
    (value(instruction), value(stack))
}

/// Calls `each` with the general registers, in the kernel's order.
#[cfg(target_arch = "x86_64")]
pub(super) fn registers(context: &ucontext_t, mut each: impl FnMut(usize, u64)) {
    for (index, register) in context.uc_mcontext.gregs.iter().enumerate() {
        each(index, register.cast_unsigned());
    }
}

/// Returns the instruction and the stack pointer.
#[cfg(target_arch = "aarch64")]
pub(super) fn pointers(context: &ucontext_t) -> (u64, u64) {
    (context.uc_mcontext.pc, context.uc_mcontext.sp)
}

/// Calls `each` with `x0` to `x30`, the stack pointer, the program counter and the state.
#[cfg(target_arch = "aarch64")]
pub(super) fn registers(context: &ucontext_t, mut each: impl FnMut(usize, u64)) {
    let context = &context.uc_mcontext;
    for (index, register) in context.regs.iter().enumerate() {
        each(index, *register);
    }
    each(31, context.sp);
    each(32, context.pc);
    each(33, context.pstate);
}

/// Other processors have reports without a stack.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(super) fn pointers(_: &ucontext_t) -> (u64, u64) {
    (0, 0)
}

/// Other processors have reports without registers.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(super) fn registers(_: &ucontext_t, _: impl FnMut(usize, u64)) {}
