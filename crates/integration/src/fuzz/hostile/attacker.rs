//! A worker that knows the protocol and breaks it at random.

use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use brigade_sys::segment::Segment;
use brigade_testkit::{Random, pause};
use brigade_wire::handshake::FromWorkerControl;
use rustix::process::{Signal, getpid, kill_process};

use super::lies;
use crate::liar::{Frame, Greeting, Worker};

/// The argument that makes the program an attacker. The seed follows.
pub(super) const WORD: &str = "attack";

/// The argument that makes it lie in the handshake too.
pub(super) const GREETS: &str = "greet";

/// Longer than the deadline of a task.
const LONG: Duration = Duration::from_millis(400);

/// Attacks the host, if that is what this process was started for. Returns `false` if it was not.
pub fn attack() -> bool {
    let mut arguments = std::env::args().skip(1);
    if arguments.next().as_deref() != Some(WORD) {
        return false;
    }
    let seed = arguments.next().and_then(|seed| seed.parse().ok()).unwrap_or(0);
    run(seed, arguments.next().as_deref() == Some(GREETS));
    true
}

fn run(seed: u64, greets: bool) {
    let greeting = Greeting::receive();
    let (slot, generation) = (greeting.hello.worker.slot, greeting.hello.worker.generation);
    let own = (u64::from(slot) << 32) | u64::from(generation);
    let mut random = Random::new(seed.wrapping_add(own.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
    if greets && random.chance(30) {
        greet(&greeting, &mut random);
    }
    let mut worker = greeting.accept();
    if random.chance(30) {
        scribble_meanwhile(&worker.segment, random.number());
    }
    // Some attackers bide their time.
    let evil = *random.choose(&[2, 10, 50]);
    while let Some(frame) = worker.receive() {
        if random.chance(90) && !worker.begin(&frame) && random.chance(90) {
            continue;
        }
        if random.chance(evil) {
            act(&mut worker, &frame, &mut random);
        }
        if random.chance(95) {
            worker.answer(&frame);
        }
    }
}

/// Lies in the handshake.
fn greet(greeting: &Greeting, random: &mut Random) {
    match random.within(0..6) {
        0 => std::process::exit(i32::try_from(random.within(0..256)).unwrap_or(1)),
        1 => drop(greeting.control.send(&lies::noise(random, 3000), &[])),
        2 => greeting.send(FromWorkerControl::Ready),
        3 => greeting.send(lies::control(random)),
        4 => pause(LONG),
        _ => {
            let mut answer = greeting.answer();
            lies::distort(&mut answer, random);
            greeting.send(FromWorkerControl::Answer(answer));
        }
    }
}

/// Does one thing that no worker does.
fn act(worker: &mut Worker, frame: &Frame, random: &mut Random) {
    match random.within(0..16) {
        0 => {
            for _ in 0..random.within(1..20) {
                let noise = lies::noise(random, 5000);
                worker.send_bytes(&noise, &[]);
            }
        }
        1 => worker.answer(frame),
        2 | 3 => lies::finish(worker, frame, random),
        4 => lies::emit(worker, frame, random),
        5 => lies::distorted(worker, frame, random),
        6 => lies::segmented(worker, frame, random),
        7 => lies::value_in_an_arena(worker, frame, random),
        8 => scribble(&worker.segment, random),
        9 => {
            for _ in 0..*random.choose(&[1, 1, 10, 3000]) {
                let packet = match random.within(0..3) {
                    0 => lies::noise(random, 70_000),
                    _ => lies::control(random).encode().unwrap_or_default(),
                };
                let _ = worker.control.try_send(&packet, &[]);
            }
        }
        10 => {
            // Descriptors that nobody has asked for.
            let own = worker.control_descriptors();
            let packet = lies::control(random).encode().unwrap_or_default();
            for _ in 0..random.within(1..50) {
                let _ = worker.control.try_send(&packet, &own);
            }
        }
        11 => {
            for other in &worker.others {
                let file = std::fs::File::from(other.try_clone().expect("a descriptor"));
                let noise = lies::noise(random, 100_000);
                // An arena takes it somewhere, and a pipe at its end.
                let _ = file.write_at(&noise, random.within(0..1 << 21));
                let _ = (&file).write(&noise[..noise.len().min(4096)]);
            }
        }
        12 => {
            let noise = lies::noise(random, 100_000);
            let _ = std::io::stderr().write_all(&noise);
        }
        13 => pause(random.below(LONG)),
        14 => {
            let _ =
                kill_process(getpid(), *random.choose(&[Signal::KILL, Signal::STOP, Signal::SEGV]));
        }
        _ => std::process::exit(i32::try_from(random.within(0..256)).unwrap_or(1)),
    }
}

/// Overwrites states, rings, and the records of crashes.
fn scribble(segment: &Segment, random: &mut Random) {
    let words = segment.words();
    for _ in 0..random.within(1..100) {
        let most = (*random.choose(&[8, 64, 4096, u64::MAX])).min(words.len() as u64);
        let word = &words[usize::try_from(random.within(0..most)).unwrap_or(0)];
        let old = word.load(Ordering::Relaxed);
        let new = match random.within(0..4) {
            0 => random.number(),
            1 => random.within(0..100),
            2 => old ^ (1 << random.within(0..64)),
            _ => old.wrapping_add(random.within(0..20)).wrapping_sub(10),
        };
        word.store(new, Ordering::Relaxed);
    }
}

/// Goes on to do so while the host reads.
fn scribble_meanwhile(segment: &Arc<Segment>, seed: u64) {
    let segment = Arc::clone(segment);
    thread::spawn(move || {
        let mut random = Random::new(seed);
        loop {
            pause(random.below(LONG));
            for _ in 0..random.within(1..50) {
                scribble(&segment, &mut random);
            }
        }
    });
}

impl Worker {
    fn control_descriptors(&self) -> Vec<std::os::fd::BorrowedFd<'_>> {
        self.others.iter().map(AsFd::as_fd).chain([rustix::stdio::stderr()]).take(4).collect()
    }
}
