//! Guards three child processes: one finishes in time, one is late, and one has children and hangs.
//!
//! ```sh
//! cargo run -p brigade-timer --example watchdog
//! ```

#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use std::error::Error;
use std::process::Stdio;
use std::time::Duration;

use brigade_sys::process::{Process, command};
use brigade_timer::{Escalation, Signal, TimerClient, TimerEvent, TimerServer};

fn main() -> Result<(), Box<dyn Error>> {
    match std::env::args().nth(1) {
        Some(role) => child(&role),
        None => parent(),
    }
}

fn parent() -> Result<(), Box<dyn Error>> {
    // A process that overruns gets 100 ms to clean up. Then it is killed with all its descendants.
    let escalation = Escalation::kill().after(Signal::Terminate, Duration::from_millis(100));
    let mut server = TimerServer::builder().escalation(escalation).on_event(tell).build()?;
    server.start()?;
    let client = server.client();
    let children = ["in-time", "late", "family"].map(|role| -> Result<_, Box<dyn Error>> {
        let mut command = command(std::env::current_exe()?);
        client.hand_to(command.arg(role).stdin(Stdio::null()));
        Ok((role, Process::spawn(&mut command)?))
    });
    for child in children {
        let (role, process) = child?;
        println!("{role:8} (process {}) has ended: {}", process.pid(), process.reap()?);
    }
    server.stop();
    Ok(())
}

fn tell(event: &TimerEvent) {
    match event {
        TimerEvent::Expired { pid, timers, lateness } => {
            let timer = &timers[0];
            println!(
                "server:  a deadline of process {pid} has come ({}), seen {lateness:?} late",
                timer.scope
            );
        }
        TimerEvent::Killed { pid, lateness, swept } => {
            println!(
                "server:  process {pid} is gone {lateness:?} after its deadline, and with it {:?}",
                swept.killed
            );
        }
        _ => {}
    }
}

fn child(role: &str) -> Result<(), Box<dyn Error>> {
    let client = TimerClient::from_environment()?;
    if role == "in-time" {
        let _guard = client.expires(Duration::from_secs(10))?;
        let sum: u64 = (0..1_000_000).sum();
        println!("in-time: has computed {sum} before its deadline");
        return Ok(());
    }
    let _family = if role == "family" {
        // They ignore SIGTERM, and some of them leave the process group.
        let script = "trap '' TERM; setsid sh -c 'sleep 60 & sleep 60' & sleep 60";
        Some(Process::spawn(command("sh").args(["-c", script]))?)
    } else {
        None
    };
    let _guard = client.expires(Duration::from_millis(300))?;
    loop {
        // Parked forever.
        std::thread::park();
    }
}
