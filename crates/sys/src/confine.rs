//! Takes rights away from this process that it never gets back: the sight of others (namespaces),
//! capabilities, files and networks (Landlock), and system calls (seccomp).
//!
//! [`Restrictions::apply`] only makes system calls, so it may also run between `fork` and `execve`.
//! Each step may forbid the ones before it: Landlock forbids mounts, and filters forbid all others.

mod namespaces;
mod probe;

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::io::Errno;
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities, set_no_new_privs};

use crate::resource_limit::{self, Limited};

pub use namespaces::{Namespaces, View, Visible};

/// A number in a filter that stands for the id of the process to which the filter is applied.
pub const THIS_PROCESS: u32 = 0x4272_6967;

/// A program that decides on system calls (seccomp(2)).
#[derive(Debug, Clone)]
pub struct Filter(Vec<libc::sock_filter>);

impl Filter {
    /// Returns the filter with these instructions, each as a word: code, offsets of the jump, and
    /// value, from the lowest bits on.
    #[expect(clippy::cast_possible_truncation, reason = "each part is cut out of the word")]
    pub fn from_words(words: &[u64]) -> Self {
        let instruction = |word: &u64| libc::sock_filter {
            code: *word as u16,
            jt: (*word >> 16) as u8,
            jf: (*word >> 24) as u8,
            k: (*word >> 32) as u32,
        };
        Self(words.iter().map(instruction).collect())
    }

    /// Replaces [`THIS_PROCESS`] by the id of this process.
    #[must_use]
    pub fn of_this_process(mut self) -> Self {
        let id = std::process::id();
        for instruction in self.0.iter_mut().filter(|it| it.k == THIS_PROCESS) {
            instruction.k = id;
        }
        self
    }

    fn install(&self) -> io::Result<()> {
        const SET_MODE_FILTER: libc::c_uint = 1;
        let program = libc::sock_fprog {
            len: u16::try_from(self.0.len()).map_err(|_| io::ErrorKind::InvalidInput)?,
            filter: self.0.as_ptr().cast_mut(),
        };
        // SAFETY: the kernel copies the program, which has the given length and lives until then.
        let result = unsafe { syscall!(libc::SYS_seccomp, SET_MODE_FILTER, 0, &raw const program) };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

/// Rights that a process gives up.
#[derive(Debug, Default)]
pub struct Restrictions {
    /// Namespaces that it makes for itself.
    pub namespaces: Option<Namespaces>,
    /// All capabilities but those with which root reads files and, if it is `true`, writes them.
    pub capabilities: Option<bool>,
    /// A set of rules of Landlock.
    pub files: Option<OwnedFd>,
    /// Limits that it sets, and that stay below it.
    pub limits: Vec<(Limited, u64)>,
    /// The highest limits that it could set become those that it has.
    pub lowers_limits: bool,
    /// Filters of system calls, which are installed in this order.
    pub filters: Vec<Filter>,
}

impl Restrictions {
    /// Returns whether a process may give up the rights, by a process that does so and ends at
    /// once.
    ///
    /// # Errors
    /// As [`apply`](Self::apply).
    pub fn probe(&self) -> Result<(), (&'static str, io::Error)> {
        probe::run(self)
    }

    /// Gives up the rights. All of it holds for this thread and those that it starts, so this must
    /// be the only thread of its process.
    ///
    /// # Errors
    /// Returns the step that failed, such as "make namespaces of its own", and the error of the
    /// system. Earlier steps hold.
    pub fn apply(&self) -> Result<(), (&'static str, io::Error)> {
        let at = |what| move |error: Errno| (what, error.into());
        set_no_new_privs(true).map_err(at("give up new privileges"))?;
        if let Some(namespaces) = &self.namespaces {
            namespaces.enter().map_err(at("make namespaces of its own"))?;
        }
        if let Some(writes) = self.capabilities {
            keep_capabilities_for_files(writes).map_err(at("give up its capabilities"))?;
        }
        if let Some(rules) = &self.files {
            // SAFETY: no memory is involved.
            let result =
                unsafe { syscall!(libc::SYS_landlock_restrict_self, rules.as_raw_fd(), 0) };
            if result != 0 {
                return Err(("close files and networks (Landlock)", io::Error::last_os_error()));
            }
        }
        // Not earlier: what comes before may need descriptors.
        for limit in &self.limits {
            resource_limit::set_own(*limit).map_err(|error| ("set its limits", error))?;
        }
        if self.lowers_limits {
            resource_limit::lower_highest().map_err(|error| ("set its limits", error))?;
        }
        for filter in &self.filters {
            filter.install().map_err(|error| ("close system calls (seccomp)", error))?;
        }
        Ok(())
    }
}

/// Gives up all capabilities but those with which root reads files of other users, and writes
/// them. The others allow to raise limits, to mount, to trace and to change the kernel.
fn keep_capabilities_for_files(writes: bool) -> Result<(), Errno> {
    let mut kept = CapabilitySet::DAC_READ_SEARCH;
    kept.set(CapabilitySet::DAC_OVERRIDE | CapabilitySet::FOWNER, writes);
    let held = rustix::thread::capabilities(None)?;
    let (effective, permitted) = (held.effective & kept, held.permitted & kept);
    let inheritable = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective, permitted, inheritable })
}

