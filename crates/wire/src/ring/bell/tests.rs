//! Tests of who is rung for an outcome, and when.

use std::os::fd::AsFd;

use super::*;

/// A worker's end, and the host's, whose caller listens.
struct Ends {
    remote: RemoteDoorbell,
    doorbell: Doorbell,
}

impl Ends {
    fn with(listener: Listener) -> io::Result<Self> {
        let doorbell = Doorbell::new()?;
        let [thread, caller] = doorbell.for_worker()?.map(RemoteWaker::from_fd);
        let page = doorbell.page().as_fd().try_clone_to_owned()?;
        doorbell.listen(listener);
        Ok(Self { remote: RemoteDoorbell::new(page, thread, caller)?, doorbell })
    }

    /// Sends an outcome, which the host does not take.
    fn send(&self, now: Monotonic) -> io::Result<()> {
        self.remote.ring_later(now, DELAY, 1, || 0)
    }

    /// Returns `true` if the caller was rung since the last time.
    fn was_rung(&self) -> io::Result<bool> {
        self.doorbell.caller().wait(Some(Monotonic::ZERO))
    }
}

fn at(time: Duration) -> Monotonic {
    Monotonic::from_nanos(1).saturating_add(time)
}

#[test]
fn a_patient_listener_is_rung_after_the_delay_or_at_the_end() -> io::Result<()> {
    let ends = Ends::with(Listener::PatientCaller)?;
    for first in [Duration::ZERO, DELAY * 3] {
        for after in [Duration::ZERO, DELAY / 2, DELAY * 9 / 10] {
            ends.send(at(first + after))?;
            assert!(!ends.was_rung()?, "{after:?} after the first outcome");
        }
        ends.send(at(first + DELAY))?;
        assert!(ends.was_rung()?);
        ends.remote.ring_now()?;
        assert!(!ends.was_rung()?, "nothing is unannounced");
    }
    ends.send(at(DELAY * 9))?;
    ends.remote.ring_now()?;
    assert!(ends.was_rung()?);
    Ok(())
}

#[test]
fn an_outcome_is_announced_earlier_if_less_work_is_left() -> io::Result<()> {
    let ends = Ends::with(Listener::PatientCaller)?;
    let (limit, left) = (DELAY / 2, DELAY / 2 / DONE_PER_LEFT);
    ends.remote.ring_later(at(Duration::ZERO), left, 1, || 0)?;
    ends.remote.ring_later(at(limit * 9 / 10), left, 2, || 0)?;
    assert!(!ends.was_rung()?);
    ends.remote.ring_later(at(limit), left, 3, || 0)?;
    assert!(ends.was_rung()?);
    Ok(())
}

#[test]
fn a_listener_that_has_taken_the_outcome_is_not_rung_for_it() -> io::Result<()> {
    let ends = Ends::with(Listener::PatientCaller)?;
    ends.remote.ring_later(at(Duration::ZERO), DELAY, 1, || 0)?;
    ends.remote.ring_later(at(DELAY), DELAY, 2, || 1)?;
    assert!(!ends.was_rung()?, "the first was taken");
    ends.remote.ring_later(at(DELAY * 3 / 2), DELAY, 3, || 1)?;
    assert!(!ends.was_rung()?, "the delay of the second is not over");
    ends.remote.ring_later(at(DELAY * 2), DELAY, 4, || 1)?;
    assert!(ends.was_rung()?, "the second was not taken");
    Ok(())
}

#[test]
fn another_listener_is_rung_for_each_outcome() -> io::Result<()> {
    let ends = Ends::with(Listener::Caller)?;
    for _ in 0..2 {
        ends.send(at(Duration::ZERO))?;
        assert!(ends.was_rung()?);
    }
    ends.doorbell.listen(Listener::PatientCaller);
    ends.send(at(Duration::ZERO))?;
    ends.doorbell.listen(Listener::Caller);
    ends.send(at(Duration::ZERO))?;
    assert!(ends.was_rung()?, "it has lost its patience");
    ends.doorbell.listen(Listener::Nobody);
    ends.send(at(Duration::ZERO))?;
    ends.remote.ring_now()?;
    assert!(!ends.was_rung()?);
    Ok(())
}

#[test]
fn a_worker_rings_before_it_sleeps_if_no_caller_listens() -> io::Result<()> {
    let ends = Ends::with(Listener::Nobody)?;
    let was_rung = || {
        ends.remote.ring_before_sleep()?;
        ends.doorbell.thread().wait(Some(Monotonic::ZERO))
    };
    assert!(!was_rung()?);
    ends.doorbell.rely_on_callers(true);
    assert!(was_rung()?);
    ends.doorbell.listen(Listener::Caller);
    assert!(!was_rung()?);
    ends.doorbell.listen(Listener::Nobody);
    ends.doorbell.rely_on_callers(false);
    assert!(!was_rung()?);
    Ok(())
}
