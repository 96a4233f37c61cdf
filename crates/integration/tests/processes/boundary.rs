//! The boundary around a worker in a sandbox: what it shares with its host and with other workers,
//! and what its host reads of it.

use std::collections::BTreeSet;
use std::ffi::CString;
use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc;
use std::thread;

use brigade::{Link, Pool, PoolBuilder, Sandbox, Start, Stdio};
use brigade_integration::{Helper, builder, square};
use brigade_testkit::{BOUND, outcome, processes, wait_or_explain};
use brigade_testkit_sys::misdeeds;

/// Returns the open descriptors of a process, with what they lead to.
fn descriptors(process: u32) -> Vec<(u64, String)> {
    let entries = fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let target = |number: u64| fs::read_link(format!("/proc/{process}/fd/{number}"));
    numbers.map(|it| (it, target(it).unwrap_or_default().display().to_string())).collect()
}

/// Returns `true` if two descriptors of processes are of the same open file.
fn are_same((one, first): (u32, u64), (other, second): (u32, u64)) -> bool {
    const FILE: u64 = 0;
    let arguments = [one.into(), other.into(), FILE, first, second, 0];
    match misdeeds::system_call(libc::SYS_kcmp, arguments) {
        // One of them was closed, or a process has ended.
        error if [libc::EBADF, libc::ESRCH].map(|it| -i64::from(it)).contains(&error) => false,
        result => {
            assert!(result >= 0, "kcmp: {result}");
            result == 0
        }
    }
}

/// The open files that each worker shares with its host alone, by design: its table of states with
/// its rings, the bells that it rings, which the host only waits for, and over ipc the end of its
/// link, which the host only shuts.
const PRIVATE: [&str; 3] = ["/memfd:brigade (deleted)", "anon_inode:[eventfd]", "socket:["];

/// Returns what the workers of a pool share with any other process, as open files.
fn shared_by_workers(pool: &Pool) -> BTreeSet<String> {
    let workers = pool.worker_pids();
    let host = std::process::id();
    let others: Vec<_> = processes::children().into_iter().chain([host]).collect();
    // A worker that runs each task in a copy of itself is one with its copies.
    let name = |process: u32| fs::read_to_string(format!("/proc/{process}/comm"));
    let mut shared = BTreeSet::new();
    for worker in workers {
        for (descriptor, target) in descriptors(worker) {
            for other in others.iter().filter(|it| **it != worker) {
                let is_host = *other == host;
                let is_copy = !is_host && name(*other).ok() == name(worker).ok();
                let is_private = is_host && PRIVATE.iter().any(|it| target.starts_with(it));
                let found = descriptors(*other);
                let mut found = found.iter().filter(|(number, there)| {
                    *there == target && are_same((worker, descriptor), (*other, *number))
                });
                if let Some((number, _)) = found.next().filter(|_| !is_copy && !is_private) {
                    let who = if is_host { "host" } else { "other" };
                    shared.insert(format!("{descriptor} ({target}): {number} of {who}"));
                }
            }
        }
    }
    shared
}

/// Returns pools in a sandbox, started in each way.
fn pools(sandbox: &Sandbox) -> Vec<(&'static str, PoolBuilder)> {
    let pool = || builder(2).sandbox(sandbox.clone());
    let exec = || pool().start(Start::Exec);
    vec![
        ("executed", exec()),
        ("over ipc", exec().link(Link::Ipc)),
        ("discarding", exec().stdio(Stdio::Null)),
        ("capturing", exec().stdio(Stdio::Capture)),
        ("forked", pool().start(Start::Fork)),
        ("forked over ipc", pool().start(Start::Fork).link(Link::Ipc)),
        ("copied", exec().fresh_process_per_task()),
        ("forked and copied", pool().start(Start::Fork).fresh_process_per_task()),
        ("initialized", exec().initializer(|(): ()| (), ())),
        ("forwarding", exec().forward_events(tracing::Level::INFO)),
    ]
}

