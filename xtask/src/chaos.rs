//! `cargo xtask chaos --cluster`: the long form of the test `chaos` in crates/cluster.

use std::process::ExitCode;

use crate::invocation::Invocation;
use crate::seeded::{value, with_seed};
use crate::tools::{NATS_SERVER, permits_namespaces, runs};

/// Number of tasks of the long form.
const TASKS: &str = "100000";

const TEST: &str = "every_task_has_one_outcome_whatever_dies_or_is_cut_off";

pub(crate) fn run(arguments: &[String]) -> Result<ExitCode, String> {
    if !arguments.iter().any(|argument| argument == "--cluster") {
        return Err("usage: cargo xtask chaos --cluster [--seed S] [--tasks N]".to_owned());
    }
    if !(runs(NATS_SERVER) && permits_namespaces()) {
        return Err(format!("needs {NATS_SERVER}, and root with `ip` for network namespaces"));
    }
    let arguments = with_seed(arguments);
    let variable = |option| value(&arguments, option);
    let command = format!("test -p brigade-cluster --test chaos -- --nocapture --exact {TEST}");
    Invocation::cargo(&command)
        .variable("BRIGADE_CHAOS_SEED", variable("--seed").unwrap_or_default())
        .variable("BRIGADE_CHAOS_TASKS", variable("--tasks").unwrap_or(TASKS))
        .run()?;
    Ok(ExitCode::SUCCESS)
}
