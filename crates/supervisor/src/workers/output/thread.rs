//! The thread that forwards the workers' output and emits events; see [`output`](crate::output).

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use brigade_sys::catch_panic::catch_panic;
use tracing::warn;

use crate::workers::alarm::ThreadAlarm;
use crate::workers::output::{CHUNK, Entry, LostEntries, Pipe, run_note};
use crate::workers::supervised::Supervised;

/// Forwards output and emits events until the pool ends.
pub fn run(owner: &impl Supervised) {
    let output = &owner.supervisor().output;
    if let Err(error) = forward_all(owner) {
        owner.gave_up("forward the workers' output", &error);
        output.alarm.switch_to_parking();
        // Nobody reads the pipes anymore. They are closed, so that a worker that writes gets an
        // error instead of blocking.
        while !process_queue(owner) {
            drop(output.pipes.take_new());
            ThreadAlarm::sleep(None);
        }
    }
    output.queue.end();
    // What came after the last turn.
    output.run_kept(&owner.settings().pool);
}

fn forward_all(owner: &impl Supervised) -> io::Result<()> {
    let output = &owner.supervisor().output;
    let poller = &output.pipes.poller;
    poller.add(&output.alarm, ALARM)?;
    let mut pipes: HashMap<u64, Arc<Pipe>> = HashMap::new();
    let (mut ready, mut bytes) = (Vec::new(), Vec::new());
    while !process_queue(owner) {
        pipes.retain(|_, pipe| {
            if pipe.is_closed() {
                poller.remove(&**pipe);
            }
            !pipe.is_closed()
        });
        output.pipes.check()?;
        poller.ready_until(None, &mut ready)?;
        pipes.extend(output.pipes.take_new());
        for token in &ready {
            let Some(pipe) = pipes.get(token) else {
                output.alarm.drain();
                continue;
            };
            bytes.clear();
            let is_end = pipe.read(CHUNK, &mut bytes);
            pipe.forward(&bytes, is_end);
        }
    }
    Ok(())
}

/// Token of the descriptor that wakes the thread.
const ALARM: u64 = 0;

/// Empties the queue. Returns `true` if the pool has ended.
fn process_queue(owner: &impl Supervised) -> bool {
    let output = &owner.supervisor().output;
    // Read before the queue is emptied; anything added later is no longer needed.
    let ended = output.alarm.has_ended();
    let pool = owner.settings().pool.as_str();
    while let Some(entry) = output.queue.next() {
        match entry {
            Entry::Event(note) => run_note(pool, note),
            Entry::Rest(pipe, bytes) => pipe.forward(&bytes, true),
        }
        if output.queue.done() {
            owner.supervisor().reaper.wake();
        }
    }
    output.run_kept(pool);
    if let Some(LostEntries { events, bytes }) = output.queue.take_lost() {
        let tell = || {
            warn!(
                pool,
                events,
                bytes,
                "events and output were lost because the subscriber or stderr is too slow"
            );
        };
        let _ = catch_panic(tell);
    }
    ended
}
