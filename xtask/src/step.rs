//! Runs steps in two lanes, times them, and tells what became of each.
//!
//! Steps of [`Lane::First`] run one after the other, and the others only if these pass. Then two
//! threads run: one has the steps whose tests wait for processes and timers, the other has those
//! that compile, at the lowest priority and with their output in a file, which is shown if the step
//! fails. After a failure, no lane begins another step unless the caller keeps going.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

use crate::invocation::Invocation;
use crate::usage::{self, Usage};

/// The thread on which a step runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    First,
    Processes,
    Builds,
}

/// A check that must pass.
pub(crate) struct Step {
    pub(crate) name: String,
    pub(crate) lane: Lane,
    /// The command that runs only this step.
    pub(crate) command: String,
    action: Box<dyn Fn() -> Result<(), String> + Send + Sync>,
}

/// The way in which steps run.
pub(crate) struct How {
    /// `true` to run the other steps after one that fails.
    pub(crate) keep_going: bool,
    /// The number of units that may be compiled.
    pub(crate) budget: Option<usize>,
    /// The folder of the table and of the output of builds.
    pub(crate) folder: PathBuf,
}

/// A check that does not run.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LeftOut {
    pub(crate) name: String,
    pub(crate) reason: String,
}

impl Step {
    pub(crate) fn new(
        lane: Lane,
        name: impl Into<String>,
        command: impl Into<String>,
        action: impl Fn() -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        Self { name: name.into(), lane, command: command.into(), action: Box::new(action) }
    }

    pub(crate) fn cargo(lane: Lane, name: impl Into<String>, invocation: Invocation) -> Self {
        Self::new(lane, name, invocation.to_string(), move || invocation.run())
    }
}

/// A step that ran, with its cost and its result.
struct Ran<'a> {
    step: &'a Step,
    seconds: f64,
    usage: Usage,
    outcome: Result<(), String>,
}

/// Runs the steps and prints a table of their cost, which is also kept in a file. The last line
/// counts them: `N passed, M failed, K skipped`. Fails if a step does, or if more than the budget
/// was compiled.
pub(crate) fn run_all(steps: &[Step], left_out: &[LeftOut], how: &How) -> ExitCode {
    let How { keep_going, budget, folder } = how;
    let (keep_going, budget) = (*keep_going, *budget);
    // A failure shows when a file in it is created.
    let _ = fs::create_dir_all(folder);
    let start = Instant::now();
    let stop = AtomicBool::new(false);
    let run = |lane: Lane| {
        let mut ran = Vec::new();
        for step in steps.iter().filter(|step| step.lane == lane) {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            ran.push(run_step(step, folder));
            if !keep_going && ran.last().is_some_and(|ran| ran.outcome.is_err()) {
                stop.store(true, Ordering::Relaxed);
            }
        }
        ran
    };
    let mut ran = run(Lane::First);
    thread::scope(|scope| {
        let builds = scope.spawn(|| run(Lane::Builds));
        ran.extend(run(Lane::Processes));
        ran.extend(builds.join().unwrap_or_default());
    });
    let table = table(&ran, start.elapsed().as_secs_f64());
    println!("\n{table}{}", keep(&table, folder));
    let not_run = steps.iter().filter(|step| !ran.iter().any(|ran| ran.step.name == step.name));
    let not_run: Vec<&Step> = not_run.collect();
    for step in &not_run {
        println!(" not run  {}", step.name);
    }
    for LeftOut { name, reason } in left_out {
        println!("left out  {name}: {reason}");
    }
    let failed: Vec<&Ran<'_>> = ran.iter().filter(|ran| ran.outcome.is_err()).collect();
    if !failed.is_empty() {
        println!("\nrun again what failed:");
        for ran in &failed {
            println!("  {}", ran.step.command);
        }
    }
    let units = ran.iter().map(|ran| ran.usage.units).sum::<usize>();
    let exceeds = budget.is_some_and(|budget| units > budget);
    if let Some(budget) = budget.filter(|_| exceeds) {
        println!(
            "\n{units} units were compiled, and the budget is {budget}: compile less, or say why not in BUDGET in xtask/src/test.rs"
        );
    }
    let (passed, skipped) = (ran.len() - failed.len(), not_run.len() + left_out.len());
    println!("\n{passed} passed, {} failed, {skipped} skipped", failed.len());
    if failed.is_empty() && !exceeds { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn run_step<'a>(step: &'a Step, folder: &Path) -> Ran<'a> {
    println!("\n==> {}: {}", step.name, step.command);
    let log = (step.lane == Lane::Builds)
        .then(|| folder.join(format!("{}.log", step.name.replace([' ', ':', ','], "-"))));
    if let Some(file) = log.as_ref().and_then(|path| File::create(path).ok()) {
        usage::print_to(file);
    }
    usage::take();
    let begun = Instant::now();
    let outcome = (step.action)();
    let (seconds, usage) = (begun.elapsed().as_secs_f64(), usage::take());
    if let Err(message) = &outcome {
        let printed = log.and_then(|path| fs::read_to_string(path).ok()).unwrap_or_default();
        eprintln!("{printed}{message}");
    }
    let word = if outcome.is_ok() { "ok" } else { "FAILED" };
    println!("<== {}: {word} in {seconds:.1} s", step.name);
    Ran { step, seconds, usage, outcome }
}

