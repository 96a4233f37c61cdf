//! The behavior of a task, and the outcome that must follow.

use std::time::Duration;

use brigade::{Exit, TaskError, TaskErrorKind};
use brigade_testkit::faults::{How, SpoilsDecoding, SpoilsEncoding};
use brigade_testkit::{Random, faults, pause};
use serde::{Deserialize, Serialize};

use super::ledger::Circumstances;
use super::plan::{Mix, happens};
use super::surroundings::Surroundings;
use crate::attempt;

/// The behavior of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) enum Behavior {
    Returns,
    Spins,
    Sleeps,
    ReturnsMuch,
    ReturnsTooMuch,
    Panics,
    Exits,
    Aborts,
    KillsItself,
    StopsItself,
    SurvivesTheThird,
    Hangs,
    SpoilsItsArgument,
    SpoilsItsResult,
}

/// The argument of every task of a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Order {
    pub(super) behavior: Behavior,
    pub(super) number: u64,
    pub(super) ballast: Vec<u8>,
    pub(super) spoil: Spoil,
}

/// The defect of an argument.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) enum Spoil {
    Nothing,
    Argument(CannotArrive),
}

/// The value of every task of a run.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Reply {
    number: u64,
    attempt: u32,
    ballast: Vec<u8>,
    spoil: Option<SpoilsEncoding>,
}

/// Can be encoded, but not decoded.
#[derive(Debug, Clone, Copy)]
pub(super) struct CannotArrive;

/// The pool's `message_limit`.
pub(super) const MESSAGE_LIMIT: usize = 2 << 20;

const MUCH: usize = 300_000;

impl Behavior {
    pub(super) const ALL: [Self; 14] = [
        Self::Returns,
        Self::Spins,
        Self::Sleeps,
        Self::ReturnsMuch,
        Self::ReturnsTooMuch,
        Self::Panics,
        Self::Exits,
        Self::Aborts,
        Self::KillsItself,
        Self::StopsItself,
        Self::SurvivesTheThird,
        Self::Hangs,
        Self::SpoilsItsArgument,
        Self::SpoilsItsResult,
    ];

    /// Chooses a behavior, mostly a harmless one.
    pub(super) fn choose(random: &mut Random, mix: Mix, may_hang: bool) -> Self {
        if !happens(random, mix.misdeeds) {
            let slow = happens(random, mix.slow);
            return if slow { *random.choose(&[Self::Spins, Self::Sleeps]) } else { Self::Returns };
        }
        match *random.choose(&Self::ALL[3..]) {
            Self::Hangs if !may_hang => Self::Returns,
            behavior => behavior,
        }
    }
}

impl Order {
    pub(super) fn new(behavior: Behavior, mix: Mix, random: &mut Random) -> Self {
        let large = happens(random, mix.large);
        let size = if large { 500_000 } else { random.within(0..300) };
        let ballast = vec![7; usize::try_from(size).expect("a small number")];
        let spoil = match behavior {
            Behavior::SpoilsItsArgument => Spoil::Argument(CannotArrive),
            _ => Spoil::Nothing,
        };
        Self { behavior, number: random.number(), ballast, spoil }
    }
}

/// The task function.
pub(super) fn perform(order: Order) -> Reply {
    let mut reply =
        Reply { number: order.number, attempt: attempt(), ballast: order.ballast, spoil: None };
    match order.behavior {
        Behavior::Spins => drop(faults::spins(order.number % 200)),
        Behavior::Sleeps => pause(Duration::from_micros(order.number % 3_000)),
        Behavior::ReturnsMuch => reply.ballast = vec![8; MUCH],
        Behavior::ReturnsTooMuch => reply.ballast = vec![8; MESSAGE_LIMIT + 1],
        Behavior::Panics => panic!("panic number {}", order.number),
        Behavior::Exits => faults::exits(exit_code(order.number)),
        Behavior::Aborts => faults::aborts(()),
        Behavior::KillsItself => faults::kills_itself(()),
        Behavior::StopsItself => faults::stops_itself(()),
        Behavior::SurvivesTheThird if reply.attempt < 3 => faults::aborts(()),
        Behavior::SurvivesTheThird | Behavior::Returns | Behavior::SpoilsItsArgument => {}
        Behavior::Hangs => faults::hangs(()),
        Behavior::SpoilsItsResult => reply.spoil = Some(SpoilsEncoding(How::Fails)),
    }
    reply
}

fn exit_code(number: u64) -> i32 {
    i32::try_from(number % 100).expect("a small number")
}

