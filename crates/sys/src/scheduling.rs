//! Sets how soon the scheduler runs a thread that has become ready.

use std::io;

use crate::syscall::checked;

/// The kernel's `sched_attr` as of Linux 3.14; the kernel accepts that size forever.
#[repr(C)]
#[derive(Debug, Default, Clone, Copy)]
struct SchedulingAttributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

/// Size of [`SchedulingAttributes`] in bytes.
const SIZE: u32 = 48;
const _: () = assert!(size_of::<SchedulingAttributes>() == SIZE as usize);

/// The shortest slice that the kernel accepts: 0.1 ms.
const SLICE: u64 = 100_000;

/// Asks to run this thread for short times, soon after it has become ready, instead of for long
/// times later. It gets the same share of a core as before, and so needs no privilege. Since Linux
/// 6.12; older kernels change nothing.
///
/// # Errors
/// If the system refuses; then nothing was changed.
pub fn prefer_short_slices() -> io::Result<()> {
    shorten_slices(0, None)
}

/// Lets others run before a process of which nothing is expected but its end: freeing its memory
/// takes a core for 70 ms per gigabyte. With short slices, a thread that becomes ready on its core
/// need not wait for the end of a long one; it still gets a third of the share of others.
pub(crate) fn make_way(process: libc::pid_t) -> io::Result<()> {
    shorten_slices(process, Some(DYING))
}

/// The nice value of a process that is about to end.
const DYING: i32 = 5;

/// Sets the slice of a thread, of which 0 is this one, and its nice value.
fn shorten_slices(thread: libc::pid_t, nice: Option<i32>) -> io::Result<()> {
    let mut attributes = SchedulingAttributes::default();
    // SAFETY: the kernel writes at most `SIZE` bytes to the structure, which consists of numbers
    // and outlives the call.
    let read =
        unsafe { syscall!(libc::SYS_sched_getattr, thread, &raw mut attributes, SIZE, 0_u32) };
    checked(read)?;
    if attributes.policy != SCHED_OTHER {
        // Somebody has chosen a stronger policy.
        return Ok(());
    }
    attributes.size = SIZE;
    attributes.runtime = SLICE;
    attributes.nice = nice.map_or(attributes.nice, |nice| nice.max(attributes.nice));
    // SAFETY: the kernel reads the `SIZE` bytes of the structure, which contains its size, and
    // nothing else.
    let written =
        unsafe { syscall!(libc::SYS_sched_setattr, thread, &raw const attributes, 0_u32) };
    Ok(checked(written).map(drop)?)
}

/// The policy of ordinary threads.
const SCHED_OTHER: u32 = 0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_thread_may_ask_repeatedly() {
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                prefer_short_slices().expect("it needs no privilege");
                prefer_short_slices().expect("it needs no privilege");
            });
            thread.join().expect("no panic");
        });
    }
}
