//! Standard inputs that grow while their jobs run.
//!
//! Somebody gives blocks to the jobs, and the feeder takes them. Each job has at most one block
//! that waits, besides the one that it reads, so a giver that is faster than the jobs waits.

use std::fmt;
use std::sync::Arc;

use brigade_sys::sync::{Condvar, Mutex};
use brigade_sys::wait::Waker;

use crate::input_block::InputBlock;
use crate::same::equal_if_same;

/// The standard inputs of several jobs, to which blocks are given while the jobs run.
#[derive(Clone)]
pub struct BlockStreams(Arc<Shared>);

/// One of several [`BlockStreams`], the standard input of a job.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct BlockStream {
    streams: BlockStreams,
    index: usize,
    pub(crate) header: Arc<[u8]>,
}

struct Shared {
    state: Mutex<State>,
    /// Notified when there may be room.
    changed: Condvar,
}

struct State {
    streams: Vec<Stream>,
    /// `true` if no more blocks will be given.
    has_ended: bool,
    /// Number of blocks given so far.
    given: u64,
    /// `true` if all jobs must run at once.
    is_in_step: bool,
}

#[derive(Default)]
struct Stream {
    waiting: Option<InputBlock>,
    /// The number of the block that was given last.
    last: u64,
    /// `true` if its job needs no more blocks.
    is_over: bool,
    /// Wakes the feeder, once the job runs.
    waker: Option<Arc<Waker>>,
}

/// The answer of a stream that was asked for a block.
#[derive(Debug)]
pub(crate) enum BlockAnswer {
    Block(InputBlock),
    /// No block yet; the waker will be woken.
    Later,
    End,
}

impl BlockStreams {
    /// Returns this number of streams without blocks.
    pub fn new(count: usize) -> Self {
        Self::with(count, false)
    }

    /// Returns this number of streams for jobs that must all run at once, because a block for one
    /// of them is given after the others have taken theirs. A job that cannot start for lack of
    /// memory, descriptors or processes does not wait for the end of another one: it fails.
    pub fn in_step(count: usize) -> Self {
        Self::with(count, true)
    }

    fn with(count: usize, is_in_step: bool) -> Self {
        let streams = (0..count).map(|_| Stream::default()).collect();
        let state = Mutex::new(State { streams, has_ended: false, given: 0, is_in_step });
        Self(Arc::new(Shared { state, changed: Condvar::new() }))
    }

    /// Returns the stream with this index. The job gets the header first.
    pub fn stream(&self, index: usize, header: Arc<[u8]>) -> BlockStream {
        BlockStream { streams: self.clone(), index, header }
    }

    /// Gives a block to the job with this index. Waits while another block waits for it. A block
    /// for a job that is over is dropped. Returns `false` if all jobs are over.
    pub fn give_to(&self, index: usize, block: InputBlock) -> bool {
        self.give_where(block, |state| Some(index).filter(|index| state.streams[*index].has_room()))
    }

    /// Gives a block to the job that has waited longest of those for which no block waits. Waits
    /// until there is one. Returns `false` if all jobs are over; the block is dropped then.
    pub fn give(&self, block: InputBlock) -> bool {
        self.give_where(block, |state| {
            let streams = state.streams.iter().enumerate();
            let open = streams.filter(|(_, stream)| stream.has_room() && !stream.is_over);
            let next = open.min_by_key(|(_, stream)| stream.last).map(|(index, _)| index);
            // Any will do if all are over: it drops the block.
            next.or_else(|| state.are_over().then_some(0))
        })
    }

    /// Gives a block to all jobs. Waits while another block waits for any of them. Returns `false`
    /// if all jobs are over.
    pub fn give_to_all(&self, block: &InputBlock) -> bool {
        let mut state = self.0.state.lock();
        while !state.streams.iter().all(Stream::has_room) {
            state = self.0.changed.wait(state);
        }
        for index in 0..state.streams.len() {
            state.give(index, block.clone());
        }
        !state.are_over()
    }

    /// Returns `true` if all jobs are over.
    pub fn are_over(&self) -> bool {
        self.0.state.lock().are_over()
    }

    fn give_where(&self, block: InputBlock, choose: impl Fn(&State) -> Option<usize>) -> bool {
        let mut state = self.0.state.lock();
        let index = loop {
            match choose(&state) {
                Some(index) => break index,
                None => state = self.0.changed.wait(state),
            }
        };
        state.give(index, block);
        !state.are_over()
    }

    /// Ends all streams after the blocks that were given.
    pub fn end(&self) {
        let mut state = self.0.state.lock();
        state.has_ended = true;
        state
            .streams
            .iter()
            .filter_map(|stream| stream.waker.as_ref())
            .for_each(|waker| waker.wake());
    }