#[test]
fn a_worker_in_a_sandbox_shares_no_open_file() {
    for sandbox in [Sandbox::strict(), Sandbox::read_only(), Sandbox::no_network()] {
        for (how, pool) in pools(&sandbox) {
            let pool = pool.build().unwrap();
            pool.warm_up().unwrap();
            assert_eq!(outcome(pool.submit(square, 3).unwrap()).unwrap(), 9);
            // The rules for files are shared until a worker has entered its sandbox.
            let shared = || shared_by_workers(&pool);
            let explain = || format!("{sandbox:?}, {how}: {:#?}", shared());
            let is_alone = || shared().is_empty().then_some(());
            wait_or_explain("workers that share nothing", BOUND, is_alone, explain);
        }
    }
}

/// Opens all that this process has open once more, and writes to it.
fn opens_again((): ()) {
    for number in 0..64 {
        let path = format!("/proc/self/fd/{number}");
        let file = fs::File::options().write(true).custom_flags(libc::O_NONBLOCK).open(path);
        let _ = file.and_then(|mut file| file.write(b"x"));
    }
}

#[test]
fn a_worker_reaches_no_other_through_its_own_descriptors() {
    for sandbox in [Sandbox::strict(), Sandbox::read_only(), Sandbox::no_network()] {
        for isolated in [sandbox.clone(), sandbox.isolate()] {
            let pool = builder(2).sandbox(isolated).stdio(Stdio::Null).build().unwrap();
            pool.warm_up().unwrap();
            let sleeping = pool.submit(brigade_testkit::faults::sleeps, 300).unwrap();
            // It may harm its own worker.
            let _ = outcome(pool.submit(opens_again, ()).unwrap());
            assert_eq!(outcome(sleeping).unwrap(), 300);
        }
    }
}

#[test]
fn the_output_of_a_sandbox_reaches_the_host_whole() {
    let output = Helper::new(env!("CARGO_BIN_EXE_host")).argument("print-sandboxed").output();
    assert!(output.status.success());
    assert_eq!((output.stdout.len(), output.stderr.len()), (1 << 20, 1 << 20));
}

/// Compiles a library whose debug information is in another file, which it names, and returns the
/// path of both.
fn split_library(folder: &Path) -> (PathBuf, PathBuf) {
    let source = "unsigned long decode(unsigned long p) { return *(volatile char *)p + 1; }\n";
    fs::write(folder.join("evil.c"), source).unwrap();
    let compile = |arguments: &[&str]| {
        let status = Command::new("cc").current_dir(folder).args(arguments).status();
        assert!(status.unwrap().success());
    };
    compile(&["-c", "-g", "-gsplit-dwarf", "-fPIC", "-o", "evil.o", "evil.c"]);
    compile(&["-shared", "-o", "libevil.so", "evil.o"]);
    (folder.join("libevil.so"), folder.join("evil.dwo"))
}

fn calls(library: PathBuf) -> u64 {
    let library = CString::new(library.into_os_string().into_encoded_bytes()).unwrap();
    misdeeds::call_library(&library, c"decode", 8).unwrap()
}

/// Crashes a worker in the library, and returns what its host says about it. Fails if the host does
/// not come back, after a writer has released it from a pipe.
fn report(pool: &Pool, library: &Path, pipe: &Path) -> String {
    let error = outcome(pool.submit(calls, library.to_owned()).unwrap()).unwrap_err();
    let (send, receive) = mpsc::channel();
    thread::spawn(move || send.send(format!("{error:#}")));
    receive.recv_timeout(BOUND).unwrap_or_else(|_| {
        drop(fs::File::options().write(true).open(pipe));
        panic!("the host waits for a pipe that a worker has named");
    })
}

#[test]
fn a_file_that_a_module_names_is_not_opened() {
    let folder = tempfile::tempdir().unwrap();
    let (library, other) = split_library(folder.path());
    fs::remove_file(&other).unwrap();
    assert!(Command::new("mkfifo").arg(&other).status().unwrap().success());
    for sandbox in [Some(Sandbox::strict().write(folder.path())), None] {
        let pool = match sandbox.clone() {
            Some(sandbox) => builder(1).sandbox(sandbox),
            None => builder(1),
        };
        let text = report(&pool.build().unwrap(), &library, &other);
        assert!(text.contains("libevil.so + 0x"), "{text}");
        assert_eq!(text.contains("decode"), sandbox.is_none(), "{text}");
    }
}

