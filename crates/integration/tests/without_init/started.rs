//! Checks that programs have workers however they were started: by the dynamic loader, from a file
//! that is gone, as process 1, in an empty root, under a debugger. Where that cannot work, `build`
//! says why.
//!
//! `docs/platforms.md` lists these ways.

#![expect(clippy::print_stdout, reason = "a test that is left out says so")]

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use brigade_testkit::{BOUND, wait_until};
use rustix::fs::{MemfdFlags, memfd_create};
use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_started");

/// The ways in which a pool has workers without a folder for temporary files, and the report of a
/// crash.
const WAYS: [&str; 6] = ["auto", "exec", "fork", "fresh", "spare", "report"];

/// Runs a program with ways as its last arguments, each of which must work.
#[track_caller]
fn assert_works(command: &mut Command, ways: &[&str]) {
    let output = command.args(ways).stdin(Stdio::null()).output().unwrap();
    assert_worked(&output, ways);
}

#[track_caller]
fn assert_worked(output: &Output, ways: &[&str]) {
    let [stdout, stderr] = [&output.stdout, &output.stderr].map(|it| String::from_utf8_lossy(it));
    for way in ways {
        let line = format!("{way}: well");
        // A debugger writes in between, and ends no lines.
        assert!(stdout.contains(&line), "no {line:?}: {stdout}{stderr}");
    }
    assert!(output.status.success(), "{stdout}{stderr}");
}

/// Runs a program that must fail, and returns what it prints to standard error.
#[track_caller]
fn complaint(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success(), "{text}");
    text
}

/// Returns `true` if a command works here; otherwise says that the test is left out.
fn can(command: &str) -> bool {
    let mut words = command.split(' ');
    let mut command_line = Command::new(words.next().unwrap());
    let can = command_line.args(words).output().is_ok_and(|output| output.status.success());
    if !can {
        println!("left out: `{command}` does not work here");
    }
    can
}

/// Returns the dynamic loader, or says that the test is left out.
fn loader() -> Option<&'static Path> {
    let paths = ["/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1"].map(Path::new);
    let loader = paths.into_iter().find(|path| path.exists());
    if loader.is_none() {
        println!("left out: there is no dynamic loader at a usual place");
    }
    loader
}

/// A program that has started and waits, of which the file can be changed meanwhile.
struct Waiting(Child);

impl Waiting {
    fn start(command: &mut Command, ways: &[&str]) -> Self {
        command.arg("waits").args(ways).stdin(Stdio::piped());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        // Byte by byte, because the rest is for the one who waits for the end.
        let mut stdout = BufReader::with_capacity(1, child.stdout.as_mut().unwrap());
        stdout.read_line(&mut line).unwrap();
        assert_eq!(line, "waits\n");
        Self(child)
    }

    fn go_on(mut self) -> Output {
        self.0.stdin.take().unwrap().write_all(b"\n").unwrap();
        self.0.wait_with_output().unwrap()
    }
}

fn copy_in(folder: &TempDir) -> PathBuf {
    let copy = folder.path().join("copy");
    fs::copy(PROGRAM, &copy).unwrap();
    copy
}

#[test]
fn a_program_that_the_loader_started_has_workers() {
    let Some(loader) = loader() else { return };
    assert_works(Command::new(loader).arg(PROGRAM), &[&WAYS[..], &["ipc"]].concat());
    // The library is not at a usual place, so workers need the option, too.
    let libraries = TempDir::new().unwrap();
    for library in libraries_of(PROGRAM).iter().filter(|path| path.as_path() != loader) {
        fs::copy(library, libraries.path().join(library.file_name().unwrap())).unwrap();
    }
    let program = Path::new(PROGRAM);
    let mut command = Command::new(loader);
    command.args(["--inhibit-cache", "--library-path"]).arg(libraries.path());
    command.arg(Path::new(".").join(program.file_name().unwrap()));
    assert_works(command.current_dir(program.parent().unwrap()), &["auto", "fresh"]);
}

#[test]
fn a_program_that_the_loader_cannot_find_again_says_so() {
    let Some(loader) = loader() else { return };
    let folder = TempDir::new().unwrap();
    let copy = copy_in(&folder);
    let waiting = Waiting::start(Command::new(loader).arg(&copy), &["auto"]);
    fs::remove_file(&copy).unwrap();
    let output = waiting.go_on();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success(), "{text}");
    assert!(text.contains("worker_command: the dynamic loader was started"), "{text}");
    assert!(text.contains("its file was deleted or replaced: start the program again"), "{text}");
}

