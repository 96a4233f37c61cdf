//! Tasks that scribble at random over everything that their worker can reach, among innocent ones.
//!
//! A run is a sequence of rounds, each with its own pool. Two threads submit innocent tasks, whose
//! values are known, and now and then a guilty one, which scribbles over one or more targets. Each
//! task notes the process in which it begins (`notes`). So it is known in the end which workers
//! were scribbled over, and each outcome can be judged (`verdict`): an innocent task that began in
//! a sound worker has its value. One that shared its worker with a guilty task may have died with
//! it, or be garbled. A round also fails if anything hangs, or if the host panics, takes too much
//! memory, or keeps any resource.
//!
//! In rounds of the other kind the workers themselves are attackers (`hostile`).
//!
//! A round depends on its own seed only; a failure prints a line with that seed that repeats it.

mod guilty;
mod hostile;
mod innocent;
mod memory;
mod notes;
mod plan;
mod round;
mod sockets;
mod submitter;
mod summary;
mod targets;
mod verdict;

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use brigade_testkit::Random;
use serde::{Deserialize, Serialize};

use crate::watch::Watch;
pub use hostile::attack;
pub use summary::Summary;

/// Settings of a run.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Seed of the first round; each further round uses the next number.
    pub seed: u64,
    /// Length of the run.
    pub amount: Amount,
    /// The workers are attackers that know the protocol.
    pub hostile: bool,
    /// The link to use; `None` alternates between both.
    pub link: Option<Wire>,
}

/// Length of a run.
#[derive(Debug, Clone, Copy)]
pub enum Amount {
    /// No round begins after this time.
    Time(Duration),
    /// Number of rounds.
    Rounds(u64),
}

/// The links, as named on the command line.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum, Serialize, Deserialize,
)]
pub enum Wire {
    /// Rings in shared memory.
    Ring,
    /// ipc-channel.
    Ipc,
}

/// Messages of panics in the host's threads.
static PANICS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Runs rounds until the amount is reached.
///
/// # Errors
/// Returns the problem of the first round that failed, and the line that repeats it.
pub fn run(settings: &Settings) -> Result<Summary, String> {
    let begin = Instant::now();
    // Installs the subscriber, because captured output needs a destination.
    crate::Captured::get();
    record_panics();
    let mut summary = Summary::default();
    for round in 0.. {
        let over = match settings.amount {
            Amount::Time(time) => begin.elapsed() >= time,
            Amount::Rounds(rounds) => round == rounds,
        };
        if over {
            break;
        }
        let seed = settings.seed.wrapping_add(round);
        let by_turns = if seed.is_multiple_of(2) { Wire::Ring } else { Wire::Ipc };
        let link = settings.link.unwrap_or(by_turns);
        one_round(seed, link, settings.hostile, &mut summary)?;
    }
    Ok(summary)
}

fn one_round(seed: u64, link: Wire, is_hostile: bool, summary: &mut Summary) -> Result<(), String> {
    let kind = if is_hostile { "--hostile " } else { "" };
    let link_name = link.name();
    let repeat = format!("cargo xtask fuzz {kind}--seed {seed} --rounds 1 --link {link_name}");
    let watch = Watch::start(repeat.clone());
    let mut random = Random::new(seed);
    let (plan, played) = if is_hostile {
        let plan = hostile::Plan::new(seed, &mut random, link);
        let played = hostile::run(&plan, &mut random, &watch, summary);
        (format!("{plan:?}"), played)
    } else {
        let plan = plan::Plan::new(&mut random, link);
        let played = round::run(&plan, &mut random, &watch, summary);
        (format!("{plan:?}"), played)
    };
    let panics = std::mem::take(&mut *PANICS.lock().unwrap_or_else(PoisonError::into_inner));
    let no_panic = panics.first().map_or(Ok(()), |panic| Err(format!("the host: {panic}")));
    played.and(no_panic).map_err(|problem| format!("{problem}\nin {plan}\nrepeat with: {repeat}"))
}

fn record_panics() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        // ipc-channel panics at impossible lengths. The link treats these panics as garbage from
        // the worker.
        let by_ipc_channel =
            panic.location().is_some_and(|place| place.file().contains("ipc-channel"));
        if !by_ipc_channel {
            PANICS.lock().unwrap_or_else(PoisonError::into_inner).push(panic.to_string());
            before(panic);
        }
    }));
}

impl Wire {
    fn name(self) -> &'static str {
        match self {
            Self::Ring => "ring",
            Self::Ipc => "ipc",
        }
    }

    fn link(self) -> brigade::Link {
        match self {
            Self::Ring => brigade::Link::Ring,
            Self::Ipc => brigade::Link::Ipc,
        }
    }
}
