//! Whether this process is a copy that `fork` has made, at the price of two loads.
//!
//! A copy believes that it is the original: it has the same memory, descriptors and mappings. Whatever may be used by one
//! process only (a ring, a slot, a right to answer) remembers the [`Origin`] in which it was made, and asks
//! [`Origin::is_here`] before it is used.
//!
//! ```text
//! PAGE        one page that the kernel empties in every copy (MADV_WIPEONFORK); its word is this process's generation
//! GENERATION  ordinary memory, so a copy knows the generation of its parent
//! ```
//! A process that finds the word empty is new, and takes the generation after its parent's. A process is handed origins
//! by its ancestors only, which all have lower generations, so equal means the same process. Any kind of `fork` and
//! `clone` counts that copies the memory, also one that no library knows of; `vfork` shares the memory and does not count.
//!
//! No lock is taken: another thread may fork at any moment, and the copy would wait for a thread that it does not have.
//! Where the system has no such page the generation is the process's number, for a system call at each question.

mod per_process;

use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

pub use per_process::PerProcess;

/// The process in which something was made.
///
/// ```
/// use brigade_sys::fork::Origin;
///
/// let origin = Origin::here();
/// assert!(origin.is_here());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin(u64);

impl Origin {
    /// This process.
    pub fn here() -> Self {
        Self(generation())
    }

    /// Whether this process is the origin, and not a copy of it.
    #[inline]
    pub fn is_here(self) -> bool {
        generation() == self.0
    }

    /// Ends this process at once if it is a copy. Nothing is flushed, dropped or called: its buffers hold what the original
    /// is going to write.
    #[inline]
    pub fn end_copy(self) {
        if !self.is_here() {
            // SAFETY: it ends the process and has no conditions.
            unsafe { libc::_exit(0) }
        }
    }
}

/// The system makes a page of it.
const BYTES: usize = size_of::<AtomicU64>();

static PAGE: AtomicPtr<AtomicU64> = AtomicPtr::new(ptr::null_mut());
static GENERATION: AtomicU64 = AtomicU64::new(0);

/// What [`PAGE`] points to where there is no such page.
static NO_PAGE: AtomicU64 = AtomicU64::new(0);

#[inline]
fn generation() -> u64 {
    let page = PAGE.load(Ordering::Acquire);
    // SAFETY: the pointer is null, or that of a word which is there as long as the process.
    match unsafe { page.as_ref() }.map(|word| word.load(Ordering::Relaxed)) {
        None | Some(0) => find_generation(page),
        Some(generation) => generation,
    }
}

#[cold]
fn find_generation(mut page: *mut AtomicU64) -> u64 {
    if page.is_null() {
        page = first_page();
    }
    if ptr::eq(page, &raw const NO_PAGE) {
        return u64::from(std::process::id());
    }
    let generation = GENERATION.load(Ordering::SeqCst) + 1;
    // Before the word is written: a copy that is made in between must find a parent with this generation.
    GENERATION.fetch_max(generation, Ordering::SeqCst);
    // SAFETY: as in `generation`; it is not null.
    let word = unsafe { &*page };
    match word.compare_exchange(0, generation, Ordering::SeqCst, Ordering::SeqCst) {
        Ok(_) => generation,
        Err(generation) => generation,
    }
}

/// Makes the page, unless another thread was faster.
fn first_page() -> *mut AtomicU64 {
    let made = wiped_page().unwrap_or((&raw const NO_PAGE).cast_mut());
    let first = PAGE.compare_exchange(ptr::null_mut(), made, Ordering::AcqRel, Ordering::Acquire);
    match first {
        Ok(_) => made,
        Err(first) => {
            if !ptr::eq(made, &raw const NO_PAGE) {
                // SAFETY: mapped below with this length, and seen by nobody else.
                let _ = unsafe { munmap(made.cast(), BYTES) };
            }
            first
        }
    }
}

/// A page that is empty in every copy.
fn wiped_page() -> Option<*mut AtomicU64> {
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new mapping at an address of the kernel's choice overlaps nothing.
    let page = unsafe { mmap_anonymous(ptr::null_mut(), BYTES, access, MapFlags::PRIVATE) }.ok()?;
    // SAFETY: the page is ours. The advice changes what copies of this process see, and nothing here.
    if unsafe { madvise(page, BYTES, Advice::LinuxWipeOnFork) }.is_err() {
        // SAFETY: mapped above with this length, and seen by nobody else.
        let _ = unsafe { munmap(page, BYTES) };
        return None;
    }
    Some(page.cast())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Runs it in a copy of this process; whether it answered true there.
    pub(crate) fn in_a_copy(check: impl FnOnce() -> bool) -> bool {
        // SAFETY: the child makes system calls and uses atomics only, and ends without running anything of the parent's.
        match unsafe { libc::fork() } {
            0 => {
                let code = i32::from(!check());
                // SAFETY: it ends the process.
                unsafe { libc::_exit(code) }
            }
            pid => {
                assert!(pid > 0, "no fork");
                let mut status = 0;
                // SAFETY: the child is ours and nobody else waits for it.
                assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
                status == 0
            }
        }
    }

    #[test]
    fn a_copy_is_not_the_origin_and_has_one_of_its_own() {
        let origin = Origin::here();
        assert!(in_a_copy(|| !origin.is_here() && Origin::here().is_here()));
        assert!(origin.is_here(), "the original is changed by its copies");
        assert_eq!(Origin::here(), origin);
    }

    #[test]
    fn a_copy_of_a_copy_that_never_asked_is_not_the_origin() {
        let origin = Origin::here();
        assert!(in_a_copy(|| in_a_copy(|| !origin.is_here())));
    }

    #[test]
    fn a_copy_of_a_copy_is_neither() {
        let origin = Origin::here();
        assert!(in_a_copy(|| {
            let first = Origin::here();
            in_a_copy(|| !origin.is_here() && !first.is_here())
        }));
    }
}