#[test]
fn a_program_without_proc_is_told_how_to_mount_it() {
    if !can("unshare --mount umount -l /proc") {
        return;
    }
    let mut command = Command::new("unshare");
    let script = "umount -l /proc && exec \"$0\" auto";
    let text = complaint(command.args(["--mount", "sh", "-c", script, PROGRAM]));
    assert!(text.contains("cannot use /proc: mount it with `mount -t proc proc /proc`"), "{text}");
}

#[test]
fn a_program_whose_file_was_deleted_has_workers() {
    let folder = TempDir::new().unwrap();
    let copy = copy_in(&folder);
    let waiting = Waiting::start(&mut Command::new(&copy), &WAYS);
    fs::remove_file(&copy).unwrap();
    assert_worked(&waiting.go_on(), &WAYS);
}

#[test]
fn a_program_whose_file_was_replaced_has_workers() {
    let folder = TempDir::new().unwrap();
    let copy = copy_in(&folder);
    let waiting = Waiting::start(&mut Command::new(&copy), &WAYS);
    let other = folder.path().join("other");
    fs::copy(env!("CARGO_BIN_EXE_uninitialized"), &other).unwrap();
    fs::rename(&other, &copy).unwrap();
    assert_worked(&waiting.go_on(), &WAYS);
}

#[test]
fn a_program_in_a_memory_file_has_workers() {
    let file = File::from(memfd_create("program", MemfdFlags::CLOEXEC).unwrap());
    (&file).write_all(&fs::read(PROGRAM).unwrap()).unwrap();
    // A file that is open for writing cannot be executed.
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    let readable = File::open(&path).unwrap();
    drop(file);
    let path = format!("/proc/self/fd/{}", readable.as_fd().as_raw_fd());
    assert_works(&mut Command::new(path), &WAYS);
}

#[test]
fn process_1_of_a_container_has_workers() {
    if can("unshare --pid --fork --mount-proc true") {
        let mut command = Command::new("unshare");
        assert_works(command.args(["--pid", "--fork", "--mount-proc", PROGRAM]), &WAYS);
    }
}

#[test]
fn a_program_with_the_proc_of_another_namespace_has_workers() {
    if can("unshare --pid --fork true") {
        let mut command = Command::new("unshare");
        assert_works(command.args(["--pid", "--fork", PROGRAM]), &WAYS);
    }
}

#[test]
fn no_stranger_is_killed_whose_number_is_that_of_a_child() {
    // Only root may choose the numbers of processes.
    let number = Path::new("/proc/sys/kernel/ns_last_pid");
    if !number.exists() || !can("unshare --pid --fork true") {
        return;
    }
    let mut parent = Command::new("sh");
    let mut parent = parent.args(["-c", "cat; :"]).stdin(Stdio::piped()).spawn().unwrap();
    let children = format!("/proc/{0}/task/{0}/children", parent.id());
    let children = || fs::read_to_string(&children).unwrap_or_default().trim().to_owned();
    wait_until("the child of a shell", BOUND, || !children().is_empty());
    let (ours, theirs) = (parent.id().to_string(), children());
    let mut command = Command::new("unshare");
    command.args(["--pid", "--fork", PROGRAM, "strangers", &ours, &theirs]);
    let output = command.output();
    drop(parent.stdin.take());
    parent.wait().unwrap();
    assert_worked(&output.unwrap(), &["strangers"]);
}

/// A folder for a program that sees nothing else.
struct Root(TempDir);

