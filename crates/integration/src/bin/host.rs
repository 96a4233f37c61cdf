//! A program with a pool, for tests that observe a host from outside: they count its output or kill
//! it.

#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "a program whose output the tests read")]
#![expect(clippy::expect_used, reason = "the test that runs this program notices its panic")]

use std::sync::{Arc, LazyLock, OnceLock};
use std::time::Duration;

use brigade::stream::Emit;
use brigade::{Pool, Sandbox, Shutdown, Start, Stdio, SubmitErrorKind};
use brigade_sys::parent_death;
use brigade_testkit::faults::{hangs, prints_a_mebibyte, spins, stops_itself};
use brigade_testkit::{BOUND, Watchdog, outcome, pause};
use brigade_testkit_sys::misdeeds;
use brigade_wire::codec::chain;
use rustix::process::WaitOptions;

fn main() {
    brigade::init();
    let mode = std::env::args().nth(1).expect("a mode");
    match mode.as_str() {
        "print" | "print-captured" | "print-null" | "print-sandboxed" => {
            let pool = Pool::builder().workers(2);
            let pool = match mode.as_str() {
                "print-captured" => pool.stdio(Stdio::Capture),
                "print-null" => pool.stdio(Stdio::Null),
                "print-sandboxed" => pool.sandbox(Sandbox::strict()),
                _ => pool,
            };
            let pool = pool.build().expect("a pool");
            outcome(pool.submit(prints_a_mebibyte, ()).expect("a task")).expect("its result");
        }
        "named" => {
            let handle = pool().submit::<_, u64, u64, _>("double", 1).expect("a task");
            println!("{}", outcome(handle).expect_err("no such function"));
        }
        "dies" => {
            let pool = pool();
            // A crash would be reported before the process is reaped, with its signal.
            let handle = pool.submit(|(): ()| std::process::exit(7), ()).expect("a task");
            println!("{}", outcome::<()>(handle).expect_err("an exit"));
            assert_eq!(outcome(pool.submit(spins, 1).expect("a task")).expect("a result"), 1);
        }
        "starting" => {
            for _ in 0..10_000 {
                pool().warm_up().expect("all workers");
            }
        }
        "idle" => {
            let pool = pool();
            pool.warm_up().expect("all workers");
            wait_for_the_end();
        }
        "busy" => {
            let pool = pool();
            for result in pool.map(spins, std::iter::repeat(100)) {
                result.expect("a result");
            }
        }
        "hanging" => {
            let pool = pool();
            let _handles = [(); 2].map(|()| pool.submit(hangs, ()).expect("a task"));
            wait_for_the_end();
        }
        "emitting" => emitting(),
        "families" => families(),
        "stopped" => {
            let pool = pool();
            let _handles = [(); 2].map(|()| pool.submit(stops_itself, ()).expect("a task"));
            wait_for_the_end();
        }
        "large" => {
            let pool = pool();
            for result in pool
                .map(brigade_testkit::faults::echoes, std::iter::repeat(vec![7; 8 << 20]))
                .window(4)
            {
                result.expect("a result");
            }
        }
        "starved" => {
            // The test has taken away something that a pool needs before it started this program.
            let _watchdog = Watchdog::new("a pool that lacks something", BOUND);
            println!("{}", starved().err().as_deref().unwrap_or("well"));
        }
        "fresh" => fresh(),
        "replacing" => {
            let pool = Pool::builder().workers(2).max_tasks_per_worker(1).build().expect("a pool");
            for result in pool.map(spins, std::iter::repeat_n(1, 150)).chunk(1) {
                result.expect("a result");
            }
        }
        "signals" => {
            let pool = Pool::builder().workers(1).build().expect("a pool");
            println!("{}", outcome(pool.submit(signals, ()).expect("a task")).expect("a result"));
        }
        "idle-adrift" | "busy-adrift" => adrift(mode == "busy-adrift"),
        "terminal" => {
            let pool = Pool::builder().workers(1).build().expect("a pool");
            let read = outcome(pool.submit(uses_the_terminal, ()).expect("a task"));
            println!("the terminal says {:?}", read.expect("a result"));
        }
        "sandboxed terminal" => in_a_sandbox(),
        "living" => living(),
        "exits" | "aborts" => {
            // Without dropping the pool: nobody joins its threads.
            let pool = Pool::builder().workers(2).at_exit(Shutdown::Kill).build().expect("a pool");
            pool.warm_up().expect("all workers");
            let _handle = pool.submit(hangs, ()).expect("a task");
            if mode == "exits" { std::process::exit(0) } else { std::process::abort() }
        }
        other => panic!("unknown mode: {other}"),
    }
}

