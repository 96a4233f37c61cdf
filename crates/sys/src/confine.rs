//! Takes rights away from this process that it never gets back: the sight of others (namespaces),
//! capabilities, files and networks (Landlock), and system calls (seccomp).
//!
//! [`Restrictions::apply`] only makes system calls, so it may also run between `fork` and `execve`.
//! Each step may forbid the ones before it: Landlock forbids mounts, and filters forbid all others.

mod namespaces;
mod plan;
mod probe;

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;

use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities, set_no_new_privs};

use crate::resource_limit;
use crate::syscall::checked;

use namespaces::View;
pub use plan::{Confinement, Isolation, Visible};

/// A number in a filter that stands for the id of the process to which the filter is applied.
pub const THIS_PROCESS: u32 = 0x4272_6967;

/// Returns an instruction of a filter from its word: code, offsets of the jump, and value, from the
/// lowest bits on.
#[expect(clippy::cast_possible_truncation, reason = "each part is cut out of the word")]
fn instruction(word: u64) -> libc::sock_filter {
    libc::sock_filter {
        code: word as u16,
        jt: (word >> 16) as u8,
        jf: (word >> 24) as u8,
        k: (word >> 32) as u32,
    }
}

/// Installs a filter, which decides on system calls (seccomp(2)).
fn install(filter: &[libc::sock_filter]) -> io::Result<()> {
    const SET_MODE_FILTER: libc::c_uint = 1;
    let program = libc::sock_fprog {
        len: u16::try_from(filter.len()).map_err(|_| io::ErrorKind::InvalidInput)?,
        filter: filter.as_ptr().cast_mut(),
    };
    // SAFETY: the kernel copies the program, which has the given length and lives until then.
    let result = unsafe { syscall!(libc::SYS_seccomp, SET_MODE_FILTER, 0, &raw const program) };
    Ok(checked(result).map(drop)?)
}

/// Rights that a process gives up.
#[derive(Debug)]
pub struct Restrictions {
    /// A set of rules of Landlock.
    pub files: Option<OwnedFd>,
    /// The files that stay visible, and the filters, in forms for which nothing is allocated.
    view: Option<View>,
    filters: Vec<Vec<libc::sock_filter>>,
    plan: Confinement,
}

impl Restrictions {
    /// Replaces [`THIS_PROCESS`] in the filters by the id of this process.
    #[must_use]
    pub fn of_this_process(mut self) -> Self {
        let id = std::process::id();
        let instructions = self.filters.iter_mut().flatten();
        instructions.filter(|it| it.k == THIS_PROCESS).for_each(|it| it.k = id);
        self
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
        if let Some(isolation) = &self.plan.isolation {
            namespaces::enter(isolation.network, self.view.as_ref())
                .map_err(at("make namespaces of its own"))?;
        }
        if let Some(writes) = self.plan.capabilities {
            keep_capabilities_for_files(writes).map_err(at("give up its capabilities"))?;
        }
        if let Some(rules) = &self.files {
            for (path, rights) in &self.plan.own {
                let own = open(path.as_c_str(), OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
                let own = own.map_err(at("open its entries in /proc"))?;
                // A later look finds this very entry, which the rule is for, as long as it is open.
                let rule = [*rights, u64::from(own.into_raw_fd().cast_unsigned())];
                add_rule(rules, BENEATH, rule).map_err(|error| ("allow them", error))?;
            }
            // SAFETY: no memory is involved.
            checked(unsafe { syscall!(libc::SYS_landlock_restrict_self, rules.as_raw_fd(), 0) })
                .map_err(at("close files and networks (Landlock)"))?;
        }
        // Not earlier: what comes before may need descriptors.
        for limit in &self.plan.limits {
            resource_limit::set_own(*limit).map_err(|error| ("set its limits", error))?;
        }
        if self.plan.lowers_limits {
            resource_limit::lower_highest().map_err(|error| ("set its limits", error))?;
        }
        for filter in &self.filters {
            install(filter).map_err(|error| ("close system calls (seccomp)", error))?;
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

/// The kind of a rule of Landlock for a file, or a folder with all that is below it. Its words are
/// the rights and the descriptor.
pub const BENEATH: u32 = 1;

/// Makes a set of rules of Landlock that takes away these rights on files and on networks, and
/// these scopes. Numbers are those of the kernel (landlock(7)).
///
/// # Errors
/// The error of the system.
pub fn create_rules(handled: [u64; 3]) -> io::Result<OwnedFd> {
    let (handled, size) = (handled.as_ptr(), size_of_val(&handled));
    // SAFETY: the kernel reads a structure of this size. One that knows less of it wants zeros.
    let set = checked(unsafe { syscall!(libc::SYS_landlock_create_ruleset, handled, size, 0) })?;
    let set = i32::try_from(set).map_err(io::Error::other)?;
    // SAFETY: the descriptor is new, and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(set) })
}

/// Adds a rule to a set. Only makes a system call.
///
/// # Errors
/// The error of the system.
pub fn add_rule(set: &OwnedFd, kind: u32, rule: [u64; 2]) -> io::Result<()> {
    let (set, rule) = (set.as_raw_fd(), rule.as_ptr());
    // SAFETY: the kernel reads two words, or 12 bytes: the lowest ones of the second word.
    let added = unsafe { syscall!(libc::SYS_landlock_add_rule, set, kind, rule, 0) };
    Ok(checked(added).map(drop)?)
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

/// Returns the number of threads of this process.
///
/// # Errors
/// If there is no `/proc`.
pub fn threads() -> io::Result<usize> {
    // One link for each thread and two for the folder itself; no descriptor is needed.
    let links = std::fs::metadata("/proc/self/task")?.nlink();
    Ok(usize::try_from(links).unwrap_or(usize::MAX).saturating_sub(2))
}

#[cfg(test)]
mod tests {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    use super::*;
    use crate::fork::tests::in_a_copy;
    use crate::resource_limit::Limited;

    /// Loads the number of the call, allows all but one, and fails that one with `EBADMSG`.
    fn filter_of(call: i64) -> Vec<u64> {
        let word = |code: u16, jt: u8, jf: u8, k: u32| {
            u64::from(code) | u64::from(jt) << 16 | u64::from(jf) << 24 | u64::from(k) << 32
        };
        let call = u32::try_from(call).unwrap();
        let refused = libc::SECCOMP_RET_ERRNO | libc::EBADMSG.cast_unsigned();
        vec![
            word(0x20, 0, 0, 0),
            word(0x15, 0, 1, call),
            word(0x06, 0, 0, refused),
            word(0x06, 0, 0, libc::SECCOMP_RET_ALLOW),
        ]
    }

    #[test]
    fn a_filter_holds_after_it_was_applied() {
        let filters = vec![filter_of(libc::SYS_getppid)];
        let restrictions = Confinement { filters, ..Confinement::default() }.restrictions(None);
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
            let plan = Confinement { capabilities: Some(writes), ..Confinement::default() };
            let restrictions = plan.restrictions(None);
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
        let plan = Confinement { limits, lowers_limits: true, ..Confinement::default() };
        let restrictions = plan.restrictions(None);
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
        let filters = vec![vec![u64::from(THIS_PROCESS) << 32 | 0x15]];
        let plan = Confinement { filters, ..Confinement::default() };
        let restrictions = plan.restrictions(None).of_this_process();
        let instruction = restrictions.filters[0][0];
        assert_eq!((instruction.code, instruction.k), (0x15, std::process::id()));
    }
}
