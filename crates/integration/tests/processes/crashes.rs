//! A crash says why it happened and in which function, whatever the worker was doing.

use std::ffi::CString;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Command, exit};
use std::thread;
use std::time::Duration;

use brigade::crash::{Cause, Stack};
use brigade::{Exit, Link, Pool, PoolBuilder, Start, TaskError, TaskErrorKind, TaskState, worker};
use brigade_integration::{Log, builder, square};
use brigade_testkit::{
    BOUND, Gate, Pass, outcome, pass, processes, repetitions, wait_for, wait_until,
};
use brigade_testkit_sys::misdeeds;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::event::{Timespec, poll};
use rustix::thread::nanosleep;

use crate::old_kernels::address;

/// The name in a report is that of the function which calls this.
#[inline(never)]
fn decode_header(address: u64) -> u64 {
    std::hint::black_box(u64::from(misdeeds::read(address)) + 1)
}

fn reads(address: u64) -> u64 {
    std::hint::black_box(decode_header(address)) + 1
}

fn reads_freed_memory(_: u64) -> u64 {
    let address = misdeeds::guard_page();
    misdeeds::unmap(address);
    reads(address)
}

fn reads_a_guard_page(_: u64) -> u64 {
    reads(misdeeds::guard_page())
}

fn writes_to_a_constant(_: u64) -> u64 {
    let text = std::hint::black_box("constant");
    misdeeds::write(text.as_ptr().expose_provenance() as u64);
    0
}

fn calls(address: u64) -> u64 {
    misdeeds::call(address);
    std::hint::black_box(address)
}

fn calls_data(_: u64) -> u64 {
    let data = std::hint::black_box([0xc3_u8; 64]);
    calls(data.as_ptr().expose_provenance() as u64)
}

fn frees_twice(_: u64) -> u64 {
    misdeeds::free_twice();
    std::hint::black_box(0)
}

fn runs_garbage(_: u64) -> u64 {
    misdeeds::run_an_invalid_instruction();
    std::hint::black_box(0)
}

fn runs_a_breakpoint(_: u64) -> u64 {
    misdeeds::run_a_breakpoint();
    std::hint::black_box(0)
}

fn divides(_: u64) -> u64 {
    misdeeds::divide_by_zero();
    std::hint::black_box(0)
}

fn aborts(_: u64) -> u64 {
    std::process::abort()
}

fn reads_a_truncated_file(_: u64) -> u64 {
    let file = tempfile::tempfile().unwrap();
    file.set_len(4096).unwrap();
    let address = misdeeds::map(&file).unwrap();
    file.set_len(0).unwrap();
    reads(address)
}

extern "C" fn called_by_c(number: u64) -> u64 {
    assert!(number > 1000, "the number {number} is too small");
    number
}

fn panics_where_nothing_may_unwind(number: u64) -> u64 {
    std::hint::black_box(called_by_c as extern "C" fn(u64) -> u64)(number)
}

#[inline(never)]
#[expect(unconditional_recursion, reason = "the stack overflows")]
fn recurses(depth: u64) -> u64 {
    let room = std::hint::black_box([depth; 64]);
    recurses(depth + 1) + room[0]
}

fn crashes_in_a_thread(address: u64) -> u64 {
    let thread = thread::Builder::new().name("decoder".to_owned());
    thread.spawn(move || reads(address)).unwrap().join().unwrap()
}

fn loses_its_stack(_: u64) -> u64 {
    misdeeds::lose_the_stack();
    0
}

type Task = fn(u64) -> u64;

