//! Sandboxes on kernels whose Landlock has an older interface, or none, or that have no filters.
//!
//! A filter of system calls hands those by which a process learns what its kernel has to another
//! thread, which answers as such a kernel does. It holds for the thread that installs it, and for
//! what that starts.

use std::fs;
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as LocalAddr, UnixListener, UnixStream};
use std::sync::mpsc;
use std::thread;

use brigade::{Hold, Layer, Pool, Sandbox};
use brigade_integration::builder;
use brigade_sys::confine::landlock_version;
use brigade_testkit::outcome;
use brigade_testkit_sys::misdeeds::system_call;

/// Returns the kernels with all interfaces of Landlock that a sandbox makes use of.
fn kernels() -> impl Iterator<Item = Kernel> {
    let versions = 0..=landlock_version().min(6);
    versions.map(|landlock| Kernel { landlock, filters: true })
}

/// A simulated kernel, by what it has.
#[derive(Debug, Clone, Copy)]
struct Kernel {
    /// The interface of Landlock; 0 for none.
    landlock: u32,
    /// It has filters of system calls.
    filters: bool,
}

impl Kernel {
    /// Runs a function on this kernel.
    fn run(self, act: impl FnOnce() + Send) {
        let (sender, receiver) = mpsc::channel();
        // It has to start without the filter.
        thread::spawn(move || self.answer_all(receiver.recv().unwrap()));
        thread::scope(|scope| {
            let on_it = move || {
                sender.send(self.install()).unwrap();
                act();
            };
            scope.spawn(on_it).join().unwrap();
        });
    }

    /// Installs the filter. Returns the descriptor at which the calls arrive.
    fn install(self) -> u64 {
        let word =
            |code: u16, jf: u8, k: u32| u64::from(code) | u64::from(jf) << 24 | u64::from(k) << 32;
        let (load, equal, end) = (0x20, 0x15, 0x06);
        let mut program = vec![
            word(load, 0, 0),
            word(equal, 1, u32::try_from(libc::SYS_landlock_create_ruleset).unwrap()),
            word(end, 0, libc::SECCOMP_RET_USER_NOTIF),
        ];
        if !self.filters {
            let refusal = libc::SECCOMP_RET_ERRNO | libc::ENOSYS.cast_unsigned();
            program.push(word(equal, 1, u32::try_from(libc::SYS_seccomp).unwrap()));
            program.push(word(end, 0, refusal));
        }
        program.push(word(end, 0, libc::SECCOMP_RET_ALLOW));
        let mut filter = [program.len() as u64, address(&mut program)];
        rustix::thread::set_no_new_privs(true).unwrap();
        let mode = u64::from(libc::SECCOMP_SET_MODE_FILTER);
        let flags = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
        call(libc::SYS_seccomp, [mode, flags, address(&mut filter)])
    }

    /// Answers until the process ends.
    fn answer_all(self, listener: u64) {
        // SECCOMP_IOCTL_NOTIF_RECV and _SEND, whose type depends on the C library.
        let (receive, send) = (0xc050_2100, 0xc018_2101);
        loop {
            // A `seccomp_notif`: its id, the thread, call and place, and the arguments.
            let mut asked = [0; 10];
            if system_call(libc::SYS_ioctl, [listener, receive, address(&mut asked), 0, 0, 0]) < 0 {
                continue;
            }
            let [id, thread, _, _, attributes, size, flags, ..] = asked;
            let (value, error, proceeds) =
                self.answer(thread & 0xffff_ffff, attributes, size, flags);
            let error = u64::from((-error).cast_unsigned());
            let mut answer = [id, value.into(), error | u64::from(proceeds) << 32];
            // Its thread may have been killed meanwhile.
            system_call(libc::SYS_ioctl, [listener, send, address(&mut answer), 0, 0, 0]);
        }
    }

