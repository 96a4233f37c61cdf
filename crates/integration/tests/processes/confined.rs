//! Sandboxes of pools: what each level forbids and allows, and what is said about it.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use brigade::{
    Hold, Layer, Link, Pool, PoolBuilder, Sandbox, SharedBuf, Start, TaskError, TaskErrorKind,
};
use brigade_integration::{Log, builder, square};
use brigade_testkit::outcome;

fn links() -> [Link; 2] {
    [Link::Ring, Link::Ipc]
}

fn reads(path: String) -> Option<String> {
    fs::read_to_string(path).ok()
}

fn writes(path: String) -> bool {
    fs::write(path, "new").is_ok()
}

fn connects(port: u16) -> bool {
    TcpStream::connect(("127.0.0.1", port)).is_ok()
}

fn uses_devices((): ()) -> bool {
    let random = fs::File::open("/dev/urandom").and_then(|mut it| it.read_exact(&mut [0; 8]));
    random.is_ok() && fs::write("/dev/null", "text").is_ok()
}

fn sends_a_packet((): ()) -> bool {
    UdpSocket::bind("127.0.0.1:0").is_ok()
}

fn runs_a_program((): ()) -> bool {
    Command::new("true").status().is_ok_and(|status| status.success())
}

fn talks_to_itself((): ()) -> bool {
    let Ok((mut one, other)) = UnixStream::pair() else { return false };
    let write = thread::spawn(move || one.write_all(b"hello").is_ok());
    let mut bytes = [0; 5];
    let read = (&other).read_exact(&mut bytes).is_ok();
    write.join().is_ok_and(|written| written) && read
}

fn variables((): ()) -> Vec<String> {
    std::env::vars().map(|(name, _)| name).collect()
}

fn denied(error: &TaskError) -> &'static str {
    assert!(error.is_denied(), "{error}");
    match *error.kind() {
        TaskErrorKind::Denied { call, .. } => call,
        _ => unreachable!("{error}"),
    }
}

fn run<A, R>(
    pool: &Pool,
    function: impl Fn(A) -> R + Copy + Send + 'static,
    argument: A,
) -> Result<R, TaskError>
where
    A: serde::Serialize + serde::de::DeserializeOwned + Send + 'static,
    R: serde::Serialize + serde::de::DeserializeOwned + std::fmt::Debug + Send + 'static,
{
    outcome(pool.submit(function, argument).unwrap())
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

#[test]
fn no_network_forbids_networks_and_nothing_else() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let folder = tempfile::tempdir().unwrap();
    for link in links() {
        let pool = builder(1).link(link).sandbox(Sandbox::no_network()).build().unwrap();
        assert_eq!(denied(&run(&pool, connects, port).unwrap_err()), "socket");
        let task = pool.task(sends_a_packet).retries(3).submit(()).unwrap();
        let error = outcome(task).unwrap_err();
        assert_eq!((denied(&error), error.attempt()), ("socket", 1), "it would be denied again");
        assert!(run(&pool, writes, text(&folder.path().join("new"))).unwrap());
        assert!(run(&pool, runs_a_program, ()).unwrap());
        assert!(run(&pool, talks_to_itself, ()).unwrap());
    }
}

#[test]
fn read_only_forbids_changes_and_networks() {
    let folder = tempfile::tempdir().unwrap();
    let (open, closed) = (folder.path().join("open"), folder.path().join("closed"));
    fs::create_dir(&open).unwrap();
    fs::write(&closed, "old").unwrap();
    for link in links() {
        let sandbox = Sandbox::read_only().write(&open);
        let pool = builder(1).link(link).sandbox(sandbox).build().unwrap();
        assert_eq!(run(&pool, reads, text(&closed)).unwrap().as_deref(), Some("old"));
        assert!(!run(&pool, writes, text(&closed)).unwrap());
        assert!(run(&pool, writes, text(&open.join("new"))).unwrap());
        assert_eq!(denied(&run(&pool, sends_a_packet, ()).unwrap_err()), "socket");
        assert!(run(&pool, runs_a_program, ()).unwrap());
    }
}

