//! Files outside, on every way that there is.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::{OpenOptionsExt, symlink};

use crate::attempt::{Attempt, HERE, Ruins, Text, address, call, error_or_escape, refused, tries};
use crate::targets::SECRET;

pub(crate) const ATTEMPTS: &[Attempt] = &[
    Attempt { name: "read a file by its path", ruins: Ruins::Nothing, run: |it| reads(&it.secret) },
    Attempt {
        name: "read a file through /proc/self/root",
        ruins: Ruins::Nothing,
        run: |it| reads(&format!("/proc/self/root{}", it.secret)),
    },
    Attempt {
        name: "read a file through ..",
        ruins: Ruins::Nothing,
        run: |it| reads(&format!("{}/../outside/secret", it.allowed)),
    },
    Attempt {
        name: "read a file through a symbolic link",
        ruins: Ruins::Nothing,
        run: |it| {
            let link = format!("{}/link", it.allowed);
            let _ = symlink(&it.secret, &link);
            reads(&link)
        },
    },
    Attempt {
        name: "read a file through a hard link",
        ruins: Ruins::Nothing,
        run: |it| {
            let link = format!("{}/hard", it.allowed);
            error_or_escape(fs::hard_link(&it.secret, &link), "it was linked")
        },
    },
    Attempt {
        name: "move a file in",
        ruins: Ruins::Nothing,
        run: |it| error_or_escape(fs::rename(&it.secret, format!("{}/in", it.allowed)), "moved"),
    },
    Attempt {
        name: "move a file out",
        ruins: Ruins::Nothing,
        run: |it| {
            let own = format!("{}/own", it.allowed);
            fs::write(&own, "mine").map_err(|error| error.to_string())?;
            error_or_escape(fs::rename(&own, format!("{}/own", it.outside)), "moved")
        },
    },
    Attempt {
        name: "exchange two files",
        ruins: Ruins::Nothing,
        run: |it| {
            let own = format!("{}/own", it.allowed);
            fs::write(&own, "mine").map_err(|error| error.to_string())?;
            let (own, secret) = (Text::new(&own), Text::new(&it.secret));
            tries(libc::SYS_renameat2, [HERE, own.at(), HERE, secret.at(), 2])
        },
    },
    Attempt {
        name: "make a file without a name outside",
        ruins: Ruins::Nothing,
        run: |it| {
            let mut options = fs::OpenOptions::new();
            options.write(true).custom_flags(libc::O_TMPFILE);
            error_or_escape(options.open(&it.outside), "made")
        },
    },
    Attempt {
        name: "make a file outside",
        ruins: Ruins::Nothing,
        run: |it| error_or_escape(fs::write(format!("{}/new", it.outside), "x"), "made"),
    },
    Attempt {
        name: "make a folder outside",
        ruins: Ruins::Nothing,
        run: |it| error_or_escape(fs::create_dir(format!("{}/new", it.outside)), "made"),
    },
    Attempt {
        name: "delete a file",
        ruins: Ruins::Nothing,
        run: |it| error_or_escape(fs::remove_file(&it.secret), "gone"),
    },
    Attempt {
        name: "delete a folder",
        ruins: Ruins::Nothing,
        run: |it| error_or_escape(fs::remove_dir(&it.outside), "gone"),
    },
    Attempt {
        name: "truncate a file by its path",
        ruins: Ruins::Nothing,
        run: |it| tries(libc::SYS_truncate, [Text::new(&it.secret).at(), 0]),
    },
    Attempt {
        name: "truncate a file that may only be read",
        ruins: Ruins::Nothing,
        run: |it| tries(libc::SYS_truncate, [Text::new(&it.readable).at(), 0]),
    },
    Attempt {
        name: "write to a file that may only be read",
        ruins: Ruins::Nothing,
        run: |it| error_or_escape(fs::OpenOptions::new().write(true).open(&it.readable), "opened"),
    },
    Attempt {
        name: "open a file again that was opened as a path",
        ruins: Ruins::Nothing,
        run: |it| {
            let path = Text::new(&it.secret);
            let file = call(libc::SYS_openat, [HERE, path.at(), libc::O_PATH as u64]);
            if file < 0 { refused(file) } else { reads(&format!("/proc/self/fd/{file}")) }
        },
    },
    Attempt {
        name: "read a file relative to a folder that was opened as a path",
        ruins: Ruins::Nothing,
        run: |it| {
            let path = Text::new(&it.outside);
            let folder = call(libc::SYS_openat, [HERE, path.at(), libc::O_PATH as u64]);
            let name = Text::new("secret");
            match u64::try_from(folder) {
                Ok(folder) => tries(libc::SYS_openat, [folder, name.at(), 0]),
                Err(_) => refused(folder),
            }
        },
    },
    Attempt {
        name: "open a file with openat2",
        ruins: Ruins::Nothing,
        run: |it| {
            let (path, how) = (Text::new(&it.secret), [0_u64; 3]);
            tries(libc::SYS_openat2, [HERE, path.at(), address(how.as_ptr()), 24])
        },
    },
    Attempt {
        name: "get a handle of a file",
        ruins: Ruins::Nothing,
        run: |it| {
            let (path, handle, mount) = (Text::new(&it.secret), [128_u32; 40], [0_i32; 1]);
            let arguments = [HERE, path.at(), address(handle.as_ptr()), address(mount.as_ptr()), 0];
            tries(libc::SYS_name_to_handle_at, arguments)
        },
    },
    Attempt {
        name: "open a file by its handle",
        ruins: Ruins::Nothing,
        run: |_| {
            let handle = [8_u32, 1, 2, 3];
            tries(libc::SYS_open_by_handle_at, [HERE, address(handle.as_ptr()), 0])
        },
    },
    Attempt {
        name: "list a folder",
        ruins: Ruins::Nothing,
        run: |it| error_or_escape(fs::read_dir(&it.outside), "listed"),
    },
    Attempt {
        name: "list the root",
        ruins: Ruins::Nothing,
        run: |_| error_or_escape(fs::read_dir("/"), "listed"),
    },
    Attempt { name: "read the passwords", ruins: Ruins::Nothing, run: |_| reads("/etc/shadow") },
    Attempt { name: "read the users", ruins: Ruins::Nothing, run: |_| reads("/etc/passwd") },
    Attempt {
        name: "read our own executable",
        ruins: Ruins::Nothing,
        run: |_| reads("/proc/self/exe"),
    },
    Attempt {
        name: "read the map of our memory",
        ruins: Ruins::Nothing,
        run: |_| reads("/proc/self/maps"),
    },
    Attempt {
        name: "read the host's environment",
        ruins: Ruins::Nothing,
        run: |it| reads(&format!("/proc/{}/environ", it.host)),
    },
    Attempt {
        name: "read the host's memory",
        ruins: Ruins::Nothing,
        run: |it| reads(&format!("/proc/{}/mem", it.host)),
    },
    Attempt {
        name: "map the host's memory",
        ruins: Ruins::Nothing,
        run: |it| reads(&format!("/proc/{}/maps", it.host)),
    },
    Attempt {
        name: "read through the host's root",
        ruins: Ruins::Nothing,
        run: |it| reads(&format!("/proc/{}/root{}", it.host, it.secret)),
    },
    Attempt {
        name: "read through the host's descriptors",
        ruins: Ruins::Nothing,
        run: |it| {
            let found = (0..64).find_map(|number| {
                fs::File::open(format!("/proc/{}/fd/{number}", it.host)).ok().map(|_| number)
            });
            found.map_or(Ok(libc::EACCES), |number| Err(format!("opened descriptor {number}")))
        },
    },
    Attempt {
        name: "read a secret from an inherited descriptor",
        ruins: Ruins::Nothing,
        run: |_| {
            let holder = (0..256_u64).find(|number| {
                let buffer = [0_u8; 4096];
                let read = call(libc::SYS_pread64, [*number, address(buffer.as_ptr()), 4096, 0]);
                read > 0 && String::from_utf8_lossy(&buffer).contains(SECRET)
            });
            holder.map_or(Ok(0), |number| Err(format!("descriptor {number} has it")))
        },
    },
    Attempt {
        name: "see the host's environment in our own",
        ruins: Ruins::Nothing,
        run: |_| {
            let seen: Vec<_> = std::env::vars().map(|(name, _)| name).collect();
            if seen.is_empty() { Ok(0) } else { Err(format!("{seen:?} are set")) }
        },
    },
    Attempt {
        name: "change the mode of a file",
        ruins: Ruins::Nothing,
        run: |it| tries(libc::SYS_fchmodat, [HERE, Text::new(&it.secret).at(), 0o777]),
    },
    Attempt {
        name: "change the owner of a file",
        ruins: Ruins::Nothing,
        run: |it| tries(libc::SYS_fchownat, [HERE, Text::new(&it.secret).at(), 1, 1, 0]),
    },
    Attempt {
        name: "change the times of a file",
        ruins: Ruins::Nothing,
        run: |it| tries(libc::SYS_utimensat, [HERE, Text::new(&it.secret).at(), 0, 0]),
    },
    Attempt {
        name: "give a file an attribute",
        ruins: Ruins::Nothing,
        run: |it| {
            let (path, name) = (Text::new(&it.secret), Text::new("user.x"));
            tries(libc::SYS_setxattr, [path.at(), name.at(), name.at(), 1, 0])
        },
    },
    Attempt {
        name: "watch a file",
        ruins: Ruins::Nothing,
        run: |_| tries(libc::SYS_inotify_init1, [0]),
    },
    Attempt {
        name: "watch a file system",
        ruins: Ruins::Nothing,
        run: |_| tries(libc::SYS_fanotify_init, [0, 0]),
    },
    Attempt {
        name: "make a device",
        ruins: Ruins::Nothing,
        run: |it| {
            let path = Text::new(&format!("{}/disk", it.allowed));
            tries(libc::SYS_mknodat, [HERE, path.at(), u64::from(libc::S_IFBLK), 0x800])
        },
    },
    Attempt { name: "open a device", ruins: Ruins::Nothing, run: |_| reads("/dev/zero") },
    Attempt { name: "open a terminal", ruins: Ruins::Nothing, run: |_| reads("/dev/tty") },
    Attempt { name: "open the null device", ruins: Ruins::Nothing, run: |_| reads("/dev/null") },
    Attempt {
        name: "mount",
        ruins: Ruins::Nothing,
        run: |it| {
            let (what, at) = (Text::new("tmpfs"), Text::new(&it.allowed));
            tries(libc::SYS_mount, [what.at(), at.at(), what.at(), 0, 0])
        },
    },
    Attempt {
        name: "bind a folder to another",
        ruins: Ruins::Nothing,
        run: |it| {
            let (what, at) = (Text::new(&it.outside), Text::new(&it.allowed));
            tries(libc::SYS_mount, [what.at(), at.at(), 0, libc::MS_BIND, 0])
        },
    },
    Attempt {
        name: "unmount",
        ruins: Ruins::Nothing,
        run: |_| tries(libc::SYS_umount2, [Text::new("/proc").at(), 2]),
    },
    Attempt {
        name: "change the root",
        ruins: Ruins::Nothing,
        run: |it| tries(libc::SYS_chroot, [Text::new(&it.allowed).at()]),
    },
    Attempt {
        name: "exchange the root",
        ruins: Ruins::Nothing,
        run: |it| {
            let path = Text::new(&it.allowed);
            tries(libc::SYS_pivot_root, [path.at(), path.at()])
        },
    },
    Attempt {
        name: "open a file system",
        ruins: Ruins::Nothing,
        run: |_| tries(libc::SYS_fsopen, [Text::new("tmpfs").at(), 0]),
    },
    Attempt {
        name: "open a tree of files",
        ruins: Ruins::Nothing,
        run: |it| tries(libc::SYS_open_tree, [HERE, Text::new(&it.outside).at(), 1]),
    },
    Attempt {
        name: "move a mount",
        ruins: Ruins::Nothing,
        run: |_| tries(libc::SYS_move_mount, [HERE, 0, HERE, 0, 0]),
    },
    Attempt {
        name: "swap to a file",
        ruins: Ruins::Nothing,
        run: |it| tries(libc::SYS_swapon, [Text::new(&it.allowed).at(), 0]),
    },
    Attempt {
        name: "keep an account of processes",
        ruins: Ruins::Nothing,
        run: |_| tries(libc::SYS_acct, [0]),
    },
    Attempt {
        name: "fill the disk",
        ruins: Ruins::Nothing,
        run: |it| {
            let mut file =
                fs::File::create(format!("{}/large", it.allowed)).map_err(|e| e.to_string())?;
            let block = vec![0; 1 << 20];
            for _ in 0..1000 {
                file.write_all(&block).map_err(|error| error.to_string())?;
            }
            Err("wrote a gigabyte".to_owned())
        },
    },
    Attempt {
        name: "reserve the disk",
        ruins: Ruins::Nothing,
        run: |it| {
            let file =
                fs::File::create(format!("{}/large", it.allowed)).map_err(|e| e.to_string())?;
            error_or_escape(file.set_len(1 << 40), "it is a terabyte long")
        },
    },
];

/// Tries to read a file.
fn reads(path: &str) -> Result<i32, String> {
    let mut buffer = [0; 16];
    let read = fs::File::open(path).and_then(|mut file| file.read(&mut buffer));
    error_or_escape(read, &format!("read {path}"))
}