/// Crashes: a name, the task, its argument, the signal, the cause, and a part of the full text.
const CASES: &[(&str, Task, u64, i32, Cause, &str)] = &[
    ("null", reads, 0, 11, Cause::NullPointer, "crashes::decode_header"),
    ("field", reads, 0x10, 11, Cause::NullPointer, "invalid address 0x10 (a field of a null"),
    ("wild", reads, 0x1234_5678_0000, 11, Cause::Unmapped, "crashes::reads"),
    // ARM ignores the upper byte of an address.
    #[cfg(target_arch = "x86_64")]
    ("impossible", reads, 1 << 63, 11, Cause::Impossible, "crashes::decode_header"),
    ("freed", reads_freed_memory, 0, 11, Cause::Unmapped, "crashes::reads_freed_memory"),
    ("guard", reads_a_guard_page, 0, 11, Cause::Guarded, "crashes::reads_a_guard_page"),
    ("constant", writes_to_a_constant, 0, 11, Cause::ReadOnly, "crashes::writes_to_a_constant"),
    ("call of null", calls, 0, 11, Cause::NullPointer, "crashes::calls"),
    ("call of data", calls_data, 0, 11, Cause::NotExecutable, "crashes::calls_data"),
    ("abort", aborts, 0, 6, Cause::Aborted, "crashes::aborts"),
    ("double free", frees_twice, 0, 6, Cause::Aborted, "crashes::frees_twice"),
    ("instruction", runs_garbage, 0, 4, Cause::InvalidInstruction, "crashes::runs_garbage"),
    ("breakpoint", runs_a_breakpoint, 0, 5, Cause::Trap, "crashes::runs_a_breakpoint"),
    ("truncated", reads_a_truncated_file, 0, 7, Cause::BeyondFile, "reads_a_truncated_file"),
    // The standard library has not begun to look for overflows when a test executable calls `init`.
    ("overflow", recurses, 0, 11, Cause::StackOverflow, "crashes::recurses"),
    ("thread", crashes_in_a_thread, 8, 11, Cause::NullPointer, "crashes::decode_header"),
    #[cfg(target_arch = "x86_64")]
    ("division", divides, 0, 8, Cause::Division, "crashes::divides"),
];

/// Commits the crime of a case.
fn commits(case: usize) -> u64 {
    let (_, task, argument, ..) = CASES[case];
    task(argument) + 1
}

fn error_of<A, F>(pool: &Pool, task: F, argument: A) -> TaskError
where
    A: serde::Serialize + serde::de::DeserializeOwned + Send + 'static,
    F: Fn(A) -> u64 + Copy + Send + 'static,
{
    outcome(pool.submit(task, argument).unwrap()).unwrap_err()
}

fn pool(link: Link) -> Pool {
    let builder = builder(1).link(link).restart_budget(1000, Duration::from_secs(1));
    builder.interrupt_for_stacks(true).build().unwrap()
}

fn each_crash_is_explained(link: Link) {
    let pool = pool(link);
    for (case, (name, _, _, signal, cause, text)) in CASES.iter().enumerate() {
        let error = error_of(&pool, commits, case);
        let TaskErrorKind::WorkerDied { exit, .. } = error.kind() else {
            panic!("{name}: {error}")
        };
        assert_eq!(*exit, Exit::Signal(*signal), "{name}: {error}");
        let crash = error.crash().unwrap_or_else(|| panic!("{name}: no report: {error}"));
        assert_eq!((crash.signal(), crash.cause()), (*signal, cause), "{name}: {error:#}");
        assert!(format!("{error:#}").contains(text), "{name}: {error:#}");
        // An overflowed stack is longer than the part of it that is kept.
        let is_cut = *cause == Cause::StackOverflow;
        assert_eq!(crash.stack().map(Stack::is_partial), Some(is_cut), "{name}: {error:#}");
    }
    assert_eq!(outcome(pool.submit(square, 3).unwrap()).unwrap(), 9);
}

#[test]
fn each_crash_is_explained_over_rings() {
    each_crash_is_explained(Link::Ring);
}

#[test]
fn each_crash_is_explained_over_ipc() {
    each_crash_is_explained(Link::Ipc);
}

#[test]
fn an_abort_has_the_message_that_led_to_it() {
    let pool = pool(Link::default());
    let error = error_of(&pool, frees_twice, 0);
    let message = error.crash().unwrap().message().to_owned();
    assert!(message.contains("double free"), "{message}");
    let error = error_of(&pool, panics_where_nothing_may_unwind, 7);
    let message = error.crash().unwrap().message().to_owned();
    assert!(message.contains("the number 7 is too small"), "{message}");
    assert!(message.contains("crashes.rs:"), "{message}");
}

#[test]
fn a_thread_without_a_stack_ends_as_a_crash() {
    let error = error_of(&pool(Link::default()), loses_its_stack, 0);
    assert!(error.is_worker_death(), "{error}");
    assert!(error.stack().is_some_and(Stack::is_partial), "{error:#}");
}

#[test]
fn many_threads_that_crash_at_once_end_the_worker_once() {
    fn many(address: u64) -> u64 {
        let barrier = std::sync::Arc::new(std::sync::Barrier::new(8));
        for _ in 0..7 {
            let barrier = std::sync::Arc::clone(&barrier);
            thread::spawn(move || {
                barrier.wait();
                reads(address)
            });
        }
        barrier.wait();
        reads(address)
    }
    let pool = pool(Link::default());
    for _ in 0..20 {
        let error = error_of(&pool, many, 8);
        let crash = error.crash().unwrap_or_else(|| panic!("{error}"));
        assert!(format!("{crash:#}").contains("decode_header"), "{crash:#}");
    }
}

