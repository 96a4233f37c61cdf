//! Measures the time from deadline to death, with one late process at a time.

use std::error::Error;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use brigade_sys::clock::now;
use brigade_sys::wait::wait_readable;
use brigade_testkit::Random;
use brigade_timer::TimerServer;

use super::lateness::start_late;
use super::print_times;

pub(crate) fn measure(processes: usize, python: &Path) -> Result<(), Box<dyn Error>> {
    let mut server = TimerServer::builder().build()?;
    server.start()?;
    let mut random = Random::new(1);
    let mut times = Vec::new();
    for _ in 0..processes {
        let after = Duration::from_micros(random.within(100_000..500_000));
        let deadline = now().saturating_add(after);
        let process = start_late(&server.client(), deadline)?;
        wait_readable(&[process.pidfd()], None)?;
        times.push(now().saturating_since(deadline));
        process.reap()?;
    }
    print_times("brigade: deadline to dead", &mut times);
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/peers/timer.py");
    for peer in ["pebble", "billiard"] {
        // billiard logs each killed worker to standard error.
        let arguments = [script, peer, &processes.to_string()];
        let status = Command::new(python).args(arguments).stderr(Stdio::null()).status()?;
        if !status.success() {
            println!("{peer} cannot be measured: {status}");
        }
    }
    Ok(())
}