/// Ends with a pool that is not dropped, in the way given by the second argument, right after it
/// has submitted tasks that create files in the folder given by the third.
fn living() {
    static POOL: LazyLock<Pool> = LazyLock::new(|| {
        let builder = Pool::builder().workers(2).start(Start::Fork);
        builder.env_per_slot(|slot| [("SLOT", slot.to_string())]).build().expect("a pool")
    });
    let mut arguments = std::env::args().skip(2);
    let way = arguments.next().expect("the way to end");
    let folder = arguments.next().expect("a folder");
    let submit = |pool: &Pool| {
        for number in 0..8 {
            drop(pool.submit(creates_a_file, (folder.clone(), number)).expect("a task"));
        }
    };
    match way.as_str() {
        "static" => submit(&POOL),
        "exit" => {
            submit(&POOL);
            std::process::exit(0)
        }
        "late" => {
            LATE.set(folder).expect("no other");
            // Handlers run in the reverse order: this one after the pool's.
            brigade_sys::exit_handler::at_exit(submits_late);
            for number in 1..8 {
                let argument = (LATE.wait().clone(), number);
                drop(POOL_OF_LATE.submit(creates_a_file, argument).expect("a task"));
            }
        }
        "callback" => {
            let first = POOL.submit(creates_a_file, (folder.clone(), 0)).expect("a task");
            first.on_done(|_| std::process::exit(0));
            submit(&POOL);
            wait_for_the_end();
        }
        "thread" => {
            let pool = Arc::new(pool());
            submit(&pool);
            std::thread::spawn(move || {
                let _pool = pool;
                wait_for_the_end();
            });
        }
        "fork" => {
            submit(&POOL);
            // The copy has the handler, too, and must leave the pool alone.
            if let Some(copy) = misdeeds::fork().expect("a fork") {
                let copy = rustix::process::Pid::from_raw(copy.cast_signed());
                let ended = rustix::process::waitpid(copy, WaitOptions::empty());
                let (_, status) = ended.expect("a child").expect("its end");
                assert_eq!(status.exit_status(), Some(0));
            }
        }
        "in a worker" => {
            let pool = pool();
            outcome(pool.submit(has_a_pool, folder).expect("a task")).expect("a result");
        }
        other => panic!("unknown way: {other}"),
    }
}

static LATE: OnceLock<String> = OnceLock::new();
static POOL_OF_LATE: LazyLock<Pool> = LazyLock::new(pool);

/// Creates the last file if the pool accepts no task.
extern "C" fn submits_late() {
    let folder = LATE.wait().clone();
    let refused = POOL_OF_LATE.submit(creates_a_file, (folder, 0)).expect_err("it has ended");
    assert_eq!(*refused.kind(), SubmitErrorKind::PoolClosed);
    creates_a_file(refused.into_argument());
}

fn creates_a_file((folder, number): (String, u32)) {
    pause(Duration::from_millis(20));
    std::fs::write(format!("{folder}/{number}"), "").expect("a folder");
}

/// Leaves a pool behind whose tasks take forever, which must not keep the worker.
fn has_a_pool(folder: String) {
    static POOL: LazyLock<Pool> = LazyLock::new(pool);
    drop(POOL.submit(hangs, ()).expect("a task"));
    for number in 0..8 {
        creates_a_file((folder.clone(), number));
    }
}

/// Runs each task in a process of its own, which is forked.
fn fresh() {
    let builder = Pool::builder().workers(2).start(Start::Fork).fresh_process_per_task();
    for result in builder.build().expect("a pool").map(spins, std::iter::repeat(100)) {
        result.expect("a result");
    }
}