#[test]
fn strict_allows_what_was_allowed_and_nothing_else() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (folder.path().join("in"), folder.path().join("out"));
    fs::create_dir(&output).unwrap();
    fs::write(&input, "input").unwrap();
    for link in links() {
        let sandbox = Sandbox::strict().read(&input).write(&output).connect(port);
        let pool = builder(1).link(link).sandbox(sandbox).build().unwrap();
        assert_eq!(run(&pool, reads, text(&input)).unwrap().as_deref(), Some("input"));
        assert!(!run(&pool, writes, text(&input)).unwrap());
        assert!(run(&pool, writes, text(&output.join("new"))).unwrap());
        assert_eq!(run(&pool, reads, "/etc/passwd".to_owned()).unwrap(), None);
        assert!(run(&pool, uses_devices, ()).unwrap());
        assert!(run(&pool, connects, port).unwrap());
        assert!(!run(&pool, connects, other.local_addr().unwrap().port()).unwrap());
        assert!(!run(&pool, sends_a_packet, ()).unwrap(), "an error");
        assert!(run(&pool, runs_a_program, ()).unwrap_err().is_denied());
        assert!(run(&pool, talks_to_itself, ()).unwrap(), "threads and pairs of sockets");
    }
}

#[test]
fn strict_allows_threads_unless_they_are_denied() {
    for (sandbox, allowed) in [(Sandbox::strict(), true), (Sandbox::strict().deny_threads(), false)]
    {
        let pool = builder(1).sandbox(sandbox).build().unwrap();
        match run(&pool, talks_to_itself, ()) {
            Ok(talked) => assert!(talked && allowed),
            // The C library blocks signals around that call, so nobody learns its name.
            Err(error) => assert!(!allowed && error.is_denied(), "{error}"),
        }
    }
}

#[test]
fn a_strict_worker_finds_a_name_in_the_files_that_it_may_read() {
    fn connects_by_name(port: u16) -> Result<(), String> {
        let stream = TcpStream::connect(("localhost", port));
        stream.map(drop).map_err(|error| error.to_string())
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let files = ["/etc/hosts", "/etc/nsswitch.conf", "/etc/resolv.conf", "/etc/host.conf"];
    let files = files.into_iter().filter(|file| Path::new(file).exists());
    let sandbox = files.fold(Sandbox::strict(), Sandbox::read).connect(port);
    let pool = builder(1).sandbox(sandbox).build().unwrap();
    assert_eq!(run(&pool, connects_by_name, port).unwrap(), Ok(()));
    let pool = builder(1).sandbox(Sandbox::strict().connect(port)).build().unwrap();
    assert!(run(&pool, connects_by_name, port).unwrap().is_err(), "it may not read the file");
}

/// Returns the names in a folder, or the error.
fn lists(folder: String) -> Result<Vec<String>, i32> {
    let entries = fs::read_dir(folder).map_err(|error| error.raw_os_error().unwrap_or(0))?;
    Ok(entries.flatten().map(|entry| entry.file_name().display().to_string()).collect())
}

fn size_of_file(path: String) -> Result<u64, i32> {
    let size = fs::metadata(path).map(|file| file.len());
    size.map_err(|error| error.raw_os_error().unwrap_or(0))
}

/// The network interfaces of this process.
fn interfaces((): ()) -> usize {
    fs::read_to_string("/proc/self/net/dev").unwrap().lines().skip(2).count()
}

#[test]
fn an_isolated_worker_sees_nothing_but_its_files() {
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (folder.path().join("in"), folder.path().join("out"));
    fs::create_dir(&output).unwrap();
    fs::write(&input, "input").unwrap();
    fs::write(folder.path().join("secret"), "secret").unwrap();
    let loads_outside = |sandbox| builder(1).sandbox(sandbox).initializer(loads, text(&input));
    for link in links() {
        let sandbox = Sandbox::strict().read(&input).write(&output);
        let pool = loads_outside(sandbox.clone()).link(link).build().unwrap();
        let secret = text(&folder.path().join("secret"));
        assert_eq!(run(&pool, size_of_file, secret.clone()).unwrap(), Ok(6), "without isolation");
        let pool = loads_outside(sandbox.isolate()).link(link).build().unwrap();
        assert_eq!(run(&pool, size_of_file, secret).unwrap(), Err(libc::ENOENT));
        assert_eq!(run(&pool, size_of_file, "/etc/passwd".to_owned()).unwrap(), Err(libc::ENOENT));
        assert_eq!(run(&pool, lists, text(&output)).unwrap(), Ok(Vec::new()));
        assert_eq!(run(&pool, reads, text(&input)).unwrap().as_deref(), Some("input"));
        assert!(run(&pool, writes, text(&output.join(link_name(link)))).unwrap());
        assert!(!run(&pool, writes, text(&input)).unwrap());
        assert!(output.join(link_name(link)).exists(), "the folder is that of the host");
        fs::remove_file(output.join(link_name(link))).unwrap();
        assert_eq!(denied(&run(&pool, sends_a_packet, ()).unwrap_err()), "socket");
        assert_eq!(run(&pool, loaded, ()).unwrap().as_deref(), Some("input"));
        let holds = pool.sandbox_report().get(Layer::Namespaces).cloned();
        assert!(matches!(holds, Some(Hold::Enforced(means)) if means.contains("files")));
    }
}

#[test]
fn an_isolated_worker_finds_files_over_links_as_its_host_does() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    for name in ["z", "m/a"] {
        fs::create_dir_all(path(name)).unwrap();
        fs::write(path(name).join("file"), name).unwrap();
    }
    for (target, link) in [("z", "b"), ("../n", "z/x"), ("m/a", "n")] {
        std::os::unix::fs::symlink(target, path(link)).unwrap();
    }
    for order in [["b", "b/x"], ["b/x", "b"]] {
        let sandbox = order.iter().fold(Sandbox::strict(), |it, name| it.read(path(name)));
        let pool = builder(1).sandbox(sandbox.isolate()).build().unwrap();
        let text_of = |name| run(&pool, reads, text(&path(name))).unwrap();
        assert_eq!(text_of("b/file").as_deref(), Some("z"), "{order:?}");
        assert_eq!(text_of("b/x/file").as_deref(), Some("m/a"), "{order:?}");
        assert_eq!(text_of("b/../b/file").as_deref(), Some("z"), "{order:?}");
    }
}

