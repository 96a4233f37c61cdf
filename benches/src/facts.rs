//! Facts that figures are meaningless without: the machine, the programs, the commit.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use brigade_sys::process::command;

use crate::arguments::Arguments;
use crate::load::Load;
use crate::results::Results;

/// Returns the load average. Read it before the run: afterwards it is the run's own load.
pub(crate) fn load_average() -> Option<String> {
    Some(read("/proc/loadavg")?.split(' ').next()?.to_owned())
}

/// Adds the facts about this run to `results`.
pub(crate) fn collect(results: &mut Results, arguments: &Arguments, load: &Load, took: Duration) {
    let mut add = |name, value: Option<String>| {
        results.add_fact(name, value.unwrap_or_else(|| "unknown".to_owned()));
    };
    add("processor", field("/proc/cpuinfo", "model name"));
    let cores = std::thread::available_parallelism().ok();
    add("cores", cores.map(|cores| cores.to_string()));
    add("memory", memory());
    add("kernel", read("/proc/sys/kernel/osrelease").map(|release| format!("Linux {release}")));
    add("rustc", says("rustc", &["--version"]));
    add("python", says(&arguments.python().display().to_string(), &["--version"]));
    // A checkout with local changes is not the commit it is based on.
    let changed = says("git", &["status", "--porcelain"]).is_some_and(|text| !text.is_empty());
    let commit = says("git", &["log", "-1", "--format=%h"]);
    let suffix = if changed { " and changes" } else { "" };
    add("commit", commit.map(|commit| format!("{commit}{suffix}")));
    add("date", says("git", &["log", "-1", "--format=%cs"]));
    let quick = if arguments.quick { ", quick: less of everything" } else { "" };
    let rounds = if arguments.rounds == 1 { "round" } else { "rounds" };
    let minutes = took.as_secs_f64() / 60.0;
    let run = format!(
        "{} {rounds} in {minutes:.1} minutes{quick}; the tree has {} files",
        arguments.rounds, load.files
    );
    add("run", Some(run));
}

fn read(path: &str) -> Option<String> {
    Some(fs::read_to_string(path).ok()?.trim().to_owned())
}

fn field(path: &str, name: &str) -> Option<String> {
    let text = read(path)?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.trim_start_matches([' ', '\t', ':']).to_owned())
}

fn memory() -> Option<String> {
    let kibibytes: u64 = field("/proc/meminfo", "MemTotal")?.split(' ').next()?.parse().ok()?;
    Some(format!("{} GiB", (kibibytes + (1 << 19)) >> 20))
}

/// Returns the output of a program, or `None` if it is not installed or fails.
fn says(program: &str, arguments: &[&str]) -> Option<String> {
    let mut command = command(program);
    command.args(arguments).stderr(Stdio::null());
    // `git` must look at this checkout, wherever the run was started.
    command.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")));
    let output = command.output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
