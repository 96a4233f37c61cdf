//! Measures the time between a process's deadline and its death.

use std::collections::HashMap;
use std::error::Error;
use std::process::Stdio;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use brigade_sys::clock::{Monotonic, now};
use brigade_sys::process::{Process, command};
use brigade_testkit::Random;
use brigade_timer::{TimerClient, TimerEvent, TimerServer};

use super::print_times;

/// Number of processes that live at the same time.
const WAVE: usize = 400;

/// Time before the first deadline, so that starting processes does not disturb killing them.
const LEAD: Duration = Duration::from_secs(2);

/// Longer than anything here can take.
const BOUND: Duration = Duration::from_secs(60);

/// Registers a deadline, in nanoseconds of the monotonic clock, and hangs past it.
pub(crate) fn hang_past(deadline: u64) -> Result<(), Box<dyn Error>> {
    let client = TimerClient::from_environment()?;
    let left = Monotonic::from_nanos(deadline).saturating_since(now());
    client.acquire("late", Instant::now() + left)?;
    loop {
        std::thread::park();
    }
}

/// Starts a process that hangs past its deadline.
pub(super) fn start_late(
    client: &TimerClient,
    deadline: Monotonic,
) -> Result<Process, Box<dyn Error>> {
    let mut command = command(std::env::current_exe()?);
    command.args(["late", &deadline.as_nanos().to_string()]).stdin(Stdio::null());
    Ok(Process::spawn(client.hand_to(&mut command))?)
}

pub(crate) fn measure(deadlines: usize, busy: usize) -> Result<(), Box<dyn Error>> {
    let (sender, events) = channel();
    let mut server = TimerServer::builder()
        .on_event(move |event| sender.send((now(), event.clone())).unwrap_or(()))
        .build()?;
    server.start()?;
    let spin = "while :; do :; done";
    let busy: Vec<Process> = (0..busy)
        .map(|_| Process::spawn(command("sh").args(["-c", spin])))
        .collect::<Result<_, _>>()?;
    let mut random = Random::new(1);
    let (mut seen, mut killed, mut early) = (Vec::new(), Vec::new(), 0);
    while killed.len() < deadlines {
        let start = now().saturating_add(LEAD);
        let processes = (0..WAVE.min(deadlines - killed.len()))
            .map(|_| {
                let after = Duration::from_nanos(random.within(1_000_000..500_000_000));
                start_late(&server.client(), start.saturating_add(after))
            })
            .collect::<Result<Vec<_>, _>>()?;
        early += wave(&events, processes.len(), &mut seen, &mut killed)?;
        for process in processes {
            process.reap()?;
        }
    }
    drop(busy);
    println!("killed early: {early}");
    print_times("deadline to its expiry seen (server's log)", &mut seen);
    print_times("deadline to killed (server's log)", &mut killed);
    Ok(())
}

/// Reads events until `processes` more are killed, and returns the number killed too early.
fn wave(
    events: &Receiver<(Monotonic, TimerEvent)>,
    processes: usize,
    seen: &mut Vec<Duration>,
    killed: &mut Vec<Duration>,
) -> Result<usize, Box<dyn Error>> {
    let mut deadlines = HashMap::new();
    let (mut early, end) = (0, killed.len() + processes);
    while killed.len() < end {
        match events.recv_timeout(BOUND)? {
            (_, TimerEvent::Expired { pid, timers, lateness }) => {
                deadlines.insert(pid, timers[0].deadline);
                seen.push(lateness);
            }
            (at, TimerEvent::Killed { pid, lateness, .. }) => {
                early += usize::from(deadlines.get(&pid).is_none_or(|deadline| at < *deadline));
                killed.push(lateness);
            }
            _ => {}
        }
    }
    Ok(early)
}
