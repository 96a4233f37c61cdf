//! `rustix::mount`.

use std::os::fd::OwnedFd;

flags! {
    FsMountFlags: FSMOUNT_CLOEXEC;
    FsOpenFlags: FSOPEN_CLOEXEC;
    MountAttrFlags: MOUNT_ATTR_NODEV MOUNT_ATTR_NOSUID MOUNT_ATTR_RDONLY;
    MountPropagationFlags: PRIVATE REC;
    MoveMountFlags: MOVE_MOUNT_F_EMPTY_PATH;
    OpenTreeFlags: AT_RECURSIVE OPEN_TREE_CLOEXEC OPEN_TREE_CLONE;
    UnmountFlags: DETACH;
}

refused! {
    fsconfig_create<F>(F);
    fsconfig_set_string<F, K, V>(F, K, V);
    fsmount<F>(F, FsMountFlags, MountAttrFlags) -> OwnedFd;
    fsopen<P>(P, FsOpenFlags) -> OwnedFd;
    mount_change<P>(P, MountPropagationFlags);
    move_mount<F, P, G, Q>(F, P, G, Q, MoveMountFlags);
    open_tree<F, P>(F, P, OpenTreeFlags) -> OwnedFd;
    unmount<P>(P, UnmountFlags);
}
