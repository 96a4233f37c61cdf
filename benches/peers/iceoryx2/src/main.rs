//! Measures the hand-over of samples by iceoryx2: `iceoryx2-peer SECTION LOAD`. Prints one JSON
//! object.
//!
//! A second process of this program publishes; this one polls, which is the fastest way to receive.

#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::error::Error;
use std::hint::{black_box, spin_loop};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

use iceoryx2::port::publisher::Publisher;
use iceoryx2::port::subscriber::Subscriber;
use iceoryx2::prelude::*;
use rustix::process::{Signal, getppid, set_parent_process_death_signal};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

/// The fields of the load that are needed here.
#[derive(Debug, Deserialize)]
struct Load {
    handover_sizes: Vec<usize>,
    payload_budget: usize,
}

#[derive(Debug, Default, Serialize)]
struct Report {
    version: &'static str,
    figures: BTreeMap<String, f64>,
    missing: BTreeMap<String, String>,
}

type Outcome<T> = Result<T, Box<dyn Error>>;

/// First argument of the process that publishes.
const PUBLISH: &str = "--publish";

fn main() -> Outcome<()> {
    // Exit with the process that started this one, however it ends.
    set_parent_process_death_signal(Some(Signal::KILL))?;
    set_log_level(LogLevel::Error);
    let mut arguments = std::env::args().skip(1);
    let first = arguments.next().ok_or("no section")?;
    let second = arguments.next().ok_or("no load")?;
    if first == PUBLISH {
        return publish(&second, arguments.next().ok_or("no size")?.parse()?);
    }
    let parent = getppid().map(|parent| parent.as_raw_nonzero().get().to_string());
    if parent != std::env::var("BRIGADE_BENCH_PARENT").ok() {
        return Err("the run that started this process has ended".into());
    }
    let load: Load = serde_json::from_str(&second)?;
    let mut report = Report { version: "0.10.0", ..Report::default() };
    for &size in &load.handover_sizes {
        let name = format!("sample_{size}_seconds");
        match median(size, (load.payload_budget / size).clamp(3, 100)) {
            Ok(seconds) => drop(report.figures.insert(name, seconds)),
            Err(error) => drop(report.missing.insert(name, error.to_string())),
        }
    }
    println!("{}", serde_json::to_string(&report)?);
    Ok(())
}

/// Samples that do not count: their memory was not used before.
const COLD: usize = 5;

fn median(size: usize, repetitions: usize) -> Outcome<f64> {
    let name = format!("brigade-bench-{}-{size}", std::process::id());
    let (_node, _, subscriber) = ports(&name, size, Port::Subscriber)?;
    let subscriber = subscriber.ok_or("no subscriber")?;
    let mut other = Other::start(&name, size)?;
    let mut times = Vec::new();
    for repetition in 0..COLD + repetitions {
        other.tell()?; // to write a sample
        other.wait()?;
        other.tell()?; // to send it
        let sample = loop {
            match subscriber.receive()? {
                Some(sample) => break sample,
                None => spin_loop(),
            }
        };
        let bytes = sample.payload();
        black_box((bytes.first(), bytes.last()));
        let time = now().saturating_sub(*sample.user_header());
        if bytes.len() != size || bytes.first() != Some(&1) || bytes.last() != Some(&1) {
            return Err("other bytes were received than sent".into());
        }
        if repetition < COLD {
            black_box(bytes.iter().map(|&byte| u64::from(byte)).sum::<u64>());
        } else {
            times.push(Duration::from_nanos(time).as_secs_f64());
        }
    }
    times.sort_by(f64::total_cmp);
    Ok(times[times.len() / 2])
}

/// The process that publishes.
struct Other {
    child: Child,
    /// Its end ends the process.
    input: Option<ChildStdin>,
    output: BufReader<std::process::ChildStdout>,
}

impl Other {
    fn start(name: &str, size: usize) -> Outcome<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .args([PUBLISH, name, &size.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().ok_or("no pipe")?);
        Ok(Self { child, input, output })
    }

    fn tell(&mut self) -> Outcome<()> {
        Ok(self.input.as_mut().ok_or("no pipe")?.write_all(b"\n")?)
    }

    fn wait(&mut self) -> Outcome<()> {
        let mut line = String::new();
        if self.output.read_line(&mut line)? == 0 {
            return Err("the publisher has exited".into());
        }
        Ok(())
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        // It removes its files before it exits.
        drop(self.input.take());
        let _ = self.child.wait();
    }
}

/// Writes and sends a sample for every two lines on standard input.
fn publish(name: &str, size: usize) -> Outcome<()> {
    let (_node, publisher, _) = ports(name, size, Port::Publisher)?;
    let publisher = publisher.ok_or("no publisher")?;
    let mut lines = std::io::stdin().lines();
    while lines.next().is_some() {
        let mut sample = publisher.loan_slice(size)?;
        sample.payload_mut().fill(1);
        println!();
        lines.next();
        *sample.user_header_mut() = now();
        sample.send()?;
    }
    Ok(())
}

enum Port {
    Publisher,
    Subscriber,
}

type Ports = (
    Node<ipc::Service>,
    Option<Publisher<ipc::Service, [u8], u64>>,
    Option<Subscriber<ipc::Service, [u8], u64>>,
);

/// Opens the service, and returns one of its ports.
fn ports(name: &str, size: usize, port: Port) -> Outcome<Ports> {
    let node = NodeBuilder::new().create::<ipc::Service>()?;
    let service = node
        .service_builder(&name.try_into()?)
        .publish_subscribe::<[u8]>()
        .user_header::<u64>()
        .subscriber_max_buffer_size(1)
        .subscriber_max_borrowed_samples(1)
        .history_size(0)
        .open_or_create()?;
    Ok(match port {
        Port::Publisher => {
            let builder = service.publisher_builder().initial_max_slice_len(size);
            (node, Some(builder.max_loaned_samples(1).create()?), None)
        }
        Port::Subscriber => (node, None, Some(service.subscriber_builder().create()?)),
    })
}

/// Returns nanoseconds of the clock that all processes share.
fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000
        + u64::try_from(time.tv_nsec).unwrap_or(0)
}