fn link_name(link: Link) -> &'static str {
    if link == Link::Ring { "ring" } else { "ipc" }
}

#[test]
fn an_isolated_worker_has_no_network() {
    for (sandbox, count) in
        [(Sandbox::no_network(), 1), (Sandbox::read_only(), 1), (Sandbox::strict().read("/"), 1)]
    {
        let pool = builder(1).sandbox(sandbox.isolate()).build().unwrap();
        assert_eq!(run(&pool, interfaces, ()).unwrap(), count);
    }
}

#[test]
fn an_isolated_worker_ends_with_its_host_and_is_replaced() {
    let pool = builder(1).sandbox(Sandbox::strict().isolate()).build().unwrap();
    for _ in 0..3 {
        let error = run(&pool, brigade_testkit::faults::aborts, ()).unwrap_err();
        assert!(error.is_worker_death() && error.crash().is_some(), "{error}");
        assert_eq!(run(&pool, square, 5).unwrap(), 25);
    }
    let pid = pool.worker_pids()[0];
    drop(pool);
    assert!(!brigade_testkit::processes::is_alive(pid));
}

fn runs(program: String) -> Result<bool, i32> {
    let status = Command::new(program).status();
    status.map(|status| status.success()).map_err(|error| error.raw_os_error().unwrap_or(0))
}

#[test]
fn programs_run_where_they_may_be_executed() {
    let paths = ["/usr", "/bin", "/lib", "/lib64", "/etc/ld.so.cache"].map(Path::new);
    let paths = paths.into_iter().filter(|path| path.exists());
    let sandbox = paths.fold(Sandbox::strict(), Sandbox::execute);
    let pool = builder(1).sandbox(sandbox).build().unwrap();
    assert_eq!(run(&pool, runs, "/bin/true".to_owned()).unwrap(), Ok(true));
    assert_eq!(run(&pool, runs, "/tmp/true".to_owned()).unwrap(), Err(libc::ENOENT));
    let own = std::env::current_exe().unwrap();
    assert_eq!(run(&pool, runs, text(&own)).unwrap(), Err(libc::EACCES));
}

#[test]
fn a_strict_sandbox_has_no_environment_but_its_own() {
    let pool = builder(1).sandbox(Sandbox::strict()).env("GREETING", "hello").build().unwrap();
    assert_eq!(run(&pool, variables, ()).unwrap(), ["GREETING"]);
}

