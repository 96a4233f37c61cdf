//! Random events through a stream's machine, checked against a model.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

#[derive(Debug, Clone, Copy)]
enum Event {
    Put,
    Submit,
    /// The task at this position among those that are submitted.
    Finish(usize),
    /// An id that the stream may have dropped long ago.
    Stale(usize),
    Take,
    /// A turn of an input that has emitted items, and perhaps has more.
    Turn(bool),
    Reset,
    Resize(usize),
    End,
    Close,
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        20 => Just(Event::Put),
        20 => Just(Event::Submit),
        20 => any::<usize>().prop_map(Event::Finish),
        5 => any::<usize>().prop_map(Event::Stale),
        20 => Just(Event::Take),
        10 => any::<bool>().prop_map(Event::Turn),
        2 => Just(Event::Reset),
        2 => (1_usize..6).prop_map(Event::Resize),
        1 => Just(Event::End),
        1 => Just(Event::Close),
    ]
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Waiting,
    Submitted,
    /// The number of tasks that had finished before.
    Ready(usize),
}

/// The expected state of the machine, kept in the simplest way.
#[derive(Debug)]
struct Model {
    limits: StreamLimits,
    share: Share,
    places: BTreeMap<u64, Place>,
    next_id: u64,
    /// Ids below are never delivered.
    floor: u64,
    finished: usize,
    input: Input,
}

impl Model {
    fn count(&self, wanted: fn(&Place) -> bool) -> usize {
        self.places.values().filter(|place| wanted(place)).count()
    }

    fn untaken(&self) -> usize {
        self.places.len() - self.count(|place| *place == Place::Waiting)
    }

    fn capacity(&self) -> usize {
        (self.share.workers + self.limits.output).max(1)
    }

    fn next_item(&self) -> Option<u64> {
        let ready = self.places.iter().filter_map(|(id, place)| match place {
            Place::Ready(order) => Some((*order, *id)),
            Place::Waiting | Place::Submitted => None,
        });
        if self.limits.ordered {
            let (id, place) = self.places.first_key_value()?;
            matches!(place, Place::Ready(_)).then_some(*id)
        } else {
            ready.min().map(|(_, id)| id)
        }
    }

    fn drop_all(&mut self) -> (Vec<u64>, Vec<u64>) {
        self.floor = self.next_id;
        std::mem::take(&mut self.places)
            .into_iter()
            .map(|(id, place)| (place == Place::Submitted, id))
            .fold((Vec::new(), Vec::new()), |(mut submitted, mut others), (is_submitted, id)| {
                if is_submitted {
                    submitted.push(id);
                } else {
                    others.push(id);
                }
                (submitted, others)
            })
    }

    fn check(&mut self, machine: &mut Machine<u64>, event: Event, now: Monotonic) {
        match event {
            Event::Put => {
                let room = self.capacity() + self.limits.per_worker * self.share.workers;
                let expected = match self.input {
                    Input::Open if self.places.len() < room => Ok(self.next_id),
                    Input::Open => Err((PutErrorKind::Full, self.next_id)),
                    Input::Finished | Input::Closed => Err((PutErrorKind::Finished, self.next_id)),
                };
                assert_eq!(machine.put(self.next_id, now), expected);
                if expected.is_ok() {
                    self.places.insert(self.next_id, Place::Waiting);
                    self.next_id += 1;
                }
            }
            Event::Submit => {
                let running = self.count(|place| *place == Place::Submitted);
                let may = self.untaken() < self.capacity()
                    && (!self.share.is_part || running < self.share.workers);
                let waiting = self.places.iter().find(|(_, place)| **place == Place::Waiting);
                let expected = waiting.map(|(id, _)| *id).filter(|_| may);
                assert_eq!(
                    machine.submit_next().map(|(id, task)| (id, *task)),
                    expected.map(|id| (id, id))
                );
                if let Some(id) = expected {
                    self.places.insert(id, Place::Submitted);
                }
            }
            Event::Finish(position) => {
                let submitted: Vec<u64> = machine.submitted.values().copied().collect();
                if let Some(id) = submitted.get(position % submitted.len().max(1)) {
                    machine.finished(*id);
                    self.finished += 1;
                    self.places.insert(*id, Place::Ready(self.finished));
                }
            }
            Event::Stale(position) => {
                let id = position as u64 % (self.next_id + 1);
                if self.places.get(&id) != Some(&Place::Submitted) {
                    machine.finished(id);
                    assert_eq!(machine.finished_as(id, id), Some(id));
                }
            }
            Event::Take => {
                let (expected, epoch) = (self.next_item(), machine.epoch());
                let taken = machine.take();
                assert_eq!(taken, expected.map(|id| (id, id)));
                if let Some((id, _)) = taken {
                    assert!(id >= self.floor, "a stale item");
                    assert!(machine.deliver(epoch, TaskEnd::Value));
                    self.places.remove(&id);
                }
            }
            Event::Turn(is_ready) => {
                let expected = self.next_item();
                assert_eq!(
                    machine.front().map(|(id, task)| (id, *task)),
                    expected.map(|id| (id, id))
                );
                if let Some(id) = expected {
                    machine.turn(is_ready);
                    self.finished += 1;
                    let ready = Place::Ready(self.finished);
                    self.places.insert(id, if is_ready { ready } else { Place::Submitted });
                }
            }
            Event::Reset => assert_eq!(sorted(machine.reset()), self.drop_all()),
            Event::Resize(workers) => {
                self.share.workers = workers;
                machine.set_share(self.share);
            }
            Event::End => {
                machine.finish();
                if self.input == Input::Open {
                    self.input = Input::Finished;
                }
            }
            Event::Close => {
                assert_eq!(sorted(machine.close()), self.drop_all());
                self.input = Input::Closed;
            }
        }
    }
}

