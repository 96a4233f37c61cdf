//! The sections of a measurement. Each runs in a process of its own.

use std::process;
use std::thread;
use std::time::{Duration, Instant};

use clap::ValueEnum;

use super::{costs, pools};
use crate::figures::{Measured, Outcome};

/// A group of cases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Section {
    /// Single operations: the parameters of the model.
    Costs,
    /// Tasks that threads submit one by one, and then wait for.
    Each,
    /// Tasks of one map.
    Map,
    /// Threads that each submit a no-op, wait for it, and repeat.
    Callers,
    /// Many more workers than cores.
    Crowd,
    /// Items of one stream.
    Stream,
    /// Pools whose workers have all started.
    Start,
}

impl Section {
    pub(crate) const ALL: [Self; 7] =
        [Self::Costs, Self::Each, Self::Map, Self::Callers, Self::Crowd, Self::Stream, Self::Start];

    /// The section's name on the command line and in files.
    pub(crate) fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// Its part of the time.
    pub(super) fn weight(self) -> f64 {
        match self {
            Self::Costs => 10.0,
            Self::Each => 50.0,
            Self::Map | Self::Callers => 12.0,
            Self::Crowd | Self::Stream => 6.0,
            Self::Start => 4.0,
        }
    }
}

/// Measures a section and prints its figures, a line of JSON for each.
pub(crate) fn run(section: Section, seconds: f64) -> Outcome<()> {
    end_after(Duration::from_secs_f64(3.0 * seconds + 30.0));
    let mut report = |measured: Measured| -> Outcome<()> {
        println!("{}", serde_json::to_string(&measured)?);
        Ok(())
    };
    match section {
        Section::Costs => costs::measure(seconds, &mut report),
        Section::Each => pools::each(seconds, &mut report),
        Section::Map => pools::map(seconds, &mut report),
        Section::Callers => pools::callers(seconds, &mut report),
        Section::Crowd => pools::crowd(seconds, &mut report),
        Section::Stream => pools::stream(seconds, &mut report),
        Section::Start => pools::start(seconds, &mut report),
    }
}

/// Takes each figure as soon as there is one.
pub(super) type Report<'a> = &'a mut dyn FnMut(Measured) -> Outcome<()>;

/// Ends this process if it takes far too long; its workers end with it.
fn end_after(bound: Duration) {
    thread::spawn(move || {
        let end = Instant::now() + bound;
        while let Some(left) = end.checked_duration_since(Instant::now()) {
            thread::park_timeout(left);
        }
        eprintln!("the section takes longer than {} seconds", bound.as_secs());
        process::exit(1);
    });
}
