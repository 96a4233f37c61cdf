//! Tasks that scribble at random over all that their worker can reach, among innocent ones.
//!
//! A run is a sequence of rounds, each with a pool of its own. Two threads submit innocent tasks, whose values are
//! known, and now and then a guilty one, which scribbles over one or more targets. Each task notes
//! in which process it begins (`notes`). So it is known in the end which workers were scribbled over, and each outcome can
//! be judged (`verdict`): an innocent task that another worker began has its value. One that shared its worker with a
//! guilty task may have died with it, or have been garbled. Beyond that a round fails when something hangs, the
//! host panics, takes memory, or keeps anything.
//!
//! A round depends on its own seed only, and the line that repeats it has that.

mod guilty;
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
pub use summary::Summary;

/// What is run.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Of the first round; each further one has the next number.
    pub seed: u64,
    /// How much.
    pub amount: Amount,
    /// Both by turns when it is missing.
    pub link: Option<Wire>,
}

/// When a run ends.
#[derive(Debug, Clone, Copy)]
pub enum Amount {
    /// No round begins after this time.
    Time(Duration),
    /// After so many rounds.
    Rounds(u64),
}

/// The links, as an argument names them.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum, Serialize, Deserialize,
)]
pub enum Wire {
    /// Rings in shared memory.
    Ring,
    /// ipc-channel.
    Ipc,
}

/// What the host's threads said when they panicked.
static PANICS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Runs rounds until the amount is reached.
///
/// # Errors
/// What went wrong in the first round that failed, and how to repeat it.
pub fn run(settings: &Settings) -> Result<Summary, String> {
    let begin = Instant::now();
    // Captured output has to go somewhere.
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
        one_round(seed, settings.link.unwrap_or(by_turns), &mut summary)?;
    }
    Ok(summary)
}

fn one_round(seed: u64, link: Wire, summary: &mut Summary) -> Result<(), String> {
    let repeat = format!("cargo xtask fuzz --seed {seed} --rounds 1 --link {}", link.name());
    let watch = Watch::start(repeat.clone());
    let mut random = Random::new(seed);
    let plan = plan::Plan::new(&mut random, link);
    let played = round::run(&plan, &mut random, &watch, summary);
    let panics = std::mem::take(&mut *PANICS.lock().unwrap_or_else(PoisonError::into_inner));
    let no_panic = panics.first().map_or(Ok(()), |panic| Err(format!("the host: {panic}")));
    played.and(no_panic).map_err(|problem| format!("{problem}\nin {plan:?}\nrepeat with: {repeat}"))
}

fn record_panics() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        // It panics at lengths that cannot be, which the link takes for what it is: garbage.
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