#[test]
fn a_module_that_a_sandbox_could_have_written_is_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let (library, _) = split_library(folder.path());
    let pool = builder(1).sandbox(Sandbox::strict().write(folder.path())).build().unwrap();
    let text = report(&pool, &library, Path::new("/"));
    assert!(text.contains("libevil.so + 0x") && !text.contains("evil.c"), "{text}");
    // The program itself is named as ever.
    let error = outcome(pool.submit(brigade_testkit::faults::aborts, ()).unwrap()).unwrap_err();
    assert!(format!("{error:#}").contains("endings::aborts"), "{error:#}");
}

/// Returns the capabilities that this process has, and could take.
fn capabilities((): ()) -> Vec<String> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let lines =
        status.lines().filter(|line| line.starts_with("CapEff") || line.starts_with("CapPrm"));
    lines.filter_map(|line| line.split_whitespace().nth(1).map(str::to_owned)).collect()
}

#[test]
fn root_writes_over_no_mode_where_nothing_may_be_written() {
    const DAC_OVERRIDE: u64 = 1 << 1;
    let folder = tempfile::tempdir().unwrap();
    let may = |sandbox: Sandbox| {
        let pool = builder(1).sandbox(sandbox).build().unwrap();
        let sets = outcome(pool.submit(capabilities, ()).unwrap()).unwrap();
        assert_eq!(sets.len(), 2);
        sets.iter().any(|it| u64::from_str_radix(it, 16).unwrap() & DAC_OVERRIDE != 0)
    };
    let is_root = fs::metadata("/proc/self").unwrap().uid() == 0;
    assert!(!may(Sandbox::read_only()));
    assert!(!may(Sandbox::strict().read("/proc")));
    assert_eq!(may(Sandbox::read_only().write(folder.path())), is_root);
}

/// Sets the current limit of this process. Returns the error of the system, or 0.
fn limits((number, current): (u32, u64)) -> i64 {
    let limits = [current, current];
    let at = limits.as_ptr().expose_provenance() as u64;
    misdeeds::system_call(libc::SYS_prlimit64, [0, number.into(), at, 0, 0, 0])
}

#[test]
fn a_strict_sandbox_lets_limits_fall_and_not_rise() {
    let [file_size, core, open_files, nice] = [1, 4, 7, 13];
    let pool = builder(1).sandbox(Sandbox::strict()).build().unwrap();
    let set = |number, current| outcome(pool.submit(limits, (number, current)).unwrap()).unwrap();
    let refused = -i64::from(libc::EPERM);
    assert_eq!(set(core, 0), 0);
    assert_eq!(set(core, 1), refused);
    assert_eq!(set(open_files, 30), 0);
    assert_eq!(set(open_files, 31), refused);
    assert_eq!(set(file_size, 1 << 20), 0);
    assert_eq!(set(nice, 40), refused);
}

/// Makes timers until there are no more. Returns their number.
fn makes_timers((): ()) -> u64 {
    let mut event = [0_u64; 8];
    // No signal: SIGEV_NONE.
    event[1] = 1 << 32;
    let (at, id) = (event.as_ptr().expose_provenance() as u64, [0_u64; 1]);
    let id = id.as_ptr().expose_provenance() as u64;
    let make = |_: &u64| misdeeds::system_call(libc::SYS_timer_create, [1, at, id, 0, 0, 0]) == 0;
    (0..u64::MAX).take_while(make).count() as u64
}

#[test]
fn a_worker_leaves_timers_to_its_user() {
    const SIGNALS: &str = "Max pending signals";
    let limits = fs::read_to_string("/proc/self/limits").unwrap();
    let line = limits.lines().find_map(|line| line.strip_prefix(SIGNALS)).unwrap();
    let Ok(all) = line.split_whitespace().next().unwrap().parse::<u64>() else { return };
    let pool = builder(1).sandbox(Sandbox::strict()).build().unwrap();
    let made = outcome(pool.submit(makes_timers, ()).unwrap()).unwrap();
    assert!(made <= all / 2, "{made} of {all}");
}