#[test]
fn a_copy_that_crashes_is_not_the_worker() {
    fn forks(_: u64) -> u64 {
        match misdeeds::fork().unwrap() {
            None => reads(8),
            Some(child) => {
                wait_until("the end of the copy", BOUND, || !processes::is_alive(child));
                7
            }
        }
    }
    let pool = pool(Link::default());
    assert_eq!(outcome(pool.submit(forks, 0).unwrap()).unwrap(), 7);
    let error = error_of(&pool, |_: u64| exit(3), 0);
    assert!(error.crash().is_none(), "{error}");
}

#[test]
fn a_handler_that_the_program_installs_wins() {
    fn handles(address: u64) -> u64 {
        misdeeds::exit_on(11, 42);
        reads(address)
    }
    let error = error_of(&pool(Link::default()), handles, 8);
    let TaskErrorKind::WorkerDied { exit, .. } = error.kind() else { panic!("{error}") };
    assert_eq!((*exit, error.crash().is_some()), (Exit::Code(42), false), "{error}");
}

#[test]
fn a_task_that_crashed_is_retried_and_its_last_crash_reported() {
    let pool = pool(Link::default());
    let error = outcome(pool.task(reads).retries(2).submit(8).unwrap()).unwrap_err();
    assert_eq!(error.attempt(), 3);
    assert_eq!(error.crash().map(|crash| *crash.cause()), Some(Cause::NullPointer));
}

#[test]
fn an_item_that_crashes_has_a_report_and_others_their_values() {
    fn item(number: u64) -> u64 {
        if number == 17 { reads(8) } else { number }
    }
    let pool = pool(Link::default());
    let outcomes: Vec<_> = pool.map(item, 0..40).collect();
    for (number, outcome) in (0..).zip(outcomes) {
        match outcome {
            Ok(value) => assert_eq!(value, number),
            Err(error) => {
                assert_eq!(number, 17, "{error}");
                assert!(format!("{error:#}").contains("crashes::decode_header"), "{error:#}");
            }
        }
    }
}

/// Says that it has crashed, and goes on.
fn lies(_: u64) -> u64 {
    brigade_integration::scribble::claims_a_crash();
    loop {
        thread::park();
    }
}

#[test]
fn a_worker_that_goes_on_after_its_crash_is_killed() {
    let pool = pool(Link::Ring);
    pool.warm_up().unwrap();
    let liar = pool.worker_pids()[0];
    let error = error_of(&pool, lies, 0);
    assert!(error.is_worker_death() && error.crash().is_some(), "{error}");
    assert_eq!(outcome(pool.submit(square, 3).unwrap()).unwrap(), 9);
    wait_until("the end of the liar", BOUND, || !processes::is_alive(liar));
}

fn shows(stack: Option<Stack>, function: &str) -> bool {
    stack.is_some_and(|stack| stack.to_string().contains(function))
}

#[test]
fn a_deadline_says_where_the_task_was() {
    fn hangs(_: u64) -> u64 {
        thread::park_timeout(BOUND);
        std::hint::black_box(1)
    }
    for link in [Link::Ring, Link::Ipc] {
        let pool = pool(link);
        let limit = Duration::from_millis(20);
        // A worker that gets no core in time is killed before it has answered.
        let says_where = |error: &TaskError| format!("{error:#}").contains("a_deadline_says_where");
        wait_until("the stack at a deadline", BOUND, || {
            let handle = pool.task(hangs).deadline(limit).submit(0).unwrap();
            let error = outcome(handle).unwrap_err();
            assert!(error.is_deadline(), "{error}");
            says_where(&error)
        });
        wait_until("the stack at a kill", BOUND, || {
            let handle = pool.submit(hangs, 0).unwrap();
            wait_until("the function", BOUND, || shows(handle.stack(), "a_deadline_says_where"));
            assert!(handle.kill());
            says_where(&outcome(handle).unwrap_err())
        });
    }
}

