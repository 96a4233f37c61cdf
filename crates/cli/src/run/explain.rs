//! Explains errors of the library in terms of the command: its options instead of methods.

use brigade::cores::{BuildError as PoolError, ReserveError};
use brigade::runner::{BuildError, ConfigError, RunnerError};
use miette::{Report, miette};

use crate::input::ListError;

/// Explains why a runner could not be built.
pub(super) fn build_error(error: BuildError) -> Report {
    match error {
        BuildError::Config(ConfigError { field, problem }) => {
            let option = match field {
                "canary_limit" => "canary-timeout".to_owned(),
                "slot_variable" => "process-slot-var".to_owned(),
                field => field.replace('_', "-"),
            };
            miette!("--{option} {problem}")
        }
        BuildError::NeverFits(source) => reserve_error(source),
        BuildError::Cores(error) => pool_error(error),
        error => Report::from_err(error),
    }
}

/// Explains why the cores for jobs cannot be used.
pub(super) fn pool_error(error: PoolError) -> Report {
    match error {
        PoolError::Empty { isolated: true } => miette!(
            help = "use --no-pin, or start brigade with `taskset`",
            "all usable cores are isolated from the scheduler, and jobs are not pinned to such cores"
        ),
        error => Report::from_err(error),
    }
}

/// Explains why a file of jobs cannot be run.
pub(super) fn list_error(error: ListError) -> Report {
    match error {
        ListError::Duplicate { first, second, value, .. } => miette!(
            help = "remove one of them, or use --allow-duplicates",
            "job {second} is the same as job {first}: {value:.200}"
        ),
        error => Report::from_err(error),
    }
}

/// Explains why a run as a whole failed.
pub(super) fn run_error(error: RunnerError) -> Report {
    match error {
        RunnerError::NeverFits { number, job, source } => {
            reserve_error(source).wrap_err(format!("job {number} ({job:.200}) can never run"))
        }
        RunnerError::Duplicate { first, second, job } => miette!(
            help = "remove one of them, give them labels, or use --allow-duplicates",
            "job {second} is the same as job {first}: {job:.200}"
        ),
        error => Report::from_err(error),
    }
}

fn reserve_error(error: ReserveError) -> Report {
    match error {
        ReserveError::NeverFits { request, most, .. } => {
            let cores = if request.count() == 1 { "core" } else { "cores" };
            miette!(
                "a job cannot get {} {cores}: at most {most} can be granted here with this policy; ask for fewer, or use \
                 another --policy",
                request.count()
            )
        }
        error => Report::from_err(error),
    }
}
