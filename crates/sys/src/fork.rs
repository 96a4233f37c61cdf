//! Detects whether this process is a copy that `fork` has made, at the cost of two loads.
//!
//! A copy believes that it is the original: it has the same memory, descriptors and mappings. A
//! resource that only one process may use (a ring, a slot, a right to send an outcome) remembers
//! the [`Origin`] in which it was created, and asks [`Origin::is_here`] before it is used.
//!
//! ```text
//! PAGE        a page that the kernel empties in every copy (MADV_WIPEONFORK); holds the generation
//! GENERATION  ordinary memory, so a copy knows the generation of its parent
//! ```
//! A process that finds the word empty is new, and takes the generation after its parent's. A
//! process gets origins only from its ancestors, which all have lower generations, so equal means
//! the same process. Any kind of `fork` and `clone` that copies the memory counts, even one that no
//! library knows of; `vfork` shares the memory and does not count.
//!
//! No lock is taken: another thread may fork at any moment, and the copy would wait for a thread
//! that it does not have. If the system has no such page, the generation is the process id, at the
//! cost of a system call for each query.

mod per_process;

use std::io;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

pub use per_process::PerProcess;

/// The process in which a value was created.
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
    /// Returns this process.
    pub fn here() -> Self {
        Self(generation())
    }

    /// Returns `true` if this process is the origin, and not a copy of it.
    #[inline]
    pub fn is_here(self) -> bool {
        generation() == self.0
    }

    /// Ends this process at once if it is a copy. Nothing is flushed, dropped or called: its
    /// buffers hold data that the original is going to write.
    #[inline]
    pub fn end_copy(self) {
        if !self.is_here() {
            // SAFETY: it ends the process and has no conditions.
            unsafe { libc::_exit(0) }
        }
    }
}

/// The right of the next copy to be what this process is: the origin of the same values.
#[derive(Debug)]
pub(crate) struct Succession(u64);

impl Succession {
    /// Call it in the original.
    pub(crate) fn new() -> Self {
        Self(generation())
    }

    /// Makes the copy the origin of everything that its original is the origin of. The original
    /// must use none of it as long as the copy lives.
    pub(crate) fn succeed(self) {
        // SAFETY: as in `generation`.
        if let Some(word) = unsafe { PAGE.load(Ordering::Acquire).as_ref() } {
            word.store(self.0, Ordering::SeqCst);
        }
    }
}

/// Returns `true` if a copy of this process [can be](Succession) what this process is.
pub(crate) fn can_be_succeeded() -> bool {
    let _ = generation();
    !ptr::eq(PAGE.load(Ordering::Acquire), &raw const NO_PAGE)
}

/// Copies this process, and waits for the copy, which ends at once: the least time that any new
/// process takes. For measurements.
///
/// # Errors
/// If no process is left.
pub fn copy_and_wait() -> io::Result<()> {
    // SAFETY: the copy makes a single system call.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        // SAFETY: it ends the copy and has no conditions.
        0 => unsafe { libc::_exit(0) },
        pid => {
            let pid = rustix::process::Pid::from_raw(pid);
            Ok(rustix::process::waitpid(pid, rustix::process::WaitOptions::empty()).map(drop)?)
        }
    }
}

/// The system rounds it up to a page.
const BYTES: usize = size_of::<AtomicU64>();

static PAGE: AtomicPtr<AtomicU64> = AtomicPtr::new(ptr::null_mut());
static GENERATION: AtomicU64 = AtomicU64::new(0);

/// The target of [`PAGE`] if there is no such page.
static NO_PAGE: AtomicU64 = AtomicU64::new(0);

#[inline]
fn generation() -> u64 {
    let page = PAGE.load(Ordering::Acquire);
    // SAFETY: the pointer is null, or points to a word that exists as long as the process.
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
    // Before the word is written: a copy that is made in between must find a parent with this
    // generation.
    GENERATION.fetch_max(generation, Ordering::SeqCst);
    // SAFETY: as in `generation`; it is not null.
    let word = unsafe { &*page };
    match word.compare_exchange(0, generation, Ordering::SeqCst, Ordering::SeqCst) {
        Ok(_) => generation,
        Err(generation) => generation,
    }
}

/// Creates the page, unless another thread was faster.
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

/// Creates a page that is empty in every copy.
fn wiped_page() -> Option<*mut AtomicU64> {
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new mapping at an address of the kernel's choice overlaps nothing.
    let page = unsafe { mmap_anonymous(ptr::null_mut(), BYTES, access, MapFlags::PRIVATE) }.ok()?;
    // SAFETY: the page is ours. The advice changes what copies of this process see, and nothing
    // here.
    if unsafe { madvise(page, BYTES, Advice::LinuxWipeOnFork) }.is_err() {
        // SAFETY: mapped above with this length, and seen by nobody else.
        let _ = unsafe { munmap(page, BYTES) };
        return None;
    }
    Some(page.cast())
}

#[cfg(test)]
pub(crate) mod tests;