    /// Drops the blocks of the streams from this index on, those that wait and those that are given
    /// later: their jobs will not start, or are over.
    pub fn abandon_from(&self, index: usize) {
        let mut state = self.0.state.lock();
        state.streams.iter_mut().skip(index).for_each(Stream::leave);
        drop(state);
        self.0.changed.notify_all();
    }
}

impl BlockStream {
    /// Sets the waker for blocks that arrive later.
    pub(crate) fn on_block(&self, waker: &Arc<Waker>) {
        self.streams.0.state.lock().streams[self.index].waker = Some(Arc::clone(waker));
    }

    pub(crate) fn next(&self) -> BlockAnswer {
        let mut state = self.streams.0.state.lock();
        let has_ended = state.has_ended;
        let next = match state.streams[self.index].waiting.take() {
            Some(block) => BlockAnswer::Block(block),
            None if has_ended => BlockAnswer::End,
            None => BlockAnswer::Later,
        };
        drop(state);
        self.streams.0.changed.notify_all();
        next
    }

    /// Returns `true` if its job must run while the others do.
    pub(crate) fn is_in_step(&self) -> bool {
        self.streams.0.state.lock().is_in_step
    }

    /// Drops the blocks of a job that needs no more.
    pub(crate) fn leave(&self) {
        self.streams.0.state.lock().streams[self.index].leave();
        self.streams.0.changed.notify_all();
    }
}

impl State {
    fn are_over(&self) -> bool {
        self.streams.iter().all(|stream| stream.is_over)
    }

    /// Gives a block to a job, unless it is over.
    fn give(&mut self, index: usize, block: InputBlock) {
        self.given += 1;
        let stream = &mut self.streams[index];
        stream.last = self.given;
        if !stream.is_over {
            stream.waiting = Some(block);
            if let Some(waker) = &stream.waker {
                waker.wake();
            }
        }
    }
}

impl Stream {
    fn has_room(&self) -> bool {
        self.waiting.is_none() || self.is_over
    }

    fn leave(&mut self) {
        self.is_over = true;
        self.waiting = None;
    }
}

impl fmt::Debug for BlockStreams {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("BlockStreams").finish_non_exhaustive()
    }
}

equal_if_same!(BlockStreams);

#[cfg(test)]
mod tests {
    use super::*;

    fn block(text: &str) -> InputBlock {
        InputBlock::new(&[text.as_bytes()], 0, ()).map_err(|((), error)| error).expect("memory")
    }

    fn length(next: BlockAnswer) -> Option<u64> {
        if let BlockAnswer::Block(block) = next { Some(block.len()) } else { None }
    }

    #[test]
    fn blocks_go_to_jobs_for_which_none_waits_in_turns() {
        let streams = BlockStreams::new(2);
        let [first, second] = [0, 1].map(|index| streams.stream(index, Arc::default()));
        streams.give(block("a"));
        streams.give(block("bb"));
        assert_eq!(length(second.next()), Some(2));
        streams.give(block("ccc"));
        assert_eq!((length(first.next()), length(second.next())), (Some(1), Some(3)));
        streams.give(block("dddd"));
        assert_eq!(length(first.next()), Some(4));
        assert!(matches!(first.next(), BlockAnswer::Later));
        streams.end();
        assert!(matches!(first.next(), BlockAnswer::End));
    }

    #[test]
    fn nobody_waits_for_jobs_that_are_over() {
        let streams = BlockStreams::new(2);
        let [first, second] = [0, 1].map(|index| streams.stream(index, Arc::default()));
        first.leave();
        assert!(streams.give_to(0, block("a")));
        assert!(streams.give_to(0, block("a")));
        assert!(streams.give(block("bb")));
        assert_eq!(length(second.next()), Some(2));
        second.leave();
        assert!(!streams.give(block("c")));
    }

    #[test]
    fn nobody_waits_for_jobs_that_will_not_start() {
        let streams = BlockStreams::new(3);
        let first = streams.stream(0, Arc::default());
        streams.give_to(1, block("a"));
        streams.abandon_from(1);
        streams.give_to(1, block("a"));
        streams.give_to(2, block("a"));
        streams.give(block("bb"));
        assert_eq!(length(first.next()), Some(2));
    }

    #[test]
    fn a_block_for_all_waits_only_for_jobs_that_read_it() {
        let streams = BlockStreams::in_step(3);
        let [first, second, third] = [0, 1, 2].map(|index| streams.stream(index, Arc::default()));
        assert!(streams.give_to_all(&block("a")));
        assert_eq!((length(first.next()), length(second.next())), (Some(1), Some(1)));
        streams.abandon_from(2);
        assert!(matches!(third.next(), BlockAnswer::Later));
        assert!(streams.give_to_all(&block("bb")));
        first.leave();
        assert_eq!(length(second.next()), Some(2));
        second.leave();
        assert!(!streams.give_to_all(&block("ccc")));
    }
}
