//! Roles of this executable when it is started by itself: a contestant, or the other end of a
//! ping-pong.

use crate::contestant::Contestant;
use crate::load::Load;
use crate::raw;
use crate::report::{EVERYTHING, Outcome, Report};
use crate::section::Section;
use crate::{blocking, ours, threads};

use brigade::Link;
use brigade_sys::parent_death;
use clap::ValueEnum;

/// A role other than the process that runs the rounds.
#[derive(Debug)]
pub(crate) enum Role {
    /// Exits at once, to measure the cost of starting this executable.
    Exit,
    /// Answers messages, pinned to a core, until its parent exits.
    Echo { echo: raw::Echo, core: usize },
    /// Copies itself that often, to measure the cost of a copy.
    Forks { count: usize },
    /// Measures one section once.
    Contestant { name: String, section: String, load: String },
}

/// The first argument of a process with a role; users never type it.
pub(crate) const ROLE: &str = "--role";

impl Role {
    /// Returns the role named by the arguments, or `None` in the process that a user started.
    pub(crate) fn of_this_process() -> Option<Self> {
        let mut arguments = std::env::args().skip(1);
        if arguments.next()? != ROLE {
            return None;
        }
        match arguments.next()?.as_str() {
            "exit" => Some(Self::Exit),
            "forks" => Some(Self::Forks { count: arguments.next()?.parse().ok()? }),
            "contestant" => {
                let (name, section) = (arguments.next()?, arguments.next()?);
                Some(Self::Contestant { name, section, load: arguments.next()? })
            }
            echo => {
                let echo = raw::Echo::named(echo)?;
                Some(Self::Echo { echo, core: arguments.next()?.parse().ok()? })
            }
        }
    }

    pub(crate) fn run(self) -> Outcome<()> {
        if matches!(self, Self::Exit) {
            return Ok(());
        }
        // No process that a run has started outlives it. `bind` also notices a parent that has
        // already exited.
        let parent = std::env::var(PARENT)?.parse()?;
        parent_death::bind(parent)?;
        match self {
            Self::Exit => Ok(()),
            Self::Echo { echo, core } => echo.run(core),
            Self::Forks { count } => raw::copy_often(count),
            Self::Contestant { name, section, load } => {
                let section = Section::from_str(&section, false)?;
                let load: Load = serde_json::from_str(&load)?;
                let contestant = Contestant::named(&name).ok_or("no such contestant")?;
                println!("{}", serde_json::to_string(&report(contestant, section, &load))?);
                // The pool was dropped with a kill: a hung task does not delay the exit.
                Ok(())
            }
        }
    }
}

/// Environment variable with the process id of the parent.
pub(crate) const PARENT: &str = "BRIGADE_BENCH_PARENT";

fn report(contestant: Contestant, section: Section, load: &Load) -> Report {
    let mut report = Report::new(contestant.version());
    let outcome = match contestant {
        Contestant::Raw => raw::measure(section, load, &mut report),
        Contestant::Rayon => threads::measure(section, load, &mut report),
        Contestant::Tokio => blocking::measure(section, load, &mut report),
        Contestant::Ipc => ours::measure(Link::Ipc, section, load, &mut report),
        _ => ours::measure(Link::Ring, section, load, &mut report),
    };
    if let Err(error) = outcome {
        report.miss(EVERYTHING, error.to_string());
    }
    report
}
