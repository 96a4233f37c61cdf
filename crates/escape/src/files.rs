//! Files outside, on every way that there is.

use std::fs;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{OpenOptionsExt, symlink};

use crate::attempt::{
    Attempt, HERE, Text, address, call, error_or_escape, harmless, refused, tries,
};
use crate::targets::SECRET;

pub(crate) const ATTEMPTS: &[Attempt] = &[
    harmless("read a file by its path", |it| reads(&it.secret)),
    harmless("read a file through ..", |it| reads(&format!("{}/../outside/secret", it.allowed))),
    harmless("read a file through a symbolic link", |it| {
        let link = format!("{}/link", it.allowed);
        let _ = symlink(&it.secret, &link);
        reads(&link)
    }),
    harmless("read a file through a hard link", |it| {
        let link = format!("{}/hard", it.allowed);
        error_or_escape(fs::hard_link(&it.secret, &link), "it was linked")
    }),
    harmless("move a file in", |it| {
        error_or_escape(fs::rename(&it.secret, format!("{}/in", it.allowed)), "moved")
    }),
    harmless("move a file out", |it| {
        let own = format!("{}/own", it.allowed);
        fs::write(&own, "mine").map_err(|error| error.to_string())?;
        error_or_escape(fs::rename(&own, format!("{}/own", it.outside)), "moved")
    }),
    harmless("exchange two files", |it| {
        let own = format!("{}/own", it.allowed);
        fs::write(&own, "mine").map_err(|error| error.to_string())?;
        let (own, secret) = (Text::new(&own), Text::new(&it.secret));
        tries(libc::SYS_renameat2, [HERE, own.at(), HERE, secret.at(), 2])
    }),
    harmless("make a file without a name outside", |it| {
        let mut options = fs::OpenOptions::new();
        options.write(true).custom_flags(libc::O_TMPFILE);
        error_or_escape(options.open(&it.outside), "made")
    }),
    harmless("make a file outside", |it| {
        error_or_escape(fs::write(format!("{}/new", it.outside), "x"), "made")
    }),
    harmless("make a folder outside", |it| {
        error_or_escape(fs::create_dir(format!("{}/new", it.outside)), "made")
    }),
    harmless("delete a file", |it| error_or_escape(fs::remove_file(&it.secret), "gone")),
    harmless("delete a folder", |it| error_or_escape(fs::remove_dir(&it.outside), "gone")),
    harmless("truncate a file by its path", |it| {
        tries(libc::SYS_truncate, [Text::new(&it.secret).at(), 0])
    }),
    harmless("truncate a file that may only be read", |it| {
        tries(libc::SYS_truncate, [Text::new(&it.readable).at(), 0])
    }),
    harmless("write to a file that may only be read", |it| {
        error_or_escape(fs::OpenOptions::new().write(true).open(&it.readable), "opened")
    }),
    harmless("open a file again that was opened as a path", |it| {
        let path = Text::new(&it.secret);
        let file = call(libc::SYS_openat, [HERE, path.at(), libc::O_PATH as u64]);
        if file < 0 { refused(file) } else { reads(&format!("/proc/self/fd/{file}")) }
    }),
    harmless("read a file relative to a folder that was opened as a path", |it| {
        let path = Text::new(&it.outside);
        let folder = call(libc::SYS_openat, [HERE, path.at(), libc::O_PATH as u64]);
        let name = Text::new("secret");
        match u64::try_from(folder) {
            Ok(folder) => tries(libc::SYS_openat, [folder, name.at(), 0]),
            Err(_) => refused(folder),
        }
    }),
    harmless("open a file with openat2", |it| {
        let (path, how) = (Text::new(&it.secret), [0_u64; 3]);
        tries(libc::SYS_openat2, [HERE, path.at(), address(how.as_ptr()), 24])
    }),
    harmless("get a handle of a file", |it| {
        let (path, handle, mount) = (Text::new(&it.secret), [128_u32; 40], [0_i32; 1]);
        let arguments = [HERE, path.at(), address(handle.as_ptr()), address(mount.as_ptr()), 0];
        tries(libc::SYS_name_to_handle_at, arguments)
    }),
    harmless("open a file by its handle", |_| {
        let handle = [8_u32, 1, 2, 3];
        tries(libc::SYS_open_by_handle_at, [HERE, address(handle.as_ptr()), 0])
    }),
    harmless("list a folder", |it| error_or_escape(fs::read_dir(&it.outside), "listed")),
    harmless("list the root", |_| error_or_escape(fs::read_dir("/"), "listed")),
    harmless("read the passwords", |_| reads("/etc/shadow")),
    harmless("read the users", |_| reads("/etc/passwd")),
    harmless("read our own executable", |_| reads("/proc/self/exe")),
    harmless("read the map of our memory", |_| reads("/proc/self/maps")),
    harmless("read the host's environment", |it| reads(&format!("/proc/{}/environ", it.host))),
    harmless("read the host's memory", |it| reads(&format!("/proc/{}/mem", it.host))),
    harmless("map the host's memory", |it| reads(&format!("/proc/{}/maps", it.host))),
    harmless("read through the host's root", |it| {
        reads(&format!("/proc/{}/root{}", it.host, it.secret))
    }),
    harmless("read through the host's descriptors", |it| {
        let found = (0..64).find_map(|number| {
            fs::File::open(format!("/proc/{}/fd/{number}", it.host)).ok().map(|_| number)
        });
        found.map_or(Ok(libc::EACCES), |number| Err(format!("opened descriptor {number}")))
    }),
    harmless("read others through our entries in /proc", |it| {
        let (host, secret) = (it.host, &it.secret);
        let others = ["self", "self/root/proc/self", "thread-self/../.."].map(|own| {
            let files = ["stat", "cmdline", "environ", "maps", "mem", "fd/0", "task/../stat"];
            files.map(|file| format!("/proc/{own}/../{host}/{file}"))
        });
        let folders = ["self", "thread-self", "self/task/..", "self/fd/../cwd/proc/self"];
        let files = folders.map(|own| format!("/proc/{own}/root{secret}"));
        let lists = ["root", "cwd", ".."].map(|name| format!("/proc/self/{name}"));
        none_opens(others.into_iter().flatten().chain(files).chain(lists), false)
    }),
    harmless("write to our entries in /proc", |_| {
        let files = ["mem", "oom_score_adj", "uid_map", "attr/current", "clear_refs", "comm"];
        none_opens(files.map(|name| format!("/proc/self/{name}")), true)
    }),
    harmless("write to what we may read through our entries in /proc", |it| {
        let file = fs::File::open(&it.readable).map_err(|error| error.to_string())?;
        none_opens([format!("/proc/self/fd/{}", file.as_raw_fd())], true)
    }),
    harmless("read a secret from an inherited descriptor", |_| {
        let holder = (0..256_u64).find(|number| {
            let buffer = [0_u8; 4096];
            let read = call(libc::SYS_pread64, [*number, address(buffer.as_ptr()), 4096, 0]);
            read > 0 && String::from_utf8_lossy(&buffer).contains(SECRET)
        });
        holder.map_or(Ok(0), |number| Err(format!("descriptor {number} has it")))
    }),
    harmless("see the host's environment in our own", |_| {
        let seen: Vec<_> = std::env::vars().map(|(name, _)| name).collect();
        if seen.is_empty() { Ok(0) } else { Err(format!("{seen:?} are set")) }
    }),
    harmless("change the mode of a file", |it| {
        tries(libc::SYS_fchmodat, [HERE, Text::new(&it.secret).at(), 0o777])
    }),
    harmless("change the owner of a file", |it| {
        tries(libc::SYS_fchownat, [HERE, Text::new(&it.secret).at(), 1, 1, 0])
    }),
    harmless("change the times of a file", |it| {
        tries(libc::SYS_utimensat, [HERE, Text::new(&it.secret).at(), 0, 0])
    }),
    harmless("give a file an attribute", |it| {
        let (path, name) = (Text::new(&it.secret), Text::new("user.x"));
        tries(libc::SYS_setxattr, [path.at(), name.at(), name.at(), 1, 0])
    }),
    harmless("give a file an attribute by its folder", |it| {
        let (path, name) = (Text::new(&it.secret), Text::new("user.x"));
        let value = [name.at(), 1];
        let value = [address(value.as_ptr()), 16];
        tries(SETXATTRAT, [HERE, path.at(), 0, name.at(), value[0], value[1]])
    }),
    harmless("take an attribute away from a file", |it| {
        let (path, name) = (Text::new(&it.secret), Text::new("user.x"));
        tries(REMOVEXATTRAT, [HERE, path.at(), 0, name.at()])
    }),
    harmless("set the flags of a file by its path", |it| {
        let flags = [0_u64; 3];
        let (path, at) = (Text::new(&it.secret), address(flags.as_ptr()));
        tries(FILE_SETATTR, [HERE, path.at(), at, 24, 0])
    }),
    harmless("set the flags of a file that was opened for reading", |it| {
        commands(&it.readable, 0x4008_6602)
    }),
    harmless("set the project of a file that was opened for reading", |it| {
        commands(&it.readable, 0x401c_5820)
    }),
    harmless("seal a file that was opened for reading", |it| commands(&it.readable, 0x4080_6685)),
    harmless("watch a file", |_| tries(libc::SYS_inotify_init1, [0])),
    harmless("watch a file system", |_| tries(libc::SYS_fanotify_init, [0, 0])),
    harmless("make a device", |it| {
        let path = Text::new(&format!("{}/disk", it.allowed));
        tries(libc::SYS_mknodat, [HERE, path.at(), u64::from(libc::S_IFBLK), 0x800])
    }),
    harmless("open a device", |_| reads("/dev/kmsg")),
    harmless("open a terminal", |_| reads("/dev/tty")),
    harmless("open a new terminal", |_| reads("/dev/ptmx")),
    harmless("mount", |it| {
        let (what, at) = (Text::new("tmpfs"), Text::new(&it.allowed));
        tries(libc::SYS_mount, [what.at(), at.at(), what.at(), 0, 0])
    }),
    harmless("bind a folder to another", |it| {
        let (what, at) = (Text::new(&it.outside), Text::new(&it.allowed));
        tries(libc::SYS_mount, [what.at(), at.at(), 0, libc::MS_BIND, 0])
    }),
    harmless("unmount", |_| tries(libc::SYS_umount2, [Text::new("/proc").at(), 2])),
    harmless("change the root", |it| tries(libc::SYS_chroot, [Text::new(&it.allowed).at()])),
    harmless("exchange the root", |it| {
        let path = Text::new(&it.allowed);
        tries(libc::SYS_pivot_root, [path.at(), path.at()])
    }),
    harmless("open a file system", |_| tries(libc::SYS_fsopen, [Text::new("tmpfs").at(), 0])),
    harmless("open a tree of files", |it| {
        tries(libc::SYS_open_tree, [HERE, Text::new(&it.outside).at(), 1])
    }),
    harmless("move a mount", |_| tries(libc::SYS_move_mount, [HERE, 0, HERE, 0, 0])),
    harmless("swap to a file", |it| tries(libc::SYS_swapon, [Text::new(&it.allowed).at(), 0])),
    harmless("keep an account of processes", |_| tries(libc::SYS_acct, [0])),
    harmless("fill the disk", |it| {
        let mut file =
            fs::File::create(format!("{}/large", it.allowed)).map_err(|e| e.to_string())?;
        let block = vec![0; 1 << 20];
        for _ in 0..1000 {
            file.write_all(&block).map_err(|error| error.to_string())?;
        }
        Err("wrote a gigabyte".to_owned())
    }),
    harmless("reserve the disk", |it| {
        let file = fs::File::create(format!("{}/large", it.allowed)).map_err(|e| e.to_string())?;
        error_or_escape(file.set_len(1 << 40), "it is a terabyte long")
    }),
];

const SETXATTRAT: i64 = 463;
const REMOVEXATTRAT: i64 = 466;
const FILE_SETATTR: i64 = 469;

/// Gives a command to the file system of a file that may be read.
fn commands(path: &str, command: u64) -> Result<i32, String> {
    let argument = [0_u64; 16];
    let file = call(libc::SYS_openat, [HERE, Text::new(path).at(), 0]);
    match u64::try_from(file) {
        Ok(file) => tries(libc::SYS_ioctl, [file, command, address(argument.as_ptr())]),
        Err(_) => refused(file),
    }
}

/// Tries to open files and folders.
fn none_opens(paths: impl IntoIterator<Item = String>, writes: bool) -> Result<i32, String> {
    let options = fs::OpenOptions::new().read(!writes).write(writes).to_owned();
    let opened = paths.into_iter().find(|path| options.open(path).is_ok());
    opened.map_or(Ok(libc::EACCES), |path| Err(format!("opened {path}")))
}

/// Tries to read a file.
fn reads(path: &str) -> Result<i32, String> {
    let mut buffer = [0; 16];
    let read = fs::File::open(path).and_then(|mut file| file.read(&mut buffer));
    error_or_escape(read, &format!("read {path}"))
}
