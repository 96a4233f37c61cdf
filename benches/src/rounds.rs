//! Runs all rounds: in each section, the contestants take turns.

use std::time::Instant;

use clap::ValueEnum;

use crate::arguments::Arguments;
use crate::contestant::{ALL, Contestant};
use crate::facts;
use crate::images::Gallery;
use crate::load::Load;
use crate::report::{EVERYTHING, Outcome, Report};
use crate::results::Results;
use crate::section::Section;
use crate::service;
use crate::supervise;
use crate::tree::Tree;

/// Returns the figures of all rounds.
pub(crate) fn run(arguments: &Arguments) -> Outcome<Results> {
    let begin = Instant::now();
    let busy = facts::load_average().unwrap_or_else(|| "unknown".to_owned());
    let mut load = Load::new(arguments.quick);
    load.idle_seconds = arguments.idle_seconds.unwrap_or(load.idle_seconds);
    let sections = match arguments.only.as_slice() {
        [] => Section::value_variants(),
        chosen => chosen,
    };
    let tree = sections.contains(&Section::Work).then(|| Tree::create(&load)).transpose()?;
    if let Some(tree) = &tree {
        load.list.clone_from(&tree.list);
    }
    let uses_pictures = |section: &Section| matches!(section, Section::Loader | Section::Service);
    let gallery = sections.iter().any(uses_pictures).then(|| Gallery::create(&load)).transpose()?;
    if let Some(gallery) = &gallery {
        load.pictures.clone_from(&gallery.list);
    }
    if sections.contains(&Section::Service) {
        service::build()?;
    }
    let rounds = usize::try_from(arguments.rounds)?;
    let mut results = Results::new(rounds);
    for round in 0..rounds {
        for &section in sections {
            let mut reports = Vec::new();
            for contestant in turns(round) {
                if !contestant.takes_part(section) {
                    continue;
                }
                if let Some(tree) = tree.as_ref().filter(|_| section == Section::Work) {
                    tree.warm()?;
                }
                let report = turn(contestant, section, &load, arguments);
                let seconds = begin.elapsed().as_secs();
                eprintln!(
                    "{seconds:>5} s  round {} of {rounds}  {:<10}  {}",
                    round + 1,
                    section.name(),
                    contestant.name()
                );
                reports.push((contestant, report));
            }
            compare_checksums(&mut reports);
            for (contestant, report) in reports {
                results.add(round, section, contestant, report);
            }
        }
    }
    results.add_fact("load average before", busy);
    facts::collect(&mut results, arguments, &load, begin.elapsed());
    Ok(results)
}

/// Returns the order of turns, reversed in every second round, so that no contestant always follows
/// the same other one.
fn turns(round: usize) -> Vec<Contestant> {
    let mut turns = ALL.to_vec();
    if round % 2 == 1 {
        turns.reverse();
    }
    turns
}

/// Measures one contestant in one section.
fn turn(contestant: Contestant, section: Section, load: &Load, arguments: &Arguments) -> Report {
    match contestant.command(section, load, arguments) {
        Ok(mut command) => supervise::run(&mut command, section.deadline()),
        Err(reason) => {
            let mut report = Report::default();
            report.miss(EVERYTHING, reason.to_string());
            report
        }
    }
}

/// Discards the figures of contestants whose checksum differs from the first one: figures count
/// only if the work was done.
fn compare_checksums(reports: &mut [(Contestant, Report)]) {
    let Some(expected) = reports.iter().find_map(|(_, report)| report.checksum.clone()) else {
        return;
    };
    for (_, report) in reports {
        if report.checksum.as_ref().is_some_and(|checksum| *checksum != expected) {
            report.figures.clear();
            report.miss(EVERYTHING, "its checksum differs from the other contestants'");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{compare_checksums, turns};
    use crate::contestant::Contestant;
    use crate::report::Report;

    #[test]
    fn figures_with_a_different_checksum_do_not_count() {
        let of = |checksum: Option<&str>| {
            let mut report = Report::new("");
            report.record("files_seconds", 1.0);
            report.checksum = checksum.map(str::to_owned);
            (Contestant::Raw, report)
        };
        let mut reports = [of(None), of(Some("a")), of(Some("b")), of(Some("a"))];
        compare_checksums(&mut reports);
        let counts: Vec<usize> = reports.iter().map(|(_, report)| report.figures.len()).collect();
        assert_eq!(counts, [1, 1, 0, 1]);
    }

    #[test]
    fn every_contestant_has_a_turn_in_every_round() {
        assert_eq!(turns(0).len(), turns(1).len());
        assert_eq!(turns(0).first(), turns(1).last());
    }
}