/// Judges whether an outcome may follow from an order. The error describes the contradiction.
pub(super) fn judge(
    sent: &Sent,
    outcome: &Result<Reply, TaskError>,
    circumstances: &Circumstances,
) -> Result<(), String> {
    // A task that was to be killed does not run again, even if it had ended, or if its worker was
    // about to die for another reason.
    let killed = sent.killed == Some(true);
    let last = sent.killed.is_some()
        || outcome.as_ref().is_err_and(|error| error.attempt() == sent.retries + 1);
    let scribbled = circumstances.surroundings == Some(Surroundings::Scribbler);
    let fits = match outcome.as_ref().map_err(TaskError::kind) {
        Ok(reply) => reply_fits(sent, reply),
        Err(TaskErrorKind::Panicked { message, .. }) => {
            sent.behavior == Behavior::Panics && *message == format!("panic number {}", sent.number)
        }
        Err(TaskErrorKind::Codec { .. }) => {
            matches!(
                sent.behavior,
                Behavior::ReturnsTooMuch | Behavior::SpoilsItsArgument | Behavior::SpoilsItsResult
            )
        }
        Err(TaskErrorKind::WorkerDied { pid, exit, .. }) => {
            let own = match sent.behavior {
                Behavior::Exits => *exit == Exit::Code(exit_code(sent.number)),
                Behavior::Aborts | Behavior::SurvivesTheThird => *exit == Exit::Signal(6),
                Behavior::KillsItself => *exit == Exit::Signal(9),
                _ => false,
            };
            let intruded = *exit == Exit::Signal(9) && circumstances.killed.contains(pid);
            (own || intruded) && last || scribbled
        }
        Err(TaskErrorKind::PoolBroken { .. }) => {
            circumstances.surroundings == Some(Surroundings::FewDescriptors)
        }
        Err(TaskErrorKind::Cancelled) => {
            sent.cancelled == Some(true) || killed || circumstances.may_cancel
        }
        Err(TaskErrorKind::Killed) => {
            let stopped = sent.behavior == Behavior::StopsItself || circumstances.stopped_any;
            circumstances.may_kill || killed || stopped || scribbled
        }
        Err(TaskErrorKind::DeadlineExceeded { limit, elapsed }) => {
            let error = outcome.as_ref().err();
            let waited = error.is_some_and(TaskError::is_queue_deadline);
            elapsed >= limit && if waited { sent.may_expire } else { sent.may_be_late && last }
        }
        Err(_) => false,
    };
    let cancel_kept =
        sent.cancelled != Some(true) || outcome.as_ref().is_err_and(TaskError::is_cancelled);
    if fits && cancel_kept {
        return Ok(());
    }
    let found = outcome.as_ref().map(|reply| (reply.number, reply.attempt, reply.ballast.len()));
    let Circumstances { killed, stopped_any, may_cancel, may_kill, .. } = circumstances;
    let killed = killed.len();
    Err(format!(
        "{sent:?} may not end in {found:?} when {killed} workers were killed from outside (any stopped: {stopped_any}) and \
         the shutdown {} cancel and {} kill",
        if *may_cancel { "may" } else { "may not" },
        if *may_kill { "may" } else { "may not" },
    ))
}

fn reply_fits(sent: &Sent, reply: &Reply) -> bool {
    let ballast = match sent.behavior {
        Behavior::ReturnsMuch => {
            reply.ballast.len() == MUCH && reply.ballast.iter().all(|byte| *byte == 8)
        }
        _ => reply.ballast.len() == sent.size && reply.ballast.iter().all(|byte| *byte == 7),
    };
    let attempt = match sent.behavior {
        Behavior::SurvivesTheThird => 3..=sent.retries + 1,
        Behavior::Returns
        | Behavior::Spins
        | Behavior::Sleeps
        | Behavior::ReturnsMuch
        | Behavior::StopsItself => 1..=sent.retries + 1,
        // No other outcome is possible.
        _ => return false,
    };
    reply.number == sent.number && ballast && attempt.contains(&reply.attempt)
}

/// The record of an order that a pool accepted.
#[derive(Debug, Clone)]
pub(super) struct Sent {
    pub(super) behavior: Behavior,
    pub(super) number: u64,
    pub(super) size: usize,
    pub(super) retries: u32,
    /// The value returned by the last `cancel`.
    pub(super) cancelled: Option<bool>,
    /// `true` if a `kill` reported success, if there was one.
    pub(super) killed: Option<bool>,
    /// `true` if the task has a deadline.
    pub(super) may_be_late: bool,
    /// `true` if the task has a queue deadline.
    pub(super) may_expire: bool,
}

impl Serialize for CannotArrive {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        SpoilsDecoding(How::Fails).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for CannotArrive {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        SpoilsDecoding::deserialize(deserializer).map(|_| Self)
    }
}
