//! Reads and sets the cpus on which a thread may run.
//!
//! Masks are words of 64 cpus, cpu 0 in the lowest bit of the first word, of any length: the fixed
//! `cpu_set_t` of the C library ends at 1,024 cpus, and `sched_getaffinity` refuses it on kernels
//! that are built for more.

use std::io;

use crate::syscall::checked;

/// The longest mask that is tried: 524,288 cpus, 64 times the most that kernels can be built for.
const MAX_WORDS: usize = 1 << 13;

/// The size of `cpu_set_t`, which suffices nearly everywhere.
const FIRST_WORDS: usize = 16;

// The kernel's masks are arrays of `unsigned long`.
const _: () = assert!(size_of::<libc::c_ulong>() == size_of::<u64>(), "masks are words of 64 bits");

/// Returns the calling thread's mask, without cpus that its cpuset forbids.
pub fn current() -> io::Result<Vec<u64>> {
    get(0)
}

/// Returns the mask of the thread `tid`; a process id stands for the process's main thread.
pub fn of_thread(tid: u32) -> io::Result<Vec<u64>> {
    get(thread_id(tid)?)
}

/// Restricts the calling thread, and everything that it starts from now on, to `mask`.
///
/// The kernel silently drops cpus that are offline or outside the cpuset: call [`current`] for the
/// actual mask.
///
/// # Errors
/// `EINVAL` if no cpu remains.
pub fn set_current(mask: &[u64]) -> io::Result<()> {
    // SAFETY: the kernel reads the given number of bytes, all of which belong to `mask`.
    let result =
        unsafe { syscall!(libc::SYS_sched_setaffinity, 0, size_of_val(mask), mask.as_ptr()) };
    Ok(checked(result).map(drop)?)
}

/// Runs `f` with the calling thread restricted to `mask`, and restores the thread's mask
/// afterwards, even if `f` panics.
///
/// Threads and processes that `f` starts inherit the restriction, so a child is pinned before its
/// first instruction, without a hook between fork and exec. `f` receives the mask that the kernel
/// has actually set.
pub fn restricted<T>(mask: &[u64], f: impl FnOnce(&[u64]) -> T) -> io::Result<T> {
    let _restore = Restore(current()?);
    set_current(mask)?;
    let effective = current()?;
    Ok(f(&effective))
}

struct Restore(Vec<u64>);

impl Drop for Restore {
    fn drop(&mut self) {
        // Fails only if the cpuset has lost all of the old cpus in the meantime; the kernel has
        // then moved the thread itself.
        let _ = set_current(&self.0);
    }
}

fn thread_id(tid: u32) -> io::Result<libc::pid_t> {
    // 0 would mean the calling thread.
    libc::pid_t::try_from(tid)
        .ok()
        .filter(|tid| *tid > 0)
        .ok_or_else(|| io::Error::from_raw_os_error(libc::ESRCH))
}

fn get(tid: libc::pid_t) -> io::Result<Vec<u64>> {
    let mut words = FIRST_WORDS;
    loop {
        let mut mask = vec![0_u64; words];
        // SAFETY: the kernel writes at most the given number of bytes, all of which belong to
        // `mask`.
        let written = unsafe {
            syscall!(
                libc::SYS_sched_getaffinity,
                tid,
                size_of_val(mask.as_slice()),
                mask.as_mut_ptr(),
            )
        };
        if let Ok(bytes) = usize::try_from(written) {
            mask.truncate(bytes.div_ceil(size_of::<u64>()));
            return Ok(mask);
        }
        let error = io::Error::last_os_error();
        // The kernel's own mask is longer.
        if error.raw_os_error() != Some(libc::EINVAL) || words >= MAX_WORDS {
            return Err(error);
        }
        words *= 2;
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::process::Command;
    use std::thread;

    use super::*;

    fn lowest(mask: &[u64]) -> Vec<u64> {
        let word = mask.iter().position(|word| *word != 0).unwrap();
        let mut one = vec![0; word + 1];
        one[word] = 1 << mask[word].trailing_zeros();
        one
    }

    fn trimmed(mut mask: Vec<u64>) -> Vec<u64> {
        while mask.last() == Some(&0) {
            mask.pop();
        }
        mask
    }

    #[test]
    fn a_pinned_thread_runs_on_its_cpu_only() {
        thread::spawn(|| {
            let one = lowest(&current().unwrap());
            set_current(&one).unwrap();
            assert_eq!(trimmed(current().unwrap()), one);
            let cpu = rustix::thread::sched_getcpu();
            assert_eq!(one[cpu / 64] >> (cpu % 64), 1);
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_child_inherits_the_mask_and_the_thread_gets_its_own_back() {
        thread::spawn(|| {
            let before = current().unwrap();
            let one = lowest(&before);
            let mut child = restricted(&one, |effective| {
                assert_eq!(trimmed(effective.to_vec()), one);
                Command::new("sleep").arg("60").spawn().unwrap()
            })
            .unwrap();
            let of_child = of_thread(child.id());
            child.kill().unwrap();
            child.wait().unwrap();
            assert_eq!(trimmed(of_child.unwrap()), one);
            assert_eq!(current().unwrap(), before);
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_panic_restores_the_mask() {
        thread::spawn(|| {
            let before = current().unwrap();
            let one = lowest(&before);
            let result =
                catch_unwind(AssertUnwindSafe(|| restricted(&one, |_| panic!("as asked"))));
            assert!(result.is_err());
            assert_eq!(current().unwrap(), before);
        })
        .join()
        .unwrap();
    }

    #[test]
    fn an_empty_mask_and_a_missing_thread_are_errors() {
        assert_eq!(set_current(&[0]).unwrap_err().raw_os_error(), Some(libc::EINVAL));
        assert_eq!(of_thread(0).unwrap_err().raw_os_error(), Some(libc::ESRCH));
        assert_eq!(of_thread(u32::MAX).unwrap_err().raw_os_error(), Some(libc::ESRCH));
    }
}
