//! The requests for tasks: which lane is asked, for how many, and whether the request waits.
//!
//! A lane has one request at a time. While there is work, lanes are asked in the order of their
//! urgency, one after the other, and the requests do not wait. A lane for whose tasks there is no
//! room is passed over, and is the next one as soon as there is some. Those that were found empty
//! are asked again, after a short time, before a less urgent one is. Once all were found empty,
//! requests wait at every lane: for all free slots if there is one lane, for one task if there are
//! several, so that at most one task for each lane is too many.
//!
//! A server drops a request if it knows no leader of the lane's consumer, and forgets those that
//! wait if the leader changes. So a request waits only at a lane that has answered before, and a
//! lane that has not is asked for one task again and again. Others do not wait for one that remains
//! silent.

use std::cmp::Reverse;
use std::time::Duration;

use super::{Action, PullId};
use crate::clock::Monotonic;
use crate::names::Lane;

/// Time for which a request waits at the server.
pub(super) const WAIT: Duration = Duration::from_secs(60);

/// The period in which the server says that it has not forgotten a waiting request. The server
/// accepts at most half of the time for which the request waits.
pub(in crate::node) const HEARTBEAT: Duration = Duration::from_secs(5);

/// Time without a sign of life after which a waiting request is abandoned: two heartbeats, and
/// their delay.
const SILENCE: Duration = Duration::from_secs(12);

/// Time without an answer after which a request that does not wait is abandoned.
const PATIENCE: Duration = Duration::from_secs(5);

/// The same for the first request at a lane. Doubled with each that is abandoned, because the
/// server may only be slow.
const FIRST_PATIENCE: Duration = Duration::from_millis(500);

/// The pause after a request that failed, for example because the stream has no leader.
const PAUSE: Duration = Duration::from_millis(250);

/// Time for which a lane that was found empty is taken to be empty while a less urgent one has
/// tasks. To ask after each answer would cost as much as brief tasks do, and a round trip for each
/// lane.
const EMPTY_FOR: Duration = Duration::from_millis(100);

/// Maximum number of tasks of one request.
const BATCH_LIMIT: u32 = 4096;

/// All lanes, the most urgent first, and their requests.
#[derive(Debug, Default)]
pub(super) struct Pulls {
    lanes: Vec<LaneState>,
    /// The lane to ask next; the number of lanes if all were found empty.
    position: usize,
    /// The last time at which a lane was found empty.
    found_empty: Monotonic,
    last: u64,
}

#[derive(Debug)]
struct LaneState {
    lane: Lane,
    pull: Option<Pull>,
    /// `true` if the lane was passed over, because there was no room for its tasks.
    is_passed_over: bool,
    /// Time before which the lane is not asked again.
    not_before: Monotonic,
    /// `true` if the consumer's present leader has answered, as far as the node knows.
    has_answered: bool,
    /// Time for which an answer is waited for if there was none.
    patience: Duration,
}

#[derive(Debug)]
struct Pull {
    id: PullId,
    /// Number of tasks that may still come.
    left: u32,
    waits: bool,
    /// Time at which the request is abandoned unless there is a sign of life.
    expiry: Monotonic,
}

impl LaneState {
    fn new(lane: Lane) -> Self {
        Self {
            lane,
            pull: None,
            is_passed_over: false,
            not_before: Monotonic::ZERO,
            has_answered: false,
            patience: FIRST_PATIENCE,
        }
    }

    /// Abandons the request: it may be lost.
    fn abandon(&mut self) {
        self.pull = None;
        self.has_answered = false;
    }

    fn answered(&mut self) {
        self.has_answered = true;
        self.patience = FIRST_PATIENCE;
    }

    /// Returns `true` if an answer will come at once.
    fn is_being_asked(&self) -> bool {
        self.has_answered && self.pull.as_ref().is_some_and(|pull| !pull.waits)
    }

    fn has_waiting_pull(&self) -> bool {
        self.pull.as_ref().is_some_and(|pull| pull.waits)
    }

    /// Returns `true` if others do not wait for its answer: it has failed, or was silent twice.
    fn is_out_of_reach(&self, now: Monotonic) -> bool {
        self.not_before > now || self.patience > 2 * FIRST_PATIENCE
    }
}

impl Pull {
    /// Returns the time after which it is abandoned, once the lane has answered.
    fn silence(&self) -> Duration {
        if self.waits { SILENCE } else { PATIENCE }
    }
}

impl Pulls {
    pub(super) fn add_lanes(&mut self, lanes: Vec<Lane>) {
        let known = self.lanes.len();
        for lane in lanes {
            if !self.lanes.iter().any(|known| known.lane == lane) {
                self.lanes.push(LaneState::new(lane));
            }
        }
        if self.lanes.len() == known {
            return;
        }
        // Among lanes of the same priority, the tasks that fewer nodes can run come first.
        self.lanes.sort_by_key(|state| {
            let class = state.lane.class.to_string();
            (state.lane.priority, Reverse(class.split('-').count()), class == "any", class)
        });
        self.position = 0;
    }

    pub(super) fn abandon_all(&mut self) {
        for state in &mut self.lanes {
            *state = LaneState::new(state.lane.clone());
        }
        self.position = 0;
    }

    /// Abandons the request at a lane whose consumer has another leader, which does not know it.
    pub(super) fn leader_changed(&mut self, lane: &Lane) {
        if let Some(state) = self.lanes.iter_mut().find(|state| state.lane == *lane) {
            state.abandon();
            state.patience = FIRST_PATIENCE;
        }
    }