    /// Returns the answer to `landlock_create_ruleset`: a value, or an error, or that the call is
    /// for the real kernel.
    fn answer(self, thread: u64, attributes: u64, size: u64, flags: u64) -> (u32, i32, bool) {
        const VERSION: u64 = 1;
        // How many rights it has on files and on networks, and how many scopes (landlock(7)).
        let known = match self.landlock {
            0 | 1 => [13, 0, 0],
            2 => [14, 0, 0],
            3 => [15, 0, 0],
            4 => [15, 2, 0],
            5 => [16, 2, 0],
            _ => [16, 2, 2],
        };
        if self.landlock == 0 {
            return (0, libc::EOPNOTSUPP, false);
        }
        if flags == VERSION {
            return (self.landlock, 0, false);
        }
        let mut handled = [0_u64; 3];
        let (mut from, mut to) = ([attributes, size.min(24)], [address(&mut handled), 24]);
        let (from, to) = (address(&mut from), address(&mut to));
        call(libc::SYS_process_vm_readv, [thread, to, 1, from, 1, 0]);
        if handled.into_iter().zip(known).any(|(rights, known)| rights >> known != 0) {
            return (0, libc::EINVAL, false);
        }
        (0, 0, true)
    }
}

/// Returns an address to which a system call may write.
pub(crate) fn address<T>(memory: &mut [T]) -> u64 {
    memory.as_mut_ptr().expose_provenance() as u64
}

fn call<const N: usize>(number: i64, arguments: [u64; N]) -> u64 {
    let mut all = [0; 6];
    all[..N].copy_from_slice(&arguments);
    let result = system_call(number, all);
    u64::try_from(result).unwrap_or_else(|_| panic!("call {number} returned {result}"))
}

#[test]
fn what_a_kernel_lacks_is_an_error_of_build() {
    let (no_network, read_only, strict) =
        (Sandbox::no_network(), Sandbox::read_only(), Sandbox::strict());
    let (files, network, processes) = (("files", 3), ("network", 4), ("other processes", 6));
    let cases = [
        (no_network.clone(), vec![]),
        (no_network.connect(9), vec![network]),
        (read_only.clone(), vec![files, processes]),
        (read_only.connect(9), vec![files, network, processes]),
        (strict.clone(), vec![files]),
        (strict.clone().connect(9), vec![files, network]),
        (strict.allow_processes(), vec![files, processes]),
    ];
    for kernel in kernels() {
        kernel.run(|| {
            for (sandbox, needed) in &cases {
                let error = builder(1).sandbox(sandbox.clone()).build().err();
                let error = error.map(|error| error.to_string()).unwrap_or_default();
                for (layer, least) in needed {
                    let is_named = error.contains(&format!("{layer} ("));
                    assert_eq!(is_named, kernel.landlock < *least, "{kernel:?}: {error}");
                }
                let is_built = needed.iter().all(|(_, least)| kernel.landlock >= *least);
                assert_eq!(error.is_empty(), is_built, "{kernel:?}, {sandbox:?}: {error}");
            }
        });
    }
}

#[test]
fn a_kernel_without_filters_is_an_error_of_build() {
    let kernel = Kernel { landlock: landlock_version().min(6), filters: false };
    kernel.run(|| {
        for sandbox in [Sandbox::no_network(), Sandbox::read_only(), Sandbox::strict()] {
            let error = builder(1).sandbox(sandbox.clone()).build().unwrap_err().to_string();
            assert!(error.contains("system calls (") && error.contains("network ("), "{error}");
            let pool = builder(1).sandbox(sandbox.best_effort()).build().unwrap();
            assert!(can(&pool, makes_a_socket, ()));
            let layers = [Layer::Calls, Layer::Network, Layer::Processes];
            assert!(!layers.iter().any(|layer| is_enforced(&pool, *layer)));
        }
    });
}

#[test]
fn a_report_says_what_an_older_kernel_leaves_open() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    let path = || file.display().to_string();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let name = format!("brigade-{}", std::process::id());
    let _local = UnixListener::bind_addr(&LocalAddr::from_abstract_name(&name).unwrap()).unwrap();
    for kernel in kernels() {
        let Kernel { landlock, .. } = kernel;
        kernel.run(|| {
            let pool =
                |sandbox: Sandbox| builder(1).sandbox(sandbox.best_effort()).build().unwrap();
            fs::write(&file, "text").unwrap();

            let strict = pool(Sandbox::strict());
            assert_eq!(can(&strict, reads, path()), landlock < 1, "{kernel:?}");
            assert_eq!(can(&strict, truncates, path()), landlock < 3, "{kernel:?}");
            assert_eq!(is_enforced(&strict, Layer::Files), landlock >= 3, "{kernel:?}");
            assert!(is_enforced(&strict, Layer::Processes) && is_enforced(&strict, Layer::Network));

            let read_only = pool(Sandbox::read_only());
            assert_eq!(can(&read_only, truncates, path()), landlock < 3, "{kernel:?}");
            assert_eq!(is_enforced(&read_only, Layer::Files), landlock >= 3, "{kernel:?}");
            let finds = can(&read_only, finds_process, std::process::id());
            assert_eq!(finds, landlock < 6, "{kernel:?}");
            assert_eq!(is_enforced(&read_only, Layer::Processes), !finds, "{kernel:?}");

            let no_network = pool(Sandbox::no_network().connect(9));
            assert_eq!(can(&no_network, connects, port), landlock < 4, "{kernel:?}");
            let finds = can(&no_network, connects_by_name, name.clone());
            assert_eq!(finds, landlock < 6, "{kernel:?}");
            assert_eq!(is_enforced(&no_network, Layer::Network), !finds, "{kernel:?}");
        });
    }
}