#[test]
fn a_running_task_shows_its_stack_and_goes_on() {
    fn waits(at: Pass) -> u64 {
        std::hint::black_box(pass(at)) + 1
    }
    let pool = pool(Link::default());
    let gate = Gate::new();
    let mut handle = pool.submit(waits, gate.pass(7)).unwrap();
    // It begins to run before its argument is decoded.
    let shown = |stack: &Stack| stack.to_string().contains("a_running_task_shows");
    let stack = wait_for("the function", BOUND, || handle.stack().filter(shown));
    assert!(stack.is_main_thread() && !stack.is_partial());
    gate.open();
    assert_eq!(handle.wait_timeout(BOUND).unwrap().unwrap(), 8);
    assert!(handle.stack().is_none());
}

/// Waits in calls that any signal ends, and says how they have ended.
fn waits_in_vain(time: Duration, nth: usize) -> String {
    let limit = Timespec::try_from(time).unwrap();
    match nth {
        0 => format!("{:?}", poll(&mut [], Some(&limit))),
        3 => {
            let socket = UnixDatagram::unbound().unwrap();
            socket.set_read_timeout(Some(time)).unwrap();
            format!("{:?}", socket.recv(&mut []))
        }
        1 => format!("{:?}", nanosleep(&limit)),
        4.. => format!("{}", calls_in_vain(time, nth)),
        _ => {
            let group = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
            let mut events = [epoll::Event { flags: EventFlags::IN, data: EventData::new_u64(0) }];
            format!("{:?}", epoll::wait(&group, &mut events, Some(&limit)))
        }
    }
}

/// The same, in calls of C.
fn calls_in_vain(time: Duration, nth: usize) -> i64 {
    let (mut limit, mut zero) = ([time.as_secs(), u64::from(time.subsec_nanos())], [0_u64]);
    let (limit, zero) = (address(&mut limit), address(&mut zero));
    let (number, arguments) = match nth {
        // `select`, `sem_timedwait`, `sigtimedwait` and `wait`.
        4 => (libc::SYS_pselect6, [0, 0, 0, 0, limit, 0]),
        5 => (libc::SYS_futex, [zero, 0, 0, limit, 0, 0]),
        6 => (libc::SYS_rt_sigtimedwait, [zero, 0, limit, 8, 0, 0]),
        _ => match misdeeds::fork().unwrap() {
            Some(child) => (libc::SYS_wait4, [child.into(), 0, 0, 0, 0, 0]),
            None => loop {
                thread::park();
            },
        },
    };
    misdeeds::system_call(number, arguments)
}

/// One pool of each kind whose workers are asked where they are in a different way.
fn pools(interrupts: bool) -> [Pool; 4] {
    let with = |change: fn(PoolBuilder) -> PoolBuilder| {
        change(builder(1).interrupt_for_stacks(interrupts)).build().unwrap()
    };
    [
        with(|it| it.start(Start::Exec)),
        with(|it| it.start(Start::Fork)),
        with(|it| it.link(Link::Ipc)),
        with(PoolBuilder::fresh_process_per_task),
    ]
}

#[test]
fn a_task_that_is_too_late_has_no_value_of_its_killers_making() {
    const LIMIT: Duration = Duration::from_millis(30);
    fn waits(nth: usize) -> String {
        waits_in_vain(BOUND, nth)
    }
    fn waits_in_a_section(nth: usize) -> String {
        let _guard = worker::expires(LIMIT);
        waits(nth)
    }
    for (number, pool) in pools(false).into_iter().chain(pools(true)).enumerate() {
        for nth in 0..8 {
            for _ in 0..repetitions(4) {
                let task = pool.task(waits).deadline(LIMIT).submit(nth).unwrap();
                let error = outcome(task).unwrap_err();
                // A busy machine may have no stack of it in time.
                assert!(error.is_deadline(), "{nth}: {error}");
                let error = outcome(pool.submit(waits_in_a_section, nth).unwrap()).unwrap_err();
                assert!(error.is_deadline(), "{nth}: {error}");
                if number >= 4 {
                    // A look may end the call there.
                    continue;
                }
                let handle = pool.submit(waits, nth).unwrap();
                wait_until("the call", BOUND, || shows(handle.stack(), "waits_in_vain"));
                assert!(handle.kill());
                let error = outcome(handle).unwrap_err();
                assert!(matches!(error.kind(), TaskErrorKind::Killed), "{nth}: {error}");
            }
            // An item of a map travels with others.
            let items = pool.map(waits, [nth, nth, nth]).deadline(LIMIT);
            for item in items {
                assert!(item.unwrap_err().is_deadline());
            }
        }
    }
}

