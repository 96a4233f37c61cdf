//! Namespaces of its own for a process: of networks, of System V IPC, and of mounts, in which only
//! chosen files are visible.
//!
//! A process without the rights of root makes a namespace of users first, in which it may do the
//! rest, and gives up what it may do there in the end.
//!
//! [`enter`] only makes system calls, so it may also run between `fork` and `execve`.

mod view;

pub(super) use view::View;

use std::io::Write;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{getegid, geteuid};
use rustix::thread::{CapabilitySet, CapabilitySets, UnshareFlags, set_capabilities};

/// Makes the namespaces: one without a network, if there is to be `no_network`, and one in which
/// only a view is visible. This must be the only thread of its process.
pub(super) fn enter(no_network: bool, view: Option<&View>) -> Result<(), Errno> {
    let mut own = UnshareFlags::NEWIPC;
    own.set(UnshareFlags::NEWNET, no_network);
    own.set(UnshareFlags::NEWNS, view.is_some());
    // In a namespace of users, root could not open the files of others.
    let is_root = unshare(own).is_ok();
    if !is_root {
        let (user, group) = (geteuid().as_raw(), getegid().as_raw());
        unshare(own | UnshareFlags::NEWUSER)?;
        write_own(c"/proc/self/setgroups", b"deny")?;
        write_own(c"/proc/self/uid_map", line(user, &mut [0; 32]))?;
        write_own(c"/proc/self/gid_map", line(group, &mut [0; 32]))?;
    }
    if let Some(view) = view {
        view.enter()?;
    }
    if !is_root {
        let none = CapabilitySet::empty();
        let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
        set_capabilities(None, sets)?;
    }
    Ok(())
}

fn unshare(flags: UnshareFlags) -> Result<(), Errno> {
    // SAFETY: neither memory nor descriptors are unshared, so no other code notices.
    unsafe { rustix::thread::unshare_unsafe(flags) }
}

fn write_own(path: &std::ffi::CStr, text: &[u8]) -> Result<(), Errno> {
    let file = rustix::fs::open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    let written = rustix::io::write(file, text)?;
    if written == text.len() { Ok(()) } else { Err(Errno::IO) }
}

/// Returns a line that maps a number to itself, without an allocation.
fn line(number: u32, text: &mut [u8; 32]) -> &[u8] {
    let mut rest = text.as_mut_slice();
    // Two numbers of at most ten digits fit.
    let _ = write!(rest, "{number} {number} 1");
    let left = rest.len();
    &text[..text.len() - left]
}

#[cfg(not(loom))]
#[cfg(test)]
mod tests {
    use std::ffi::CString;
    use std::fs;
    use std::net::UdpSocket;

    use rustix::process::{Signal, parent_process_death_signal, set_parent_process_death_signal};

    use super::*;
    use crate::confine::{Confinement, Isolation, Restrictions, Visible};
    use crate::fork::tests::in_a_copy;

    fn text(path: &std::path::Path) -> CString {
        CString::new(path.as_os_str().as_encoded_bytes()).unwrap()
    }

    fn visible(path: &std::path::Path, is_writable: bool) -> Visible {
        let is_folder = path.is_dir();
        Visible { path: text(path), links: Vec::new(), is_folder, is_writable }
    }

    fn probe(isolation: Isolation) -> (Restrictions, std::io::Result<()>) {
        let plan = Confinement { isolation: Some(isolation), ..Confinement::default() };
        let restrictions = plan.restrictions(None);
        let result = restrictions.probe().unwrap().map_err(|(_, error)| error);
        (restrictions, result)
    }

    #[test]
    fn a_line_has_the_longest_numbers() {
        assert_eq!(line(u32::MAX, &mut [0; 32]), b"4294967295 4294967295 1");
        assert_eq!(line(0, &mut [0; 32]), b"0 0 1");
    }

    #[test]
    fn only_chosen_files_are_visible_and_only_some_writable() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::create_dir_all(path("read/within")).unwrap();
        fs::write(path("read/file"), "text").unwrap();
        fs::write(path("closed"), "text").unwrap();
        fs::write(path("single"), "text").unwrap();
        std::os::unix::fs::symlink(path("read"), path("link")).unwrap();
        let all = vec![
            visible(&path("read"), false),
            visible(&path("read/within"), true),
            visible(&path("single"), false),
            Visible {
                links: vec![(text(&path("link")), c"read".to_owned())],
                ..visible(&path("read/file"), false)
            },
        ];
        let (restrictions, possible) = probe(Isolation { network: true, files: Some(all) });
        possible.unwrap();
        assert!(in_a_copy(|| {
            set_parent_process_death_signal(Some(Signal::USR1)).unwrap();
            enter(true, restrictions.view.as_ref()).unwrap();
            let is_text = |name| fs::read_to_string(path(name)).is_ok_and(|it| it == "text");
            let checks = [
                is_text("read/file"),
                is_text("single"),
                is_text("link/file"),
                !path("closed").exists(),
                fs::write(path("read/new"), "").is_err(),
                fs::write(path("new"), "").is_err(),
                fs::write(path("read/within/new"), "").is_ok(),
                fs::read_dir("/").unwrap().count() == 1,
                !std::path::Path::new("/proc/self").exists(),
                UdpSocket::bind("127.0.0.1:0").is_ok_and(|it| it.connect("127.0.0.1:9").is_err()),
                parent_process_death_signal().unwrap() == Some(Signal::USR1),
            ];
            checks.iter().all(|it| *it)
        }));
        assert!(path("read/within/new").exists());
        assert_eq!(fs::read_to_string(path("closed")).unwrap(), "text", "outside all is as before");
    }

    #[test]
    fn a_view_that_cannot_be_made_is_an_error_of_the_probe() {
        let folder = tempfile::tempdir().unwrap();
        let file = visible(folder.path(), false);
        drop(folder);
        let isolation = Isolation { network: false, files: Some(vec![file]) };
        let error = probe(isolation).1.unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
    }
}
