//! The files that are visible in a namespace of mounts: an empty file system in memory, into which
//! they are bound at the places that they have outside.

use std::ffi::{CStr, CString, OsStr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, mkdirat, mknodat, symlinkat};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountPropagationFlags, MoveMountFlags,
    OpenTreeFlags, UnmountFlags, fsconfig_create, fsconfig_set_string, fsmount, fsopen,
    mount_change, move_mount, open_tree, unmount,
};
use rustix::process::{chdir, fchdir, pivot_root};

use crate::confine::Visible;
use crate::syscall::checked;

impl Visible {
    fn has(&self, other: &Self) -> bool {
        path_of(&other.path).starts_with(path_of(&self.path))
    }
}

fn path_of(text: &CStr) -> &Path {
    Path::new(OsStr::from_bytes(text.to_bytes()))
}

/// The files that stay visible.
#[derive(Debug)]
pub(in crate::confine) struct View(Vec<Place>);

/// A place in the new root. Its paths are relative to that.
#[derive(Debug)]
struct Place {
    /// The folders that it lies in, from the outermost to the innermost.
    folders: Vec<CString>,
    name: CString,
    content: Content,
}

#[derive(Debug)]
enum Content {
    /// The file or folder that lies at this path outside.
    Bound { source: CString, is_folder: bool, is_writable: bool },
    /// A link to this path.
    Link(CString),
}

impl View {
    /// Plans the new root.
    pub(in crate::confine) fn new(mut all: Vec<Visible>) -> Self {
        // Folders come before all that is in them, and what may be changed before what may not.
        all.sort_by(|one, other| {
            one.path.cmp(&other.path).then(other.is_writable.cmp(&one.is_writable))
        });
        let mut kept: Vec<Visible> = Vec::new();
        for one in &all {
            let has_it = |other: &Visible| other.has(one) && other.is_writable >= one.is_writable;
            if !kept.iter().any(has_it) {
                kept.push(one.clone());
            }
        }
        let bound = kept.into_iter().map(|it| {
            let Visible { path: source, is_folder, is_writable, .. } = it;
            Place::new(&source.clone(), Content::Bound { source, is_folder, is_writable })
        });
        let links = all.into_iter().flat_map(|it| it.links);
        let links = links.map(|(at, target)| Place::new(&at, Content::Link(target)));
        Self(bound.chain(links).collect())
    }

    /// Makes the new root and leaves the old one. Nothing here allocates.
    pub(super) fn enter(&self) -> Result<(), Errno> {
        let mut folder = [0_u8; libc::PATH_MAX as usize];
        // SAFETY: the buffer has the given length.
        let here = unsafe { libc::getcwd(folder.as_mut_ptr().cast(), folder.len()) };
        // Nothing of this is to be seen outside.
        mount_change(c"/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
        let memory = fsopen(c"tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
        fsconfig_set_string(memory.as_fd(), c"mode", c"755")?;
        fsconfig_create(memory.as_fd())?;
        let closed = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
        let root = fsmount(memory.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, closed)?;
        let itself = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
        move_mount(root.as_fd(), c"", CWD, c"/", itself)?;
        for place in &self.0 {
            place.fill(root.as_fd())?;
        }
        limit(root.as_fd(), MountAttrFlags::MOUNT_ATTR_RDONLY, 0)?;
        fchdir(root.as_fd())?;
        // The old root lies over the new one then (pivot_root(2)).
        pivot_root(c".", c".")?;
        unmount(c".", UnmountFlags::DETACH)?;
        let here = CStr::from_bytes_until_nul(&folder).ok().filter(|_| !here.is_null());
        here.map_or(Err(Errno::NOENT), chdir).or_else(|_| chdir(c"/"))
    }
}

impl Place {
    fn new(path: &CStr, content: Content) -> Self {
        let path = path_of(path);
        let inner = path.strip_prefix("/").unwrap_or(path);
        // Parts of a text without null bytes have none.
        let text = |path: &Path| CString::new(path.as_os_str().as_bytes()).unwrap_or_default();
        let mut folders: Vec<_> = inner.ancestors().skip(1).map(text).collect();
        folders.retain(|it| !it.is_empty());
        folders.reverse();
        Self { folders, name: text(inner), content }
    }

    fn fill(&self, root: BorrowedFd<'_>) -> Result<(), Errno> {
        let folder_mode = Mode::from_raw_mode(0o755);
        for folder in &self.folders {
            // It exists already, or the next calls fail.
            let _ = mkdirat(root, folder.as_c_str(), folder_mode);
        }
        let name = self.name.as_c_str();
        let (source, is_folder, is_writable) = match &self.content {
            Content::Bound { source, is_folder, is_writable } => (source, is_folder, is_writable),
            Content::Link(path) => {
                // A link that exists already is that one, of a folder that is visible.
                let _ = symlinkat(path.as_c_str(), root, name);
                return Ok(());
            }
        };
        let _ = if *is_folder {
            mkdirat(root, name, folder_mode)
        } else {
            mknodat(root, name, FileType::RegularFile, Mode::from_raw_mode(0o644), 0)
        };
        let copy = OpenTreeFlags::OPEN_TREE_CLONE
            | OpenTreeFlags::OPEN_TREE_CLOEXEC
            | OpenTreeFlags::AT_RECURSIVE;
        let tree = open_tree(CWD, source.as_c_str(), copy)?;
        let mut closed = MountAttrFlags::MOUNT_ATTR_NOSUID;
        closed.set(MountAttrFlags::MOUNT_ATTR_RDONLY, !is_writable);
        limit(tree.as_fd(), closed, AT_RECURSIVE)?;
        let itself = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
        move_mount(tree.as_fd(), c"", root, name, itself)
    }
}

/// Includes all mounts below.
const AT_RECURSIVE: libc::c_int = 0x8000;

/// Adds attributes to a mount.
fn limit(mount: BorrowedFd<'_>, added: MountAttrFlags, how: libc::c_int) -> Result<(), Errno> {
    // The structure `mount_attr`: attributes to add and to remove, propagation, and users.
    let change = [u64::from(added.bits()), 0, 0, 0];
    // SAFETY: the kernel reads an empty path, and a structure of the given size.
    checked(unsafe {
        syscall!(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH | how,
            change.as_ptr(),
            size_of_val(&change),
        )
    })
    .map(drop)
}
