//! Standard inputs that grow while their jobs run.
//!
//! Somebody gives blocks to the jobs, and the feeder takes them. Each job has at most one block
//! that waits, besides the one that it reads, so a giver that is faster than the jobs waits.

use std::ops::Range;
use std::sync::Arc;
use std::task::Poll;

use brigade_sys::sync::{Condvar, Mutex};
use brigade_sys::wait::Waker;

use crate::input_block::InputBlock;
use crate::same::equal_if_same;

/// The standard inputs of several jobs, to which blocks are given while the jobs run.
#[derive(Clone)]
pub struct BlockStreams(Arc<Shared>);

/// The way in which blocks are shared out among jobs. Each job begins with one, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockSharing {
    /// A block goes to the job that has waited longest of those for which no block waits.
    ToTheNext,
    /// Jobs get blocks strictly in turns.
    ///
    /// As with [`ToAll`](Self::ToAll), all jobs must run at once, because a block for one of them
    /// is given after the others have taken theirs. A job that cannot start for lack of memory,
    /// descriptors or processes does not wait for the end of another one: it fails.
    InTurns,
    /// Each job gets all blocks.
    ToAll,
}

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
    sharing: BlockSharing,
    /// `true` if no more blocks will be given.
    has_ended: bool,
    /// Number of blocks given so far.
    given: usize,
}

#[derive(Default)]
struct Stream {
    waiting: Option<InputBlock>,
    /// The number of the block that was given last.
    last: usize,
    /// `true` if its job needs no more blocks.
    is_over: bool,
    /// Wakes the feeder, once the job runs.
    waker: Option<Arc<Waker>>,
}

impl BlockStreams {
    /// Returns this number of streams without blocks.
    pub fn new(count: usize, sharing: BlockSharing) -> Self {
        let streams = (0..count).map(|_| Stream::default()).collect();
        let state = Mutex::new(State { streams, sharing, has_ended: false, given: 0 });
        Self(Arc::new(Shared { state, changed: Condvar::new() }))
    }

    /// Returns the stream with this index. The job gets the header first.
    pub fn stream(&self, index: usize, header: Arc<[u8]>) -> BlockStream {
        BlockStream { streams: self.clone(), index, header }
    }

    /// Gives a block to the jobs whose turn it is. Waits while another block waits for one of them.
    /// A block for a job that is over is dropped. Returns `false` if all jobs are over.
    pub fn give(&self, block: &InputBlock) -> bool {
        let mut state = self.0.state.lock();
        let turn = loop {
            match state.turn() {
                Some(turn) => break turn,
                None => state = self.0.changed.wait(state),
            }
        };
        state.give(turn, block);
        !state.are_over()
    }

    /// Returns `true` if all jobs are over.
    pub fn are_over(&self) -> bool {
        self.0.state.lock().are_over()
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

    /// Returns the next block, or `None` at the end. The waker is woken when there is one later.
    pub(crate) fn next(&self) -> Poll<Option<InputBlock>> {
        let mut state = self.streams.0.state.lock();
        let next = match state.streams[self.index].waiting.take() {
            None if !state.has_ended => Poll::Pending,
            next => Poll::Ready(next),
        };
        drop(state);
        self.streams.0.changed.notify_all();
        next
    }

    /// Returns `true` if its job must run while the others do.
    pub(crate) fn is_in_step(&self) -> bool {
        self.streams.0.state.lock().sharing != BlockSharing::ToTheNext
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

    /// Returns the jobs that get the next block, if there is room for it.
    fn turn(&self) -> Option<Range<usize>> {
        let count = self.streams.len();
        let turn = match self.sharing {
            BlockSharing::ToAll => 0..count,
            BlockSharing::ToTheNext if self.given >= count => {
                let streams = self.streams.iter().enumerate();
                let open = streams.filter(|(_, stream)| stream.has_room() && !stream.is_over);
                let next = open.min_by_key(|(_, stream)| stream.last).map(|(index, _)| index);
                // Any will do if all are over: it drops the block.
                let next = next.or_else(|| self.are_over().then_some(0))?;
                next..next + 1
            }
            BlockSharing::ToTheNext | BlockSharing::InTurns => {
                let next = self.given % count;
                next..next + 1
            }
        };
        self.streams[turn.clone()].iter().all(Stream::has_room).then_some(turn)
    }

    /// Gives a block to some jobs, unless they are over.
    fn give(&mut self, turn: Range<usize>, block: &InputBlock) {
        self.given += 1;
        for stream in &mut self.streams[turn] {
            stream.last = self.given;
            if !stream.is_over {
                stream.waiting = Some(block.clone());
                if let Some(waker) = &stream.waker {
                    waker.wake();
                }
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

brigade_sys::debug_fields! {
    impl BlockStreams {}
}

equal_if_same!(BlockStreams);

#[cfg(test)]
mod tests {
    use super::*;

    fn block(text: &str) -> InputBlock {
        InputBlock::new(&[text.as_bytes()], 0).expect("memory")
    }

    fn length(next: Poll<Option<InputBlock>>) -> Option<u64> {
        if let Poll::Ready(Some(block)) = next { Some(block.len()) } else { None }
    }

    #[test]
    fn blocks_go_to_jobs_for_which_none_waits_in_turns() {
        let streams = BlockStreams::new(2, BlockSharing::ToTheNext);
        let [first, second] = [0, 1].map(|index| streams.stream(index, Arc::default()));
        streams.give(&block("a"));
        streams.give(&block("bb"));
        assert_eq!(length(second.next()), Some(2));
        streams.give(&block("ccc"));
        assert_eq!((length(first.next()), length(second.next())), (Some(1), Some(3)));
        streams.give(&block("dddd"));
        assert_eq!(length(first.next()), Some(4));
        assert!(first.next().is_pending());
        streams.end();
        assert!(matches!(first.next(), Poll::Ready(None)));
    }

    #[test]
    fn nobody_waits_for_jobs_that_are_over() {
        let streams = BlockStreams::new(2, BlockSharing::ToTheNext);
        let [first, second] = [0, 1].map(|index| streams.stream(index, Arc::default()));
        first.leave();
        assert!(streams.give(&block("a")));
        assert!(streams.give(&block("bb")));
        assert_eq!(length(second.next()), Some(2));
        second.leave();
        assert!(!streams.give(&block("c")));
    }

    #[test]
    fn nobody_waits_for_jobs_that_will_not_start() {
        let streams = BlockStreams::new(3, BlockSharing::InTurns);
        let first = streams.stream(0, Arc::default());
        streams.give(&block("a"));
        streams.give(&block("bb"));
        streams.abandon_from(1);
        streams.give(&block("bb"));
        assert_eq!(length(first.next()), Some(1));
        streams.give(&block("ccc"));
        streams.give(&block("bb"));
        assert_eq!(length(first.next()), Some(3));
    }

    #[test]
    fn a_block_for_all_waits_only_for_jobs_that_read_it() {
        let streams = BlockStreams::new(3, BlockSharing::ToAll);
        let [first, second, third] = [0, 1, 2].map(|index| streams.stream(index, Arc::default()));
        assert!(streams.give(&block("a")));
        assert_eq!((length(first.next()), length(second.next())), (Some(1), Some(1)));
        streams.abandon_from(2);
        assert!(third.next().is_pending());
        assert!(streams.give(&block("bb")));
        first.leave();
        assert_eq!(length(second.next()), Some(2));
        second.leave();
        assert!(!streams.give(&block("ccc")));
    }
}
