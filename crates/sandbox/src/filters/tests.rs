//! The answers of the filters of all levels, also to calls that the kernel of this machine lacks.

use libc::SECCOMP_RET_ALLOW as ALLOW;

use super::*;
use crate::program::tests::run;

fn levels() -> [Sandbox; 3] {
    [Sandbox::no_network(), Sandbox::read_only(), Sandbox::strict()]
}

/// Returns what a sandbox answers: `Ok`, or the error, which is 0 where the worker ends.
fn answer<const N: usize>(sandbox: &Sandbox, number: i64, given: [i64; N]) -> Result<(), i32> {
    let mut arguments = [0; 6];
    arguments[..N].copy_from_slice(&given.map(i64::cast_unsigned));
    answer_of(&filter(sandbox).unwrap(), number, arguments)
}

fn answer_of(filter: &[u64], number: i64, arguments: [u64; 6]) -> Result<(), i32> {
    let word = run(filter, None, u32::try_from(number).unwrap(), arguments);
    let error = libc::SECCOMP_RET_ERRNO..=libc::SECCOMP_RET_ERRNO | 0xffff;
    match word {
        ALLOW => Ok(()),
        word if error.contains(&word) => Err((word & 0xffff).cast_signed()),
        _ => Err(0),
    }
}

const SIGCHLD: u64 = 0x11;
const OTHER: i64 = 4711;
const OWN_ID: i64 = THIS_PROCESS as i64;
/// The number of a limit.
const CORE_SIZE: i64 = 4;
const POINTER: i64 = 0x1000;

#[test]
fn a_call_that_nobody_knows_does_not_exist() {
    for sandbox in levels() {
        let filter = filter(&sandbox.clone().allow_processes().connect(9)).unwrap();
        let newer = 470..600_i64;
        let of_x32 = (0..600_i64).map(|number| number | 0x4000_0000);
        for number in newer.chain(of_x32) {
            assert_eq!(
                answer_of(&filter, number, [0; 6]),
                Err(libc::ENOSYS),
                "{sandbox:?}: {number}"
            );
        }
    }
}

#[test]
fn no_call_reaches_how_another_process_runs() {
    for sandbox in [Sandbox::read_only(), Sandbox::strict().allow_processes()] {
        let may_itself = sandbox.level == Level::ReadOnly;
        let set = |number, arguments: [i64; 3], own: [i64; 3]| {
            assert!(answer(&sandbox, number, arguments).is_err(), "{sandbox:?}: {number}");
            assert_eq!(answer(&sandbox, number, own).is_ok(), may_itself, "{sandbox:?}: {number}");
        };
        for number in [
            libc::SYS_sched_setaffinity,
            libc::SYS_sched_setattr,
            libc::SYS_sched_setparam,
            libc::SYS_sched_setscheduler,
            libc::SYS_migrate_pages,
            libc::SYS_move_pages,
        ] {
            set(number, [OTHER, POINTER, POINTER], [0, POINTER, POINTER]);
            set(number, [OTHER, POINTER, POINTER], [OWN_ID, POINTER, POINTER]);
        }
        set(libc::SYS_setpriority, [0, OTHER, 19], [0, 0, 19]);
        set(libc::SYS_setpriority, [1, 0, 19], [0, 0, 19]);
        set(libc::SYS_ioprio_set, [1, OTHER, 7], [1, 0, 7]);
        set(libc::SYS_ioprio_set, [3, 0, 7], [1, 0, 7]);
        for (pid, is_own) in [(OTHER, false), (0, true), (OWN_ID, true)] {
            let limit = CORE_SIZE;
            let set = answer(&sandbox, libc::SYS_prlimit64, [pid, limit, POINTER, 0]);
            assert_eq!(set.is_ok(), is_own, "{sandbox:?}: {pid}");
            let read = answer(&sandbox, libc::SYS_prlimit64, [pid, limit, 0, POINTER]);
            assert_eq!(read.is_ok(), is_own || may_itself, "{sandbox:?}: {pid}");
        }
        for number in [
            libc::SYS_process_madvise,
            libc::SYS_process_mrelease,
            libc::SYS_process_vm_writev,
            libc::SYS_pidfd_getfd,
            libc::SYS_ptrace,
        ] {
            assert!(answer(&sandbox, number, [OTHER]).is_err(), "{sandbox:?}: {number}");
        }
    }
}