impl Root {
    fn new(program: &Path) -> Self {
        let folder = TempDir::new().unwrap();
        for name in ["proc", "dev"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        fs::copy(program, folder.path().join("program")).unwrap();
        Self(folder)
    }

    /// Returns the command of the program in its root, with what is to be mounted there.
    fn command(&self, mounts: &str) -> Command {
        let mut command = Command::new("unshare");
        let script = format!("{mounts} exec chroot . /program \"$@\"");
        command.args(["--mount", "sh", "-ec", &script, "sh"]).current_dir(self.0.path());
        // Over ipc a pool needs a folder for temporary files, which is not there.
        command.env_remove("BRIGADE_LINK");
        command
    }
}

const PROC: &str = "mount -t proc proc proc;";

const PROC_AND_DEV: &str = "mount -t proc proc proc; mount --rbind /dev dev;";

const MOUNT: &str = "unshare --mount mount -t proc proc /proc";

/// Returns the shared libraries of a program, with the dynamic loader.
fn libraries_of(program: &str) -> Vec<PathBuf> {
    let output = Command::new("ldd").arg(program).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let words = text.split_whitespace().filter(|word| word.starts_with('/'));
    words.map(PathBuf::from).collect()
}

#[test]
fn a_program_alone_with_its_libraries_has_workers() {
    if !can(MOUNT) {
        return;
    }
    let root = Root::new(Path::new(PROGRAM));
    for library in libraries_of(PROGRAM) {
        let copy = root.0.path().join(library.strip_prefix("/").unwrap());
        fs::create_dir_all(copy.parent().unwrap()).unwrap();
        fs::copy(&library, copy).unwrap();
    }
    assert_works(&mut root.command(PROC_AND_DEV), &WAYS);
    let text = complaint(root.command(PROC_AND_DEV).arg("ipc"));
    assert!(text.contains("set TMPDIR to a folder that can be written to"), "{text}");
}

#[test]
fn a_static_program_alone_in_its_root_has_workers() {
    // The build of the tests has none: `cargo xtask crashes` does.
    let Some(program) = std::env::var_os("BRIGADE_STATIC_PROGRAM") else {
        println!("left out: BRIGADE_STATIC_PROGRAM is not set");
        return;
    };
    if !can(MOUNT) {
        return;
    }
    let root = Root::new(Path::new(&program));
    assert_works(&mut root.command(PROC_AND_DEV), &WAYS);
    // Not even `/dev/null`.
    assert_works(&mut root.command(PROC), &["auto", "fork", "fresh"]);
    let text = complaint(root.command(PROC).arg("silent"));
    assert!(text.contains("stdio: cannot open /dev/null"), "{text}");
    let text = complaint(root.command("").arg("auto"));
    assert!(text.contains("cannot use /proc: mount it with"), "{text}");
}

#[test]
fn a_program_under_valgrind_has_workers() {
    if can("valgrind --quiet true") {
        let mut command = Command::new("valgrind");
        assert_works(command.args(["--quiet", PROGRAM]), &["auto"]);
    }
}

#[test]
fn a_program_under_gdb_has_workers() {
    if can("gdb --version") {
        let mut command = Command::new("gdb");
        command.args(["-quiet", "-batch", "-ex", "run", "--args", PROGRAM]);
        let output = command.args(WAYS).stdin(Stdio::null()).output().unwrap();
        if String::from_utf8_lossy(&output.stderr).contains("ptrace") {
            println!("left out: this process may trace no others");
        } else {
            assert_worked(&output, &WAYS);
        }
    }
}

#[test]
fn a_program_under_strace_has_workers() {
    if can("strace -f -o /dev/null true") {
        let mut command = Command::new("strace");
        command.args(["-f", "-o", "/dev/null", PROGRAM]).args(WAYS).stdin(Stdio::null());
        // It gives up with EIO if a process that it has stopped is killed at that moment.
        let has_given_up = |output: &Output| {
            String::from_utf8_lossy(&output.stderr).contains("strace: ptrace(PTRACE_LISTEN")
        };
        let mut outputs = (0..5).map(|_| command.output().unwrap());
        let output = outputs.find(|output| !has_given_up(output));
        assert_worked(&output.expect("a run to its end"), &WAYS);
    }
}

#[test]
fn a_program_under_perf_has_workers() {
    if can("perf record -o /dev/null true") {
        let mut command = Command::new("perf");
        assert_works(command.args(["record", "-o", "/dev/null", PROGRAM]), &WAYS);
    }
}

#[test]
fn a_program_under_rr_has_workers() {
    let folder = TempDir::new().unwrap();
    let trace = folder.path().join("trace");
    let probe = folder.path().join("probe");
    if can(&format!("rr record -o {} true", probe.display())) {
        let mut command = Command::new("rr");
        assert_works(command.args(["record", "-o"]).arg(trace).arg(PROGRAM), &["auto", "fresh"]);
    }
}
