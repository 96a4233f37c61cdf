//! The requests for tasks: which lane is asked, for how many, and whether the request waits.
//!
//! A lane has one request at a time. While there is work, lanes are asked in the order of their
//! urgency, one after the other, and the requests do not wait. Once all were found empty, requests
//! wait at every lane: for all free slots if there is one lane, for one task if there are several,
//! so that at most one task for each lane is too many.

use std::cmp::Reverse;
use std::time::Duration;

use super::{Action, PullId};
use crate::names::Lane;

/// Time for which a request waits at the server.
pub(super) const WAIT: Duration = Duration::from_secs(30);

/// Time after which a request without a sign of life is abandoned: two heartbeats of a waiting
/// one.
const SILENCE: Duration = Duration::from_secs(5);

/// The pause after a request that failed, for example because the stream has no leader.
const PAUSE: Duration = Duration::from_millis(250);

/// Maximum number of tasks of one request.
const BATCH_LIMIT: u32 = 4096;

/// All lanes, the most urgent first, and their requests.
#[derive(Debug, Default)]
pub(super) struct Pulls {
    lanes: Vec<LaneState>,
    /// The lane to ask next; the number of lanes if all were found empty.
    position: usize,
    last: u64,
}

#[derive(Debug)]
struct LaneState {
    lane: Lane,
    pull: Option<Pull>,
    /// Time before which the lane is not asked again.
    not_before: Duration,
}

#[derive(Debug)]
struct Pull {
    id: PullId,
    /// Number of tasks that may still come.
    left: u32,
    waits: bool,
    /// Time at which the request is abandoned unless there is a sign of life.
    expiry: Duration,
}

impl LaneState {
    fn has_waiting_pull(&self) -> bool {
        self.pull.as_ref().is_some_and(|pull| pull.waits)
    }
}

impl Pulls {
    pub(super) fn add_lane(&mut self, lane: Lane) {
        if self.lanes.iter().any(|known| known.lane == lane) {
            return;
        }
        self.lanes.push(LaneState { lane, pull: None, not_before: Duration::ZERO });
        // Among lanes of the same priority, the tasks that fewer nodes can run come first.
        self.lanes.sort_by_key(|state| {
            let class = state.lane.class.to_string();
            (state.lane.priority, Reverse(class.split('-').count()), class == "any", class)
        });
        self.position = 0;
    }

    /// Returns `true` if all lanes were found empty.
    fn is_waiting(&self) -> bool {
        self.position >= self.lanes.len()
    }

    pub(super) fn abandon_all(&mut self) {
        for state in &mut self.lanes {
            state.pull = None;
            state.not_before = Duration::ZERO;
        }
        self.position = 0;
    }

    pub(super) fn delivered(&mut self, lane: &Lane) {
        let Some(index) = self.lanes.iter().position(|state| state.lane == *lane) else { return };
        let Some(pull) = &mut self.lanes[index].pull else { return };
        pull.left -= 1;
        let (is_over, waited) = (pull.left == 0, pull.waits);
        if is_over {
            self.lanes[index].pull = None;
        }
        if waited && self.lanes.len() > 1 {
            // There is work again, perhaps more urgent work elsewhere.
            self.position = 0;
        }
    }

    pub(super) fn heartbeat(&mut self, now: Duration, id: PullId) {
        if let Some((_, pull)) = self.find(id) {
            pull.expiry = now + SILENCE;
        }
    }

    pub(super) fn ended(&mut self, now: Duration, id: PullId, has_failed: bool) {
        let Some((index, pull)) = self.find(id) else { return };
        let waited = pull.waits;
        self.lanes[index].pull = None;
        if has_failed {
            self.lanes[index].not_before = now + PAUSE;
        }
        // The lane is empty now, even if it served some of the tasks that it was asked for.
        if !waited && index == self.position {
            self.position += 1;
        }
    }

    /// Abandons requests that were silent for too long.
    pub(super) fn expire(&mut self, now: Duration) {
        for state in &mut self.lanes {
            if state.pull.as_ref().is_some_and(|pull| pull.expiry <= now) {
                state.pull = None;
            }
        }
    }

    /// Returns the time at which there may be something to do.
    pub(super) fn next_expiry(&self) -> Option<Duration> {
        let expiry = |state: &LaneState| match &state.pull {
            Some(pull) => Some(pull.expiry),
            None => (state.not_before > Duration::ZERO).then_some(state.not_before),
        };
        self.lanes.iter().filter_map(expiry).min()
    }

    /// Asks for tasks if there is room for `free` of them.
    pub(super) fn pull(&mut self, now: Duration, free: u32, actions: &mut Vec<Action>) {
        for state in &mut self.lanes {
            if state.not_before <= now {
                state.not_before = Duration::ZERO;
            }
        }
        let free = free.min(BATCH_LIMIT);
        if free == 0 || self.lanes.is_empty() {
            return;
        }
        if self.lanes.len() == 1 {
            // The only lane needs no order.
            self.position = 1;
            return self.ask(now, 0, free, true, actions);
        }
        // A lane at which a request waits is empty.
        while self.lanes.get(self.position).is_some_and(LaneState::has_waiting_pull) {
            self.position += 1;
        }
        if !self.is_waiting() {
            return self.ask(now, self.position, free, false, actions);
        }
        for index in 0..self.lanes.len() {
            self.ask(now, index, 1, true, actions);
        }
    }

    fn ask(
        &mut self,
        now: Duration,
        index: usize,
        batch: u32,
        waits: bool,
        actions: &mut Vec<Action>,
    ) {
        let Some(state) = self.lanes.get_mut(index) else { return };
        if state.pull.is_some() || state.not_before > now {
            return;
        }
        self.last += 1;
        let id = PullId(self.last);
        let expiry = now + SILENCE;
        state.pull = Some(Pull { id, left: batch, waits, expiry });
        let wait = waits.then_some(WAIT);
        actions.push(Action::Pull { pull: id, lane: state.lane.clone(), batch, wait });
    }

    fn find(&mut self, id: PullId) -> Option<(usize, &mut Pull)> {
        self.lanes.iter_mut().enumerate().find_map(|(index, state)| {
            state.pull.as_mut().filter(|pull| pull.id == id).map(|pull| (index, pull))
        })
    }
}
