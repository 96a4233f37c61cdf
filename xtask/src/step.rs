//! Runs steps in order and times them, up to the first failure or in spite of it.

use std::process::ExitCode;
use std::time::Instant;

use crate::invocation::Invocation;

/// A check that must pass.
pub(crate) struct Step {
    name: String,
    /// The command that runs only this step.
    command: String,
    action: Box<dyn Fn() -> Result<(), String>>,
}

impl Step {
    pub(crate) fn new(
        name: impl Into<String>,
        command: impl Into<String>,
        action: impl Fn() -> Result<(), String> + 'static,
    ) -> Self {
        Self { name: name.into(), command: command.into(), action: Box::new(action) }
    }

    pub(crate) fn cargo(name: impl Into<String>, invocation: Invocation) -> Self {
        Self::new(name, invocation.to_string(), move || invocation.run())
    }

    #[cfg(test)]
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    #[cfg(test)]
    pub(crate) fn command(&self) -> &str {
        &self.command
    }
}

/// A check that this machine cannot run.
pub(crate) struct LeftOut {
    pub(crate) name: &'static str,
    pub(crate) reason: String,
}

/// Runs the steps in order, up to the first that fails unless `keep_going` is set. Lists what
/// became of each step. The last line counts them: `N passed, M failed, K skipped`.
pub(crate) fn run_all(steps: &[Step], left_out: &[LeftOut], keep_going: bool) -> ExitCode {
    let start = Instant::now();
    let mut report = Vec::new();
    let mut failed = Vec::new();
    for step in steps {
        println!("\n==> {}: {}", step.name, step.command);
        let begun = Instant::now();
        let outcome = (step.action)();
        let seconds = begun.elapsed().as_secs_f64();
        let word = if outcome.is_ok() { "ok" } else { "FAILED" };
        println!("<== {}: {word} in {seconds:.1} s", step.name);
        report.push(format!("{word:>8} {seconds:7.1} s  {}", step.name));
        if let Err(message) = outcome {
            eprintln!("{message}");
            failed.push(step);
            if !keep_going {
                break;
            }
        }
    }
    println!("\nran in {:.1} s:", start.elapsed().as_secs_f64());
    for line in &report {
        println!("{line}");
    }
    let not_run = &steps[report.len()..];
    for step in not_run {
        println!(" not run            {}", step.name);
    }
    for LeftOut { name, reason } in left_out {
        println!("left out            {name}: {reason}");
    }
    if !failed.is_empty() {
        println!("\nrun again what failed:");
        for step in &failed {
            println!("  {}", step.command);
        }
    }
    let (passed, skipped) = (report.len() - failed.len(), not_run.len() + left_out.len());
    println!("\n{passed} passed, {} failed, {skipped} skipped", failed.len());
    if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::process::ExitCode;
    use std::rc::Rc;

    use super::{Step, run_all};

    /// Returns the number of steps that ran, and the exit code.
    fn run(outcomes: &[Result<(), &str>], keep_going: bool) -> (usize, String) {
        let ran = Rc::new(Cell::new(0));
        let step = |outcome: &Result<(), &str>| {
            let (ran, outcome) = (Rc::clone(&ran), outcome.map_err(str::to_owned));
            Step::new("a step", "cargo a-step", move || {
                ran.set(ran.get() + 1);
                outcome.clone()
            })
        };
        let steps: Vec<Step> = outcomes.iter().map(step).collect();
        let code = run_all(&steps, &[], keep_going);
        (ran.get(), format!("{code:?}"))
    }

    #[test]
    fn the_first_failure_ends_the_run() {
        let failure = format!("{:?}", ExitCode::FAILURE);
        assert_eq!(run(&[Ok(()), Err("broken"), Ok(())], false), (2, failure));
        assert_eq!(run(&[Ok(())], false), (1, format!("{:?}", ExitCode::SUCCESS)));
    }

    #[test]
    fn keep_going_runs_all_steps_and_still_fails() {
        let failure = format!("{:?}", ExitCode::FAILURE);
        assert_eq!(run(&[Err("broken"), Ok(()), Err("broken")], true), (3, failure));
    }
}
