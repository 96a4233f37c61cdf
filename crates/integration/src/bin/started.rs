//! A program that is started in odd ways: uses workers that are started in the ways that its
//! arguments name, and reports each.

#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "a program whose output the tests read")]

use std::error::Error;
use std::fs;
use std::io;
use std::time::Duration;

use brigade::{Link, Pool, PoolBuilder, Start, Stdio, TaskError, TaskErrorKind};
use brigade_sys::process::{Process, command};
use brigade_sys::wait::wait_readable;
use brigade_testkit::faults::{aborts, echoes, hangs, panics_with_str};
use brigade_testkit::{BOUND, Watchdog, outcome};

const WORKERS: usize = 3;

/// Bytes of an argument that travels in memory of its own.
const LARGE: usize = 300_000;

fn main() -> Result<(), Box<dyn Error>> {
    brigade::init();
    let mut modes = std::env::args().skip(1);
    while let Some(mode) = modes.next() {
        let _watchdog = Watchdog::new(format!("a program that was started oddly: {mode}"), BOUND);
        let builder = Pool::builder().workers(WORKERS);
        let builder = match mode.as_str() {
            "waits" => {
                println!("waits");
                io::stdin().read_line(&mut String::new())?;
                continue;
            }
            "report" => {
                reports_a_crash()?;
                println!("report: well");
                continue;
            }
            "strangers" => {
                let mut number = || modes.next().ok_or("no number");
                spares_strangers(&number()?, &number()?)?;
                continue;
            }
            "auto" => builder,
            "exec" => builder.start(Start::Exec),
            "fork" => builder.start(Start::Fork),
            "fresh" => builder.fresh_process_per_task(),
            "spare" => builder.spare_workers(1),
            "ipc" => builder.link(Link::Ipc),
            "silent" => builder.stdio(Stdio::Null),
            other => return Err(format!("unknown mode: {other}").into()),
        };
        use_pool(builder).map_err(|error| format!("{mode}: {error}"))?;
        println!("{mode}: well");
    }
    Ok(())
}

/// Has a pool do what pools do: tasks, large arguments, panics, deaths and deadlines.
fn use_pool(builder: PoolBuilder) -> Result<(), Box<dyn Error>> {
    let pool = builder.build()?;
    pool.warm_up()?;
    let sent = vec![7; LARGE];
    let handles = (0..2 * WORKERS).map(|_| pool.submit(echoes, sent.clone()));
    for handle in handles.collect::<Result<Vec<_>, _>>()? {
        assert_eq!(outcome(handle)?, sent, "another value");
    }
    let ended = |result: Result<(), TaskError>| result.err().map(|it| it.kind().clone());
    let panicked = ended(outcome(pool.submit(panics_with_str, ())?));
    assert!(matches!(panicked, Some(TaskErrorKind::Panicked { .. })), "{panicked:?}");
    let died = ended(outcome(pool.submit(aborts, ())?));
    assert!(matches!(died, Some(TaskErrorKind::WorkerDied { .. })), "{died:?}");
    let late = ended(outcome(pool.task(hangs).deadline(Duration::from_millis(20)).submit(())?));
    assert!(matches!(late, Some(TaskErrorKind::DeadlineExceeded { .. })), "{late:?}");
    assert_eq!(outcome(pool.submit(echoes, sent.clone())?)?, sent, "another value");
    pool.shutdown()?;
    Ok(())
}

/// Has a worker crash, and finds the names of its functions in the file of this program.
fn reports_a_crash() -> Result<(), Box<dyn Error>> {
    let pool = Pool::builder().workers(1).build()?;
    let died = outcome(pool.submit(aborts, ())?).err().ok_or("a task survived its abort")?;
    let report = died.crash().and_then(|crash| crash.stack()).map(ToString::to_string);
    assert!(report.as_ref().is_some_and(|it| it.contains("endings::aborts")), "{report:?}");
    Ok(())
}

/// Kills a process whose number, in another pid namespace, is that of a process with a child. The
/// number of the child is that of a stranger here, who must live on.
fn spares_strangers(parent: &str, child: &str) -> Result<(), Box<dyn Error>> {
    let sleeper = |number: &str| -> Result<Process, Box<dyn Error>> {
        fs::write("/proc/sys/kernel/ns_last_pid", (number.parse::<u32>()? - 1).to_string())?;
        let process = Process::spawn(command("sleep").arg("60"))?;
        assert_eq!(process.pid().to_string(), number, "another number");
        Ok(process)
    };
    let (process, stranger) = (sleeper(parent)?, sleeper(child)?);
    let swept = process.kill_tree()?;
    process.reap()?;
    let has_ended = wait_readable(&[stranger.pidfd()], Some(brigade_sys::clock::now()))?[0];
    assert!(!has_ended && swept.killed.is_empty(), "{swept:?}");
    println!("strangers: well");
    Ok(())
}