#[test]
fn a_stack_is_that_of_the_task_and_no_other() {
    #[inline(never)]
    fn spins(count: u64) -> u64 {
        (0..std::hint::black_box(count)).fold(0, |sum, next| std::hint::black_box(sum + next))
    }
    fn runs_first(count: u64) -> u64 {
        std::hint::black_box(spins(count)) + 1
    }
    fn runs_second(count: u64) -> u64 {
        std::hint::black_box(spins(count)) + 2
    }
    for link in [Link::Ring, Link::Ipc] {
        let pool = pool(link);
        let tasks: Vec<_> = (0..2_000)
            .flat_map(|_| {
                let first = (pool.submit(runs_first, 3_000).unwrap(), "runs_second");
                [first, (pool.submit(runs_second, 3_000).unwrap(), "runs_first")]
            })
            .collect();
        for (handle, other) in tasks {
            if handle.state() == TaskState::Running {
                let stack = handle.stack().map(|stack| stack.to_string()).unwrap_or_default();
                assert!(!stack.contains(other), "{stack}");
            }
        }
        let long = pool.submit(runs_first, 1 << 30).unwrap();
        wait_until("the function", BOUND, || shows(long.stack(), "runs_first"));
        assert!(long.kill());
    }
}

#[test]
fn a_thread_that_blocks_signals_shows_no_other_one() {
    fn helps() {
        thread::park_timeout(BOUND);
        std::hint::black_box(());
    }
    fn blocks(_: u64) -> u64 {
        thread::spawn(helps);
        brigade_sys::signals::block_in_thread();
        let begin = std::time::Instant::now();
        while begin.elapsed() < BOUND {}
        0
    }
    let is_own = |stack: Option<&Stack>| stack.is_none_or(Stack::is_main_thread);
    for pool in pools(true) {
        let limit = Duration::from_millis(100);
        let handle = pool.task(blocks).deadline(limit).submit(0).unwrap();
        while !handle.is_done() {
            assert!(is_own(handle.stack().as_ref()));
        }
        let error = outcome(handle).unwrap_err();
        assert!(error.is_deadline() && is_own(error.stack()), "{error:#}");
    }
}

#[test]
fn the_event_of_a_death_has_the_crash() {
    let log = Log::get();
    let _ = error_of(&pool(Link::default()), reads, 0x48);
    log.wait_for_line(&["worker died", "SIGSEGV (signal 11), invalid address 0x48", "at="]);
}

/// Compiles a library of C, and returns its path.
fn library(folder: &Path, name: &str, flags: &[&str]) -> PathBuf {
    let source = folder.join("decode.c");
    std::fs::write(
        &source,
        "static unsigned long inner(volatile unsigned char *p) { return *p + 1; }\n\
         unsigned long decode_mcu(unsigned long p) {\n  return inner((unsigned char *)p) + 1;\n}\n",
    )
    .unwrap();
    let library = folder.join(format!("lib{name}.so"));
    let status = Command::new("cc")
        .args(["-shared", "-fPIC", "-fno-inline"])
        .args(flags)
        .arg("-o")
        .args([&library, &source])
        .status()
        .unwrap();
    assert!(status.success());
    library
}

fn calls_c(library: PathBuf) -> u64 {
    let library = CString::new(library.into_os_string().into_encoded_bytes()).unwrap();
    misdeeds::call_library(&library, c"decode_mcu", 8).unwrap()
}

#[test]
fn a_crash_in_a_library_that_only_the_worker_loads_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let pool = pool(Link::default());
    let lines = library(folder.path(), "lines", &["-g", "-O1"]);
    let text = format!("{:#}", error_of(&pool, calls_c, lines));
    for part in ["inner", "decode.c:1", "decode_mcu", "decode.c:3", "liblines.so + 0x", "calls_c"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let bare = library(
        folder.path(),
        "bare",
        &["-s", "-O1", "-fno-asynchronous-unwind-tables", "-fno-omit-frame-pointer"],
    );
    let text = format!("{:#}", error_of(&pool, calls_c, bare));
    for part in ["<unknown>", "libbare.so + 0x", "calls_c"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    // A file that is gone has no names, but its place.
    let gone = library(folder.path(), "gone", &["-g"]);
    let error = error_of(&pool, calls_c, gone.clone());
    std::fs::remove_file(gone).unwrap();
    assert!(format!("{error:#}").contains("libgone.so + 0x"), "{error:#}");
}