/// Runs workers that lose their parent-death signal, in the way given by the second argument. Each
/// one that has lost it creates a file in the folder given by the third.
fn adrift(is_busy: bool) {
    let mut arguments = std::env::args().skip(2);
    let way = arguments.next().expect("the way in which the signal is lost");
    let folder = arguments.next().expect("a folder");
    let builder = Pool::builder().workers(2);
    let pool = match way.as_str() {
        "initializer" => builder
            .initializer(
                |(): ()| {
                    misdeeds::drop_privileges();
                },
                (),
            )
            .build(),
        _ => builder.build(),
    };
    let pool = pool.expect("a pool");
    pool.warm_up().expect("all workers");
    let tasks = pool.broadcast(drift, (way, folder, is_busy)).expect("both workers");
    if !is_busy {
        for task in tasks {
            outcome(task).expect("a result");
        }
    }
    wait_for_the_end();
}

fn drift((way, folder, is_busy): (String, String, bool)) {
    match way.as_str() {
        "task" => {
            misdeeds::drop_privileges();
        }
        "cleared" => parent_death::unbind(),
        "severed" => {
            parent_death::unbind();
            misdeeds::close_all();
        }
        _ => {}
    }
    let file = format!("{folder}/{}", std::process::id());
    std::fs::write(file, "").expect("a folder for everybody");
    if is_busy {
        hangs(());
    }
}

fn pool() -> Pool {
    Pool::builder().workers(2).build().expect("a pool")
}

/// Runs workers whose tasks have started processes.
/// Has a worker that waits, because nobody takes what it emits.
fn emitting() {
    let pool = pool();
    pool.warm_up().expect("all workers");
    let stream = pool.stream_flat(emits_forever).start().expect("a stream");
    stream.put(()).expect("room for an input");
    stream.recv().expect("an item");
    wait_for_the_end();
}

fn emits_forever((): (), emit: &mut Emit<'_, ()>) {
    while emit.emit(()).is_ok() {}
}

fn families() {
    let pool = pool();
    pool.warm_up().expect("all workers");
    for task in pool.broadcast(starts_a_family, ()).expect("both workers") {
        outcome(task).expect("a result");
    }
    wait_for_the_end();
}

/// Starts a process, and one whose parent has ended.
#[expect(clippy::zombie_processes, reason = "it outlives its task")]
fn starts_a_family((): ()) {
    let script = "(sleep 600 &); exec sleep 600";
    std::process::Command::new("sh").args(["-c", script]).spawn().expect("a shell");
}

/// Writes to the terminal and reads from it, in the background. Returns the error of the read.
fn uses_the_terminal((): ()) -> Option<i32> {
    println!("written by a task");
    let mut terminal = std::fs::File::open("/dev/tty").expect("a terminal");
    let read = std::io::Read::read(&mut terminal, &mut [0]);
    read.err().and_then(|error| error.raw_os_error())
}

fn in_a_sandbox() {
    let sandbox = Sandbox::strict();
    let pool = Pool::builder().workers(1).sandbox(sandbox).build().expect("a pool");
    let read = outcome(pool.submit(reads_its_output, ()).expect("a task"));
    println!("the output says {:?}", read.expect("a result"));
}

/// Writes to standard output and reads from it. Returns the error of the read.
fn reads_its_output((): ()) -> Option<i32> {
    println!("written by a task");
    let read = rustix::io::read(std::io::stdout(), &mut [0; 1]);
    read.err().map(rustix::io::Errno::raw_os_error)
}

/// Returns the signals that a worker blocks, and `true` if its children can be waited for.
fn signals((): ()) -> String {
    let status = std::fs::read_to_string("/proc/self/status").expect("this process");
    let blocked = status.lines().find(|line| line.starts_with("SigBlk")).unwrap_or_default();
    let waited = std::process::Command::new("true").status();
    format!("{blocked} {waited:?}")
}

fn starved() -> Result<(), String> {
    let pool = Pool::builder().workers(2).build().map_err(|error| chain(&error))?;
    let handles = [1, 2, 3].map(|number| pool.submit(spins, number));
    for handle in handles {
        let handle = handle.map_err(|error| error.to_string())?;
        outcome(handle).map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// Waits to be killed. If nobody does, the program ends by itself.
fn wait_for_the_end() {
    pause(Duration::max(BOUND, Duration::from_secs(30)));
}