fn table(ran: &[Ran<'_>], seconds: f64) -> String {
    let mut table = String::from("          wall s  processor s  units  step\n");
    let mut row = |word: &str, seconds: f64, usage: Usage, name: &str| {
        let Usage { processor_seconds, units } = usage;
        let _ =
            writeln!(table, "{word:>8} {seconds:7.1} {processor_seconds:12.1} {units:6}  {name}");
    };
    let mut sum = Usage::default();
    for Ran { step, seconds, usage, outcome } in ran {
        sum += *usage;
        row(if outcome.is_ok() { "ok" } else { "FAILED" }, *seconds, *usage, &step.name);
    }
    row("", seconds, sum, "in all, two lanes side by side");
    table
}

/// Writes the table to a file, and returns a line that names it and the one of the run before.
fn keep(table: &str, folder: &Path) -> String {
    let (file, before) = (folder.join("table.txt"), folder.join("table.before.txt"));
    let has_before = fs::rename(&file, &before).is_ok();
    if let Err(error) = fs::write(&file, table) {
        return format!("cannot keep the table in {}: {error}\n", file.display());
    }
    let compare =
        if has_before { format!("; the run before: {}", before.display()) } else { String::new() };
    format!("kept in {}{compare}\n", file.display())
}

#[cfg(test)]
mod tests {
    use std::process::ExitCode;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::{How, Lane, Ran, Step, run_all, table};
    use crate::usage::Usage;

    /// Returns the number of steps that ran, and the exit code.
    fn run(outcomes: &[(Lane, Result<(), &str>)], keep_going: bool) -> (usize, String) {
        let ran = Arc::new(AtomicUsize::new(0));
        let steps = outcomes.iter().enumerate().map(|(index, (lane, outcome))| {
            let (ran, outcome) = (Arc::clone(&ran), outcome.map_err(str::to_owned));
            Step::new(*lane, format!("step {index}"), "cargo a-step", move || {
                ran.fetch_add(1, Ordering::Relaxed);
                outcome.clone()
            })
        });
        let steps: Vec<Step> = steps.collect();
        let folder = std::env::temp_dir().join(format!("brigade-steps-{}", std::process::id()));
        let how = How { keep_going, budget: None, folder };
        let code = run_all(&steps, &[], &how);
        let _ = std::fs::remove_dir_all(how.folder);
        (ran.load(Ordering::Relaxed), format!("{code:?}"))
    }

    #[test]
    fn the_first_failure_ends_the_run() {
        let failure = format!("{:?}", ExitCode::FAILURE);
        for lane in [Lane::First, Lane::Processes, Lane::Builds] {
            let steps = [(lane, Ok(())), (lane, Err("broken")), (lane, Ok(()))];
            assert_eq!(run(&steps, false), (2, failure.clone()));
        }
        let before =
            [(Lane::First, Err("broken")), (Lane::Processes, Ok(())), (Lane::Builds, Ok(()))];
        assert_eq!(run(&before, false), (1, failure));
        let success = (1, format!("{:?}", ExitCode::SUCCESS));
        assert_eq!(run(&[(Lane::Builds, Ok(()))], false), success);
    }

    #[test]
    fn keep_going_runs_all_steps_and_still_fails() {
        let failure = format!("{:?}", ExitCode::FAILURE);
        let steps =
            [(Lane::First, Err("broken")), (Lane::Processes, Ok(())), (Lane::Builds, Ok(()))];
        assert_eq!(run(&steps, true), (3, failure));
    }

    #[test]
    fn the_table_adds_up_what_the_steps_cost() {
        let step = Step::new(Lane::First, "a step", "", || Ok(()));
        let usage = Usage { processor_seconds: 1.5, units: 7 };
        let ran = || Ran { step: &step, seconds: 1.0, usage, outcome: Ok(()) };
        let table = table(&[ran(), ran()], 2.0);
        assert!(table.contains("      ok     1.0          1.5      7  a step"), "{table}");
        assert!(table.contains("3.0     14  in all"), "{table}");
    }
}
