//! The whole run: rounds of sections, in which contestants take turns.

use std::time::Instant;

use clap::ValueEnum;

use crate::arguments::Arguments;
use crate::contestant::{ALL, Contestant};
use crate::facts;
use crate::load::Load;
use crate::report::{EVERYTHING, Outcome, Report};
use crate::results::Results;
use crate::section::Section;
use crate::supervise;
use crate::tree::Tree;

pub(crate) fn run(arguments: &Arguments) -> Outcome<()> {
    let begin = Instant::now();
    let busy = facts::load_average().unwrap_or_else(|| "unknown".to_owned());
    let mut load = Load::new(arguments.quick);
    load.idle_seconds = arguments.idle_seconds.unwrap_or(load.idle_seconds);
    let sections = match arguments.only.as_slice() {
        [] => Section::value_variants(),
        chosen => chosen,
    };
    let tree = sections.contains(&Section::Work).then(|| Tree::grow(&load)).transpose()?;
    if let Some(tree) = &tree {
        load.list.clone_from(&tree.list);
    }
    let rounds = usize::try_from(arguments.rounds)?;
    let mut results = Results::new(rounds);
    for round in 0..rounds {
        for &section in sections {
            let mut answers = Vec::new();
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
                answers.push((contestant, report));
            }
            compare_answers(&mut answers);
            for (contestant, report) in answers {
                results.add(round, section, contestant, report);
            }
        }
    }
    results.add_fact("load average before", busy);
    facts::collect(&mut results, arguments, &load, begin.elapsed());
    results.write(&arguments.json, &arguments.table)
}

/// Forwards in one round and backwards in the next, so that nobody is always measured after the
/// same other one.
fn turns(round: usize) -> Vec<Contestant> {
    let mut turns = ALL.to_vec();
    if round % 2 == 1 {
        turns.reverse();
    }
    turns
}

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

/// Figures for work count only when the work was done: all must have come to what the first did.
fn compare_answers(reports: &mut [(Contestant, Report)]) {
    let Some(expected) = reports.iter().find_map(|(_, report)| report.answer.clone()) else {
        return;
    };
    for (_, report) in reports {
        if report.answer.as_ref().is_some_and(|answer| *answer != expected) {
            report.figures.clear();
            report.miss(EVERYTHING, "its answer differs from that of the others");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{compare_answers, turns};
    use crate::contestant::Contestant;
    use crate::report::Report;

    #[test]
    fn figures_for_other_work_do_not_count() {
        let of = |answer: Option<&str>| {
            let mut report = Report::new("");
            report.record("files_seconds", 1.0);
            report.answer = answer.map(str::to_owned);
            (Contestant::Raw, report)
        };
        let mut reports = [of(None), of(Some("a")), of(Some("b")), of(Some("a"))];
        compare_answers(&mut reports);
        let counts: Vec<usize> = reports.iter().map(|(_, report)| report.figures.len()).collect();
        assert_eq!(counts, [1, 1, 0, 1]);
    }

    #[test]
    fn everybody_has_a_turn_in_every_round() {
        assert_eq!(turns(0).len(), turns(1).len());
        assert_eq!(turns(0).first(), turns(1).last());
    }
}