fn sorted((submitted, mut others): (Vec<u64>, Vec<u64>)) -> (Vec<u64>, Vec<u64>) {
    others.sort_unstable();
    (submitted, others)
}

proptest! {
    #[test]
    fn any_events_agree_with_the_model(
        events in prop::collection::vec(event(), 1..400),
        per_worker in 0_usize..4,
        output in 0_usize..5,
        workers in 0_usize..4,
        ordered: bool,
        is_part: bool,
    ) {
        let limits = StreamLimits { per_worker, output, ordered };
        let share = Share { workers, is_part: is_part && workers > 0 };
        let mut machine = Machine::new(limits, share);
        let mut model = Model {
            limits, share, places: BTreeMap::new(), next_id: 0, floor: 0, finished: 0,
            input: Input::Open,
        };
        let now = Monotonic::ZERO;
        for event in events {
            model.check(&mut machine, event, now);
            machine.sanity_check();
            prop_assert_eq!(machine.pending(), model.places.len());
            prop_assert_eq!(machine.is_ready(), model.next_item().is_some());
        }
    }
}

fn machine() -> Machine<()> {
    let limits = StreamLimits { per_worker: 1, output: 1, ordered: false };
    Machine::new(limits, Share { workers: 1, is_part: false })
}

#[test]
fn an_item_taken_before_a_reset_is_not_delivered_after_it() {
    let mut machine = machine();
    assert_eq!(machine.put((), Monotonic::ZERO), Ok(0));
    assert!(machine.submit_next().is_some());
    machine.finished(0);
    let epoch = machine.epoch();
    assert!(machine.take().is_some());
    machine.reset();
    assert!(!machine.deliver(epoch, TaskEnd::Value));
    machine.sanity_check();
    assert_eq!((machine.report().delivered, machine.report().dropped), (0, 1));
}

#[test]
fn a_stall_counts_from_the_beginning_of_the_wait() {
    let (second, begin) = (Duration::from_secs(1), Monotonic::ZERO);
    let mut machine = machine();
    let after = |seconds| begin + seconds * second;
    assert_eq!(machine.wait(begin, 3 * second), (None, Some(after(3))));
    assert_eq!(machine.wait(after(3), 3 * second), (None, Some(after(6))), "nothing is pending");
    assert_eq!(machine.put((), after(5)), Ok(0));
    assert_eq!(machine.wait(after(6), 3 * second), (None, Some(after(8))));
    assert!(machine.submit_next().is_some());
    let (stall, next) = machine.wait(after(9), 3 * second);
    let expected = Stall { quiet: 4 * second, waiting: 0, submitted: 1, oldest: Some(0) };
    assert_eq!((stall, next), (Some(expected), Some(after(12))));
    machine.finished(0);
    assert!(machine.take().is_some());
    assert_eq!(machine.wait(after(100), 3 * second), (None, Some(after(103))));
}