#[test]
fn no_call_changes_an_attribute_of_a_file() {
    let (setxattrat, removexattrat, file_setattr) = (463, 466, 469);
    for sandbox in [Sandbox::read_only(), Sandbox::strict()] {
        for number in [
            libc::SYS_fchmod,
            libc::SYS_fchmodat,
            libc::SYS_fchown,
            libc::SYS_fchownat,
            libc::SYS_utimensat,
            libc::SYS_setxattr,
            libc::SYS_fsetxattr,
            libc::SYS_removexattr,
            452,
            setxattrat,
            removexattrat,
            file_setattr,
        ] {
            assert!(answer(&sandbox, number, []).is_err(), "{sandbox:?}: {number}");
        }
        // FS_IOC_SETFLAGS, FS_IOC_FSSETXATTR, FS_IOC_ENABLE_VERITY, FS_IOC_SET_ENCRYPTION_POLICY,
        // FAT_IOCTL_SET_ATTRIBUTES, BTRFS_IOC_SUBVOL_CREATE, HFSPLUS_IOC_BLESS,
        // CEPH_IOC_SET_LAYOUT, CIFS_IOC_COPYCHUNK_FILE
        for command in [
            0x4008_6602,
            0x401c_5820,
            0x4080_6685,
            0x800c_6613,
            0x4004_7211,
            0x5000_940e,
            0x6880,
            0x4028_9702,
            0x4004_cf03,
        ] {
            for command in [command, command | 1 << 40] {
                let found = answer(&sandbox, libc::SYS_ioctl, [3, command, POINTER]);
                assert_eq!(found, Err(libc::ENOTTY), "{sandbox:?}: {command:x}");
            }
        }
        let reads = answer(&sandbox, libc::SYS_ioctl, [3, 0x8008_6601, POINTER]);
        assert_eq!(reads.is_ok(), sandbox.level == Level::ReadOnly);
    }
}

#[test]
fn a_user_keeps_the_pages_of_pipes() {
    for sandbox in [Sandbox::read_only(), Sandbox::strict()] {
        let grows = [3, libc::F_SETPIPE_SZ.into(), 1 << 20];
        assert_eq!(answer(&sandbox, libc::SYS_fcntl, grows), Err(libc::EPERM));
        assert_eq!(answer(&sandbox, libc::SYS_fcntl, [3, libc::F_GETFL.into()]), Ok(()));
    }
}

#[test]
fn no_port_is_reached_around_those_that_are_allowed() {
    let fast = i64::from(libc::MSG_FASTOPEN);
    for sandbox in levels() {
        let sandbox = sandbox.connect(9);
        for (number, arguments) in [
            (libc::SYS_sendto, [3, POINTER, 1, fast, POINTER, 16]),
            (libc::SYS_sendto, [3, POINTER, 1, fast, 0, 0]),
            (libc::SYS_sendmsg, [3, POINTER, fast, 0, 0, 0]),
            (libc::SYS_sendmmsg, [3, POINTER, 1, fast, 0, 0]),
            (libc::SYS_listen, [3, 1, 0, 0, 0, 0]),
            (libc::SYS_setsockopt, [3, libc::IPPROTO_TCP.into(), 31, POINTER, 3, 0]),
        ] {
            assert!(answer(&sandbox, number, arguments).is_err(), "{sandbox:?}: {number}");
        }
        assert_eq!(answer(&sandbox, libc::SYS_connect, [3]), Ok(()));
        assert_eq!(answer(&sandbox, libc::SYS_sendto, [3, POINTER, 1, 0, 0, 0]), Ok(()));
    }
    let server = Sandbox::read_only();
    assert_eq!(answer(&server, libc::SYS_listen, [3, 1]), Ok(()), "of this machine");
}