#[test]
fn each_row_of_the_levels_has_a_layer_in_the_report() {
    let document = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/sandbox.md");
    let document = fs::read_to_string(document).unwrap();
    let is_row = |line: &&str| line.ends_with(" yes |") || line.ends_with("| yes | | |");
    let rows = document.lines().skip_while(|line| !line.starts_with("| forbidden | by |"));
    let rows: Vec<Vec<&str>> = rows
        .skip(2)
        .take_while(|line| line.starts_with('|'))
        .inspect(|line| assert!(is_row(line), "{line}"))
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect();
    assert!(rows.len() > 15);
    let newest = landlock_version().min(6);
    for kernel in kernels().chain([Kernel { landlock: newest, filters: false }]) {
        kernel.run(|| {
            let levels = [Sandbox::no_network(), Sandbox::read_only(), Sandbox::strict()];
            for (level, sandbox) in levels.into_iter().enumerate() {
                // With a port, networks are closed in all the ways of the table.
                let pool = builder(1).sandbox(sandbox.connect(9).best_effort()).build().unwrap();
                let report = pool.sandbox_report().to_string();
                for row in rows.iter().filter(|row| row[3 + level] == "yes") {
                    let [what, means, layer, ..] = row[..] else { panic!("{row:?}") };
                    let line = report.lines().find(|line| line.starts_with(&format!("{layer}:")));
                    let line = line.unwrap_or_else(|| panic!("{what}: {report}"));
                    let lacks = match means.strip_prefix("Landlock ") {
                        Some(rest) => {
                            let is_filtered = level == 2 && rest.contains("seccomp");
                            let least: u32 = rest[..1].parse().unwrap();
                            kernel.landlock < least && !(is_filtered && kernel.filters)
                        }
                        None => means.starts_with("seccomp") && !kernel.filters,
                    };
                    let says = line.contains("NOT ENFORCED") || line.contains("in part");
                    assert!(says || !lacks, "{kernel:?}, {what}: {report}");
                }
            }
        });
    }
}

/// Returns whether a task can do what it tries.
fn can<A>(pool: &Pool, task: impl Fn(A) -> bool + Copy + Send + 'static, argument: A) -> bool
where
    A: serde::Serialize + serde::de::DeserializeOwned + Send + 'static,
{
    outcome(pool.submit(task, argument).unwrap()).unwrap()
}

fn is_enforced(pool: &Pool, layer: Layer) -> bool {
    matches!(pool.sandbox_report().get(layer), Some(Hold::Enforced(_)))
}

fn reads(path: String) -> bool {
    fs::read(path).is_ok()
}

/// Cuts off a file by its name, for which no right to write to it is asked.
fn truncates(path: String) -> bool {
    let mut path = path.into_bytes();
    path.push(0);
    system_call(libc::SYS_truncate, [address(&mut path), 0, 0, 0, 0, 0]) == 0
}

fn connects(port: u16) -> bool {
    TcpStream::connect(SocketAddr::from(([127, 0, 0, 1], port))).is_ok()
}

fn makes_a_socket((): ()) -> bool {
    UdpSocket::bind("127.0.0.1:0").is_ok()
}

fn finds_process(pid: u32) -> bool {
    let pid = rustix::process::Pid::from_raw(pid.cast_signed()).unwrap();
    rustix::process::test_kill_process(pid).is_ok()
}

fn connects_by_name(name: String) -> bool {
    LocalAddr::from_abstract_name(name).and_then(|it| UnixStream::connect_addr(&it)).is_ok()
}