    pub(super) fn delivered(&mut self, now: Monotonic, lane: &Lane) {
        let Some(index) = self.lanes.iter().position(|state| state.lane == *lane) else { return };
        self.lanes[index].answered();
        let Some(pull) = &mut self.lanes[index].pull else { return };
        pull.left -= 1;
        // There are no heartbeats between tasks that follow each other closely.
        pull.expiry = now + pull.silence();
        let (is_over, waited) = (pull.left == 0, pull.waits);
        if is_over {
            self.lanes[index].pull = None;
        }
        if (waited || index < self.position) && self.lanes.len() > 1 {
            // There is work again, perhaps more urgent work elsewhere.
            self.position = 0;
        }
    }

    pub(super) fn heartbeat(&mut self, now: Monotonic, id: PullId) {
        if let Some((index, pull)) = self.find(id) {
            pull.expiry = now + SILENCE;
            self.lanes[index].answered();
        }
    }

    pub(super) fn ended(&mut self, now: Monotonic, id: PullId, has_failed: bool) {
        let Some((index, pull)) = self.find(id) else { return };
        let waited = pull.waits;
        self.lanes[index].pull = None;
        if has_failed {
            self.lanes[index].abandon();
            self.lanes[index].not_before = now + PAUSE;
        } else {
            self.lanes[index].answered();
        }
        // The lane is empty now, even if it served some of the tasks that it was asked for.
        if !waited && index == self.position {
            self.position += 1;
            self.found_empty = now;
        }
    }

    /// Abandons requests that were silent for too long.
    pub(super) fn expire(&mut self, now: Monotonic) {
        for state in &mut self.lanes {
            if state.pull.as_ref().is_some_and(|pull| pull.expiry <= now) {
                if !state.has_answered {
                    state.patience = PATIENCE.min(2 * state.patience);
                }
                state.abandon();
            }
        }
    }

    /// Returns the number of tasks that may still come.
    pub(super) fn left(&self) -> u64 {
        self.lanes.iter().filter_map(|state| Some(u64::from(state.pull.as_ref()?.left))).sum()
    }

    /// Returns the time at which there may be something to do.
    pub(super) fn next_expiry(&self) -> Option<Monotonic> {
        let expiry = |state: &LaneState| match &state.pull {
            Some(pull) => Some(pull.expiry),
            None => (state.not_before > Monotonic::ZERO).then_some(state.not_before),
        };
        self.lanes.iter().filter_map(expiry).min()
    }

    /// Asks for tasks, of each lane for at most as many as there is `room` for.
    pub(super) fn pull(
        &mut self,
        now: Monotonic,
        room: impl Fn(&Lane) -> u32,
        actions: &mut Vec<Action>,
    ) {
        for state in &mut self.lanes {
            if state.not_before <= now {
                state.not_before = Monotonic::ZERO;
            }
        }
        let room = |state: &LaneState| room(&state.lane).min(BATCH_LIMIT);
        if let [only] = &self.lanes[..] {
            let room = room(only);
            // The only lane needs no order.
            self.position = 1;
            return self.ask(now, 0, room, true, actions);
        }
        if self.lanes.iter().any(LaneState::is_being_asked) {
            return;
        }
        if self.position < self.lanes.len() && now >= self.found_empty + EMPTY_FOR {
            self.position = 0;
        }
        let (earlier, _) = self.lanes.split_at(self.position.min(self.lanes.len()));
        let has_room_again = |state: &LaneState| state.is_passed_over && room(state) > 0;
        self.position = earlier.iter().position(has_room_again).unwrap_or(self.position);
        while let Some(state) = self.lanes.get_mut(self.position) {
            // A lane at which a request waits is empty.
            let (is_empty, batch) = (state.has_waiting_pull(), room(state));
            let is_out_of_reach = state.is_out_of_reach(now);
            state.is_passed_over = !is_empty && batch == 0;
            if !is_empty && batch > 0 && !is_out_of_reach {
                break;
            }
            if is_out_of_reach {
                self.ask(now, self.position, batch.min(1), false, actions);
            }
            self.position += 1;
        }
        if let Some(state) = self.lanes.get(self.position) {
            let room = room(state);
            return self.ask(now, self.position, room, false, actions);
        }
        for index in 0..self.lanes.len() {
            let batch = room(&self.lanes[index]).min(1);
            self.ask(now, index, batch, true, actions);
        }
    }

    fn ask(
        &mut self,
        now: Monotonic,
        index: usize,
        batch: u32,
        waits: bool,
        actions: &mut Vec<Action>,
    ) {
        let Some(state) = self.lanes.get_mut(index) else { return };
        if batch == 0 || state.pull.is_some() || state.not_before > now {
            return;
        }
        self.last += 1;
        let id = PullId(self.last);
        let (batch, waits) = if state.has_answered { (batch, waits) } else { (1, false) };
        let mut pull = Pull { id, left: batch, waits, expiry: now };
        pull.expiry += if state.has_answered { pull.silence() } else { state.patience };
        state.pull = Some(pull);
        let wait = waits.then_some(WAIT);
        actions.push(Action::Pull { pull: id, lane: state.lane.clone(), batch, wait });
    }

    fn find(&mut self, id: PullId) -> Option<(usize, &mut Pull)> {
        self.lanes.iter_mut().enumerate().find_map(|(index, state)| {
            state.pull.as_mut().filter(|pull| pull.id == id).map(|pull| (index, pull))
        })
    }
}

#[cfg(test)]
mod tests;