#[test]
fn what_a_process_starts_is_its_own() {
    let thread = THREAD | u64::from((libc::CLONE_SIGHAND | libc::CLONE_SYSVSEM).cast_unsigned());
    for sandbox in [Sandbox::read_only(), Sandbox::strict(), Sandbox::strict().allow_processes()] {
        let clone = |flags: u64| answer(&sandbox, libc::SYS_clone, [flags.cast_signed()]);
        assert_eq!(clone(thread), Ok(()));
        for flag in NAMESPACES.into_iter().chain([libc::CLONE_PARENT]) {
            let flag = u64::from(flag.cast_unsigned());
            assert!(clone(thread | flag).is_err() && clone(flag | SIGCHLD).is_err(), "{sandbox:?}");
        }
        assert_eq!(clone(SIGCHLD).is_ok(), sandbox.processes);
    }
    for missing in [libc::CLONE_FILES, libc::CLONE_FS, libc::CLONE_VM, libc::CLONE_THREAD] {
        let flags = thread & !u64::from(missing.cast_unsigned());
        assert!(answer(&Sandbox::strict(), libc::SYS_clone, [flags.cast_signed()]).is_err());
    }
    let unshare = libc::CLOSE_RANGE_UNSHARE.into();
    let own_table = answer(&Sandbox::strict(), libc::SYS_close_range, [900, 900, unshare]);
    assert_eq!(own_table, Err(libc::EINVAL));
    assert_eq!(answer(&Sandbox::strict(), libc::SYS_close_range, [3, 9, 4]), Ok(()));
}

#[test]
fn strict_answers_as_file_systems_and_users_do() {
    let sandbox = Sandbox::strict();
    for (number, arguments, error) in [
        (libc::SYS_lgetxattr, [POINTER, POINTER, 0], libc::EOPNOTSUPP),
        (libc::SYS_fsetxattr, [3, POINTER, POINTER], libc::EOPNOTSUPP),
        (libc::SYS_fchown, [3, 1, 1], libc::EPERM),
        (libc::SYS_fchmod, [3, 0o644, 0], libc::EPERM),
        (libc::SYS_utimensat, [3, 0, 0], libc::EPERM),
        (libc::SYS_setpriority, [0, 0, 5], libc::EPERM),
        (libc::SYS_ioctl, [1, 0x5401, POINTER], libc::ENOTTY),
    ] {
        assert_eq!(answer(&sandbox, number, arguments), Err(error), "{number}");
    }
    let limits = |limit| [0, limit, POINTER, 0];
    let core = answer(&sandbox, libc::SYS_prlimit64, limits(CORE_SIZE));
    assert_eq!(core, Ok(()), "the sandbox has made the highest limit the current one");
    let data = answer(&sandbox, libc::SYS_prlimit64, limits(RLIMIT_DATA.into()));
    assert_eq!(data, Err(libc::EPERM), "the host changes it");
    assert_eq!(answer(&sandbox, libc::SYS_setresuid, [-1, 0, -1]), Ok(()), "its own id");
}

#[test]
fn the_host_cannot_be_asked_for_its_descriptor() {
    let asks = |option: i32| [3, libc::SOL_SOCKET.into(), option.into(), POINTER, POINTER];
    let sandbox = Sandbox::strict();
    assert!(answer(&sandbox, libc::SYS_getsockopt, asks(77)).is_err());
    assert_eq!(answer(&sandbox, libc::SYS_getsockopt, asks(libc::SO_TYPE)), Ok(()));
}

#[test]
fn a_star_stands_where_arguments_decide() {
    let mut found = [false; 3].map(|_| std::collections::BTreeSet::new());
    for (sandbox, found) in levels().into_iter().zip(&mut found) {
        for sandbox in [sandbox.clone().connect(9), sandbox] {
            let mut rules = KnownCalls::of_table(&sandbox);
            rules.add(&sandbox);
            let matters = |call: &Call| call.rules.iter().any(|(_, it)| *it != call.otherwise);
            let decided = rules.calls.iter().filter(|(_, call)| matters(call));
            found.extend(decided.map(|(number, _)| *number));
        }
    }
    for line in table().iter().filter(|line| line.number.is_some()) {
        for (level, word) in line.answers.iter().enumerate() {
            let is_decided = line.number.is_some_and(|number| found[level].contains(&number));
            assert_eq!(word.ends_with('*'), is_decided, "{line:?}");
        }
    }
}
