//! Measures the client's cost of arming and releasing a deadline.

use std::error::Error;
use std::path::Path;
use std::process::Command;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use brigade_timer::{Escalation, TimerEvent, TimerServer};

use super::print_times;

/// Longer than any measurement here.
const LONG: Duration = Duration::from_secs(3_600);

pub(crate) fn measure(rounds: u32, python: &Path) -> Result<(), Box<dyn Error>> {
    ours(rounds)?;
    ipc_channel(rounds)?;
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/peers/timer.py");
    let status = Command::new(python).args([script, "requests", &rounds.to_string()]).status()?;
    if !status.success() {
        return Err(format!("{} failed: {status}", python.display()).into());
    }
    Ok(())
}

fn ours(rounds: u32) -> Result<(), Box<dyn Error>> {
    let (sender, events) = channel();
    let mut server = TimerServer::builder()
        .on_event(move |event| sender.send(event.clone()).unwrap_or(()))
        .build()?;
    server.start()?;
    let client = server.client();
    client.connect()?;
    let mut times = Vec::new();
    let start = Instant::now();
    for _ in 0..rounds {
        let begin = Instant::now();
        drop(client.expires(LONG)?);
        times.push(begin.elapsed());
    }
    let sent = start.elapsed();
    // Requests are served in order, so this one expires after all others were served.
    client.with_escalation(Escalation::log_only()).acquire("end", Instant::now())?;
    let end = events.iter().find(|event| matches!(event, TimerEvent::Expired { .. }));
    end.ok_or("the server has ended")?;
    print_mean("acquire + release", rounds, sent, start.elapsed());
    print_times("acquire + release", &mut times);
    Ok(())
}

/// Sends the same bytes over ipc-channel to a thread that only receives: the minimum cost of a
/// server that used it.
fn ipc_channel(rounds: u32) -> Result<(), Box<dyn Error>> {
    let (sender, receiver) = ipc_channel::ipc::bytes_channel()?;
    let thread = std::thread::spawn(move || {
        (0..2 * rounds)
            .try_for_each(|_| receiver.recv().map(drop))
            .map_err(|error| error.to_string())
    });
    let packet = [1; 16];
    let mut times = Vec::new();
    let start = Instant::now();
    for _ in 0..rounds {
        let begin = Instant::now();
        sender.send(&packet)?;
        sender.send(&packet)?;
        times.push(begin.elapsed());
    }
    let sent = start.elapsed();
    thread.join().map_err(|_| "the receiver panicked")??;
    print_mean("two packets over ipc-channel", rounds, sent, start.elapsed());
    print_times("two packets over ipc-channel", &mut times);
    Ok(())
}

fn print_mean(name: &str, rounds: u32, sent: Duration, served: Duration) {
    let (sent, served) = (sent / rounds, served / rounds);
    println!("{name:44} a round: {sent:.2?} to send, {served:.2?} until served");
}
