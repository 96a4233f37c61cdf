//! Runs steps in order and times them; the first failure ends the run.

use std::process::ExitCode;
use std::time::Instant;

use crate::invocation::Invocation;

/// A check that must pass.
pub(crate) struct Step {
    name: &'static str,
    /// The command that runs only this step.
    command: String,
    action: Box<dyn Fn() -> Result<(), String>>,
}

impl Step {
    pub(crate) fn new(
        name: &'static str,
        command: impl Into<String>,
        action: impl Fn() -> Result<(), String> + 'static,
    ) -> Self {
        Self { name, command: command.into(), action: Box::new(action) }
    }

    pub(crate) fn cargo(name: &'static str, invocation: Invocation) -> Self {
        Self::new(name, invocation.to_string(), move || invocation.run())
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

/// Runs the steps in order, and lists those that are left out. The last line printed counts the
/// steps: `N passed, M failed`.
pub(crate) fn run_all(steps: &[Step], left_out: &[LeftOut]) -> ExitCode {
    let start = Instant::now();
    let mut report = Vec::new();
    let mut failed = 0;
    for step in steps {
        println!("\n==> {}: {}", step.name, step.command);
        let begun = Instant::now();
        let outcome = (step.action)();
        let seconds = begun.elapsed().as_secs_f64();
        let word = if outcome.is_ok() { "ok" } else { "FAILED" };
        println!("<== {}: {word} in {seconds:.1} s", step.name);
        report.push(format!("{word:>8} {seconds:7.1} s  {}", step.name));
        if let Err(message) = outcome {
            failed = 1;
            eprintln!("{message}");
            break;
        }
    }
    println!("\nran in {:.1} s:", start.elapsed().as_secs_f64());
    for line in &report {
        println!("{line}");
    }
    for step in &steps[report.len()..] {
        println!(" not run            {}", step.name);
    }
    for LeftOut { name, reason } in left_out {
        println!("left out            {name}: {reason}");
    }
    if failed > 0 {
        println!("run the failed step again with:\n  {}", steps[report.len() - 1].command);
    }
    println!("{} passed, {failed} failed", report.len() - failed);
    if failed > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::process::ExitCode;
    use std::rc::Rc;

    use super::{Step, run_all};

    #[test]
    fn the_first_failure_ends_the_run() {
        let ran = Rc::new(Cell::new(0));
        let step = |outcome: Result<(), String>| {
            let ran = Rc::clone(&ran);
            Step::new("a step", "cargo a-step", move || {
                ran.set(ran.get() + 1);
                outcome.clone()
            })
        };
        let steps = [step(Ok(())), step(Err("broken".to_owned())), step(Ok(()))];
        let code = run_all(&steps, &[]);
        assert_eq!(ran.get(), 2);
        assert_eq!(format!("{code:?}"), format!("{:?}", ExitCode::FAILURE));
        assert_eq!(
            format!("{:?}", run_all(&[step(Ok(()))], &[])),
            format!("{:?}", ExitCode::SUCCESS)
        );
    }
}
