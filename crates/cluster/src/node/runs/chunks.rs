//! The threads that run chunks: each takes one, applies the function to its items, and reports.
//!
//! A chunk is taken by a thread, which runs it, or by the driver, which cancels it; the first of
//! them counts. A chunk that has begun is finished.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use brigade_pool::{Encoded, Key, Pool, TaskError, TaskErrorKind};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::{EndedRun, RunOutcome, has_no_outcome};
use crate::message::{Items, ItemsBuilder, RunSettings, TaskHead};
use crate::names::Lane;
use crate::node::machine::Token;
use crate::requirements::Requirements;

/// A chunk of a map.
pub(super) struct Chunk {
    token: Token,
    function: Key<Encoded, Encoded>,
    count: u32,
    settings: RunSettings,
    requirements: Requirements,
    items: Items,
    is_taken: Arc<AtomicBool>,
}

/// The threads, and the chunks that they were given.
pub(super) struct Chunks {
    pool: Arc<Pool>,
    sender: Sender<Chunk>,
    waiting: Arc<Mutex<Receiver<Chunk>>>,
    ended: UnboundedSender<EndedRun>,
    threads: usize,
    /// `true` for chunks that are taken, until they are known to have ended.
    are_taken: HashMap<Token, Arc<AtomicBool>>,
}

impl Chunk {
    pub(super) fn new(
        token: Token,
        function: Key<Encoded, Encoded>,
        head: &TaskHead,
        lane: &Lane,
        items: Items,
    ) -> Self {
        let (count, settings) = (head.items, head.run);
        let (is_taken, requirements) = (Arc::default(), lane.class.requirements());
        Self { token, function, count, settings, requirements, items, is_taken }
    }

    fn run(self, pool: &Pool) -> EndedRun {
        let begun = Instant::now();
        let token = self.token;
        if self.is_taken.swap(true, Ordering::AcqRel) {
            return EndedRun::not_begun(token, None);
        }
        let inputs = self.items.filter_map(|item| Some(Encoded::new(item.ok()?.to_vec())));
        let mut map = pool.map(&self.function, inputs).retry(self.settings.retry);
        if self.settings.retries_panics {
            map = map.retry_panics();
        }
        if self.settings.retries_errors {
            map = map.__retry_encoded_errors();
        }
        for (resource, amount) in self.requirements.resources() {
            map = map.needs(resource, amount);
        }
        // The node counts one worker and one share of its resources for a chunk, so it runs in one
        // worker at a time. Items of a fixed chunk share their time, so those with a deadline
        // travel as the pool thinks best.
        map = match self.settings.deadline {
            Some(limit) => map.deadline(limit).__one_at_a_time(),
            None => map.chunk(self.count.try_into().unwrap_or(usize::MAX)),
        };
        let mut outcome = ItemsBuilder::default();
        for result in map {
            match result {
                Ok(value) => outcome.push_value(value.as_slice()),
                Err(error) if has_no_outcome(&error) => {
                    return EndedRun::not_begun(token, Some(&error));
                }
                Err(error) => outcome.push_error(&error),
            }
        }
        while outcome.count() < self.count {
            let message = "the items of the chunk are cut off".to_owned();
            outcome.push_error(&TaskError::of(TaskErrorKind::Codec { message }, None, 1, None));
        }
        let (count, run_time) = (outcome.count(), begun.elapsed());
        let outcome = RunOutcome { items: outcome.finish(), count, run_time };
        EndedRun::done(token, outcome)
    }
}

impl Chunks {
    pub(super) fn new(pool: Arc<Pool>) -> (Self, UnboundedReceiver<EndedRun>) {
        let (sender, waiting) = channel();
        let (ended, ended_receiver) = unbounded_channel();
        let waiting = Arc::new(Mutex::new(waiting));
        let are_taken = HashMap::new();
        (Self { pool, sender, waiting, ended, threads: 0, are_taken }, ended_receiver)
    }

    /// Lets a chunk run as soon as a thread is free.
    pub(super) fn start(&mut self, chunk: Chunk) {
        self.are_taken.retain(|_, is_taken| Arc::strong_count(is_taken) > 1);
        self.are_taken.insert(chunk.token, Arc::clone(&chunk.is_taken));
        // One more than workers, so that one chunk is collected while the others run.
        if self.threads <= self.pool.workers() && self.are_taken.len() > self.threads {
            self.start_thread();
        }
        // The receiver is kept here, so it is there.
        let _ = self.sender.send(chunk);
    }

    pub(super) fn cancel(&mut self, token: Token) {
        if let Some(is_taken) = self.are_taken.get(&token)
            && !is_taken.swap(true, Ordering::AcqRel)
        {
            let _ = self.ended.send(EndedRun::not_begun(token, None));
        }
    }

    fn start_thread(&mut self) {
        let (waiting, pool) = (Arc::clone(&self.waiting), Arc::clone(&self.pool));
        let ended = self.ended.clone();
        let next = move || waiting.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let run = move || {
            // Ends with the driver, which owns the sender.
            while let Ok(chunk) = next() {
                let end = chunk.run(&pool);
                let _ = ended.send(end);
            }
        };
        match thread::Builder::new().name("brigade-chunks".to_owned()).spawn(run) {
            Ok(_) => self.threads += 1,
            Err(error) => tracing::error!(%error, "cannot start a thread for chunks"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;
    use std::time::Duration;

    use brigade_testkit::pause;

    use super::*;
    use crate::names::{ItemId, Origin, Priority, TaskKey};
    use crate::requirements::Class;

    static OCCUPY: Key<(), ()> = Key::new("occupy/1", occupy);
    static CALLS: AtomicU32 = AtomicU32::new(0);
    static RUNNING: AtomicU32 = AtomicU32::new(0);
    static MAX: AtomicU32 = AtomicU32::new(0);

    /// The first items are brief, so that several slow ones travel together then.
    fn occupy((): ()) {
        if CALLS.fetch_add(1, Ordering::SeqCst) < 9 {
            return;
        }
        let running = RUNNING.fetch_add(1, Ordering::SeqCst) + 1;
        MAX.fetch_max(running, Ordering::SeqCst);
        pause(Duration::from_millis(20));
        RUNNING.fetch_sub(1, Ordering::SeqCst);
    }

    #[test]
    fn a_chunk_with_a_deadline_occupies_one_worker_at_a_time() {
        const ITEMS: u32 = 24;
        let pool = Pool::builder().in_process().workers(4).build().unwrap();
        let key = TaskKey { origin: Origin::batch("b").unwrap(), item: ItemId::number(1) };
        let deadline = Some(Duration::from_secs(60));
        let run = RunSettings { deadline, ..RunSettings::default() };
        let head = TaskHead { items: ITEMS, is_chunk: true, run, ..TaskHead::new(key, "it") };
        let mut items = ItemsBuilder::default();
        (0..ITEMS).for_each(|_| items.push(&[]));
        let lane = Lane { priority: Priority::Normal, class: Class::default() };
        let chunk = Chunk::new(Token(1), OCCUPY.erase(), &head, &lane, items.finish());
        let outcome = chunk.run(&pool).outcome.unwrap();
        assert_eq!(outcome.count, ITEMS);
        assert_eq!(MAX.load(Ordering::SeqCst), 1);
    }
}