fn loads(path: String) -> String {
    fs::read_to_string(path).unwrap()
}

fn loaded((): ()) -> Option<String> {
    brigade::worker::state::<String>().cloned()
}

#[test]
fn the_initializer_runs_outside_unless_it_is_not_trusted() {
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("model");
    fs::write(&model, "weights").unwrap();
    let with = |sandbox| builder(1).sandbox(sandbox).initializer(loads, text(&model));
    for link in links() {
        let pool = with(Sandbox::strict()).link(link).build().unwrap();
        assert_eq!(run(&pool, loaded, ()).unwrap().as_deref(), Some("weights"));
        assert_eq!(run(&pool, reads, text(&model)).unwrap(), None);
    }
    let pool = with(Sandbox::strict().before_initializer()).build().unwrap();
    let error = run(&pool, loaded, ()).unwrap_err().to_string();
    assert!(error.contains("initializer panicked") && error.contains("denied"), "{error}");
}

fn leaves_a_thread((): ()) {
    thread::spawn(|| brigade_testkit::pause(Duration::from_secs(60)));
}

#[test]
fn threads_that_no_sandbox_reaches_are_an_error_of_the_start() {
    let pool = builder(1).sandbox(Sandbox::strict()).initializer(leaves_a_thread, ());
    let pool = pool.build().unwrap();
    let error = run(&pool, square, 2).unwrap_err().to_string();
    assert!(error.contains("it has 2 threads") && error.contains("before_initializer"), "{error}");
}

#[test]
fn a_denied_call_is_an_event_with_worker_task_and_call() {
    let log = Log::get();
    let pool = builder(1).name("denying").sandbox(Sandbox::strict()).build().unwrap();
    let error = run(&pool, sends_a_packet, ()).unwrap_err();
    assert!(error.to_string().contains("tried what its sandbox forbids"), "{error}");
    log.wait_for_line(&[
        "denying",
        "a call that its sandbox forbids",
        "worker=",
        "task=",
        "call=\"socket\"",
    ]);
}

#[test]
fn a_report_names_the_means_of_each_layer() {
    let pool = builder(1).sandbox(Sandbox::strict()).build().unwrap();
    let report = pool.sandbox_report();
    for layer in [Layer::Files, Layer::Network, Layer::Calls, Layer::Processes, Layer::Environment]
    {
        assert!(matches!(report.get(layer), Some(Hold::Enforced(_))), "{report}");
    }
    assert_eq!(builder(1).build().unwrap().sandbox_report().iter().count(), 0);
}

#[test]
fn what_cannot_be_made_is_an_error_of_build() {
    for (sandbox, part) in [
        (Sandbox::strict().read("/nowhere/to/be/found"), "/nowhere/to/be/found"),
        (Sandbox::strict().allow_call("no_such_call"), "no_such_call"),
    ] {
        let error = builder(1).sandbox(sandbox).build().unwrap_err().to_string();
        assert!(error.starts_with("sandbox: ") && error.contains(part), "{error}");
    }
}

/// Large arguments, values and buffers: nothing of it lies in memory that another worker reads.
fn doubled((bytes, buffer): (Vec<u8>, SharedBuf)) -> (Vec<u8>, SharedBuf) {
    let mut twice = brigade::worker::alloc(2 * buffer.len()).unwrap();
    twice[..buffer.len()].copy_from_slice(&buffer);
    twice[buffer.len()..].copy_from_slice(&buffer);
    (bytes.repeat(2), twice.freeze())
}

#[test]
fn large_arguments_and_buffers_reach_a_sandbox_as_copies() {
    for link in links() {
        let pool = builder(2).link(link).sandbox(Sandbox::strict()).build().unwrap();
        let bytes = vec![7; 300_000];
        let mut buffer = pool.alloc(200_000).unwrap();
        buffer.fill(9);
        let mut given = (bytes, buffer.freeze());
        for power in 1..4 {
            given = run(&pool, doubled, given).unwrap();
            assert_eq!(given.0.len(), 300_000 << power);
            assert!(given.1.len() == 200_000 << power && given.1.iter().all(|byte| *byte == 9));
        }
    }
}

fn maps((): ()) -> String {
    fs::read_to_string("/proc/self/maps").unwrap()
}