/// Returns the version of Landlock's interface that the kernel has; 0 if it has none, or if a
/// filter of system calls hides it.
pub fn landlock_version() -> u32 {
    const VERSION: libc::c_uint = 1;
    // SAFETY: without a structure, the call only returns a number.
    let version =
        unsafe { syscall!(libc::SYS_landlock_create_ruleset, std::ptr::null::<u8>(), 0, VERSION) };
    u32::try_from(version).unwrap_or(0)
}

/// Returns `true` if filters of system calls can end or interrupt a call, and not only watch it.
pub fn has_filters() -> bool {
    const GET_ACTION_AVAIL: libc::c_uint = 2;
    let action: u32 = libc::SECCOMP_RET_TRAP;
    // SAFETY: the kernel reads one number.
    unsafe { syscall!(libc::SYS_seccomp, GET_ACTION_AVAIL, 0, &raw const action) == 0 }
}

/// Returns the number of threads of this process.
///
/// # Errors
/// If there is no `/proc`.
pub fn threads() -> io::Result<usize> {
    Ok(std::fs::read_dir("/proc/self/task")?.count())
}

#[cfg(test)]
mod tests {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    use super::*;
    use crate::fork::tests::in_a_copy;

    /// Loads the number of the call, allows all but one, and fails that one with `EBADMSG`.
    fn filter_of(call: i64) -> Filter {
        let word = |code: u16, jt: u8, jf: u8, k: u32| {
            u64::from(code) | u64::from(jt) << 16 | u64::from(jf) << 24 | u64::from(k) << 32
        };
        let call = u32::try_from(call).unwrap();
        let refused = libc::SECCOMP_RET_ERRNO | libc::EBADMSG.cast_unsigned();
        Filter::from_words(&[
            word(0x20, 0, 0, 0),
            word(0x15, 0, 1, call),
            word(0x06, 0, 0, refused),
            word(0x06, 0, 0, libc::SECCOMP_RET_ALLOW),
        ])
    }

    #[test]
    fn a_filter_holds_after_it_was_applied() {
        assert!(has_filters());
        let filters = vec![filter_of(libc::SYS_getppid)];
        let restrictions = Restrictions { filters, ..Restrictions::default() };
        assert!(in_a_copy(|| {
            restrictions.apply().is_ok()
                // SAFETY: no memory is involved.
                && unsafe { syscall!(libc::SYS_getppid) } == -1
                && io::Error::last_os_error().raw_os_error() == Some(libc::EBADMSG)
        }));
    }

    #[test]
    fn capabilities_but_those_for_files_are_given_up() {
        for writes in [true, false] {
            let restrictions =
                Restrictions { capabilities: Some(writes), ..Restrictions::default() };
            assert!(in_a_copy(|| {
                restrictions.apply().is_ok()
                    && rustix::thread::capabilities(None).is_ok_and(|it| {
                        !it.permitted.contains(CapabilitySet::SYS_ADMIN)
                            && (writes || !it.permitted.contains(CapabilitySet::DAC_OVERRIDE))
                    })
            }));
        }
    }

    #[test]
    fn limits_can_only_fall_afterwards() {
        let limits = vec![(Limited::OpenFiles, 17), (Limited::Core, 0)];
        let restrictions = Restrictions { limits, lowers_limits: true, ..Restrictions::default() };
        assert!(in_a_copy(|| {
            // As on many machines, where the rest is left to the program.
            let soft = Rlimit { current: Some(1 << 20), maximum: None };
            let _ = setrlimit(Resource::As, Rlimit { current: Some(1 << 40), ..soft });
            let pending = getrlimit(Resource::Sigpending).current;
            restrictions.apply().is_ok()
                && getrlimit(Resource::Nofile).maximum == Some(17)
                && getrlimit(Resource::As).maximum == Some(1 << 40)
                && getrlimit(Resource::Nice).maximum == Some(0)
                && getrlimit(Resource::Sigpending).maximum == pending.map(|it| it / 2)
        }));
    }

    #[test]
    fn the_id_of_this_process_takes_its_place() {
        let filter = Filter::from_words(&[u64::from(THIS_PROCESS) << 32 | 0x15]).of_this_process();
        assert_eq!((filter.0[0].code, filter.0[0].k), (0x15, std::process::id()));
    }
}