#[test]
fn a_worker_in_a_sandbox_does_not_map_the_arguments_of_others() {
    let has_them = |pool: PoolBuilder| {
        let pool = pool.link(Link::Ring).build().unwrap();
        run(&pool, maps, ()).unwrap().contains("brigade-arguments")
    };
    assert!(has_them(builder(1)));
    assert!(!has_them(builder(1).sandbox(Sandbox::no_network())));
}

/// Returns what a worker can read of its own entries, and whether it can read those of its host.
fn reads_own(host: u32) -> (Vec<bool>, bool) {
    let own = format!("/proc/{}", std::process::id());
    let paths = ["/proc/self/status", "/proc/thread-self/stat", "/dev/fd", "/proc/self/task"];
    let reads = |path: &str| fs::read(path).is_ok() || fs::read_dir(path).is_ok();
    let entries = ["status", "maps", "cmdline", "statm", "fd", "task"];
    let of = |folder: &str| entries.map(|entry| reads(&format!("{folder}/{entry}")));
    let found = paths.into_iter().map(reads).chain(of(&own)).collect();
    let host = format!("/proc/{host}");
    let others = [host.as_str(), "/proc/self/..", "/proc/self/root/proc"].map(of);
    (found, others.into_iter().flatten().any(|it| it))
}

#[test]
fn a_strict_worker_may_read_its_own_entries_and_no_others() {
    for link in links() {
        for start in [Start::Exec, Start::Fork] {
            let sandbox = Sandbox::strict().read("/proc/self");
            let pool = builder(2).link(link).start(start).sandbox(sandbox).build().unwrap();
            for worker in pool.broadcast(reads_own, std::process::id()).unwrap() {
                let (own, others) = outcome(worker).unwrap();
                assert!(own.iter().all(|it| *it) && !others, "{start:?}: {own:?}, {others}");
            }
            let [one, other] = pool.worker_pids()[..] else { panic!() };
            for worker in pool.broadcast(lists_both, (one, other)).unwrap() {
                assert_eq!(outcome(worker).unwrap(), 1, "{start:?}");
            }
        }
    }
    let pool = builder(1).sandbox(Sandbox::strict()).build().unwrap();
    let (own, others) = run(&pool, reads_own, std::process::id()).unwrap();
    assert!(!own.iter().any(|it| *it) && !others, "{own:?}, {others}");
}

/// Returns how many of two workers it can look at.
fn lists_both((one, other): (u32, u32)) -> usize {
    [one, other].into_iter().filter(|pid| fs::read(format!("/proc/{pid}/stat")).is_ok()).count()
}

#[test]
fn a_worker_may_read_single_entries_of_its_own() {
    let sandbox = Sandbox::strict().read("/proc/self/status").allow_processes();
    let pool = builder(1).sandbox(sandbox).build().unwrap();
    assert!(run(&pool, reads, "/proc/self/status".to_owned()).unwrap().is_some());
    assert_eq!(run(&pool, reads, "/proc/self/maps".to_owned()).unwrap(), None);
    let pool = builder(1).sandbox(Sandbox::read_only().read("/proc/self")).build().unwrap();
    assert!(run(&pool, reads, "/proc/self/maps".to_owned()).unwrap().is_some());
}

/// Lets the path of a link lead to another place.
fn relinks((link, target): (String, String)) -> bool {
    fs::remove_file(&link).is_ok() && std::os::unix::fs::symlink(target, link).is_ok()
}

#[test]
fn a_worker_cannot_choose_what_is_opened_for_the_next_one() {
    let folder = tempfile::tempdir().unwrap();
    let text = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fs::create_dir_all(text("open")).unwrap();
    fs::write(text("secret"), "secret").unwrap();
    let link = text("open/link");
    std::os::unix::fs::symlink("/proc/self/status", &link).unwrap();
    let sandbox = Sandbox::strict().read(&link).write(text("open"));
    let pool = builder(1).max_tasks_per_worker(1).sandbox(sandbox).build().unwrap();
    assert!(run(&pool, reads, link.clone()).unwrap().is_some());
    assert!(run(&pool, relinks, (link, text(""))).unwrap());
    for _ in 0..3 {
        assert_eq!(run(&pool, reads, text("secret")).unwrap(), None);
        assert!(run(&pool, reads, "/proc/self/status".to_owned()).unwrap().is_some());
    }
}
