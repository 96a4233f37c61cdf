//! `cargo xtask programs`: runs programs of everyday in each sandbox of `brigade run`, and prints
//! those that do not work.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use crate::checkout::{root, target_folder};
use crate::invocation::Invocation;

const PROGRAMS: &str = include_str!("programs.txt");

const LEVELS: [&str; 3] = ["no-network", "read-only", "strict"];

pub(crate) fn run(arguments: &[String]) -> Result<ExitCode, String> {
    if !arguments.is_empty() {
        return Err("`cargo xtask programs` takes no arguments".to_owned());
    }
    Invocation::cargo("build --quiet -p brigade-cli").run()?;
    let brigade = root().join(target_folder()).join("debug/brigade");
    let folder = root().join(target_folder()).join("programs");
    prepare(&folder)?;
    let (mut tried, mut missing, mut failing) = (0, Vec::new(), BTreeMap::new());
    for line in PROGRAMS.lines().filter(|line| !line.starts_with('#')) {
        let (name, command) = line.split_once(": ").ok_or_else(|| format!("no command: {line}"))?;
        let runs = |level| runs(&brigade, &folder, level, command);
        if let Err(_absent) = runs(None) {
            missing.push(name);
            continue;
        }
        tried += 1;
        let results = LEVELS.map(|level| runs(Some(level)));
        if let Some(Err(reason)) = results.iter().find(|result| result.is_err()) {
            let works = results.each_ref().map(Result::is_ok);
            failing.entry((works, reason.clone())).or_insert_with(Vec::new).push(name);
        }
    }
    let failed: usize = failing.values().map(Vec::len).sum();
    println!("{} of {tried} work at each level. The others:\n", tried - failed);
    println!("| program | no-network | read-only | strict | it says |\n|---|---|---|---|---|");
    for ((works, reason), names) in failing {
        let [first, second, third] = works.map(|works| if works { "yes" } else { "no" });
        println!("| {} | {first} | {second} | {third} | {reason} |", names.join(", "));
    }
    println!("\nNot installed, or without success outside of a sandbox: {}", missing.join(", "));
    Ok(ExitCode::SUCCESS)
}

/// Makes the files that the programs read.
fn prepare(folder: &Path) -> Result<(), String> {
    let make = "mkdir in && cd in && printf 'a b\\nb c\\n' > text && echo '{\"a\": 1}' > a.json &&
        printf '#include <stdio.h>\\nint main() { puts(\"x\"); return 0; }\\n' > m.c &&
        gcc -c m.c -o m.o && tar cf a.tar text m.c && zip -q a.zip text; gzip -c text > a.gz";
    let _absent = fs::remove_dir_all(folder);
    fs::create_dir_all(folder).map_err(|error| error.to_string())?;
    let ended = Command::new("sh").args(["-c", make]).current_dir(folder).status();
    let is_ready = ended.is_ok_and(|ended| ended.success());
    is_ready.then_some(()).ok_or_else(|| "cannot make the input files".to_owned())
}

/// Runs a command in a new folder `out`. The error is the first line that it writes.
fn runs(brigade: &Path, folder: &Path, level: Option<&str>, line: &str) -> Result<(), String> {
    let out = folder.join("out");
    let _absent = fs::remove_dir_all(&out);
    fs::create_dir(&out).map_err(|error| error.to_string())?;
    let mut command = Command::new(brigade);
    command.arg("run").args(["--env", "TMPDIR=out", "--env", "HOME=out", "--timeout", "60"]);
    if let Some(level) = level {
        command.args(["--sandbox", level, "--write", "out"]);
        if level == "strict" {
            command.args(["--read", "in"]);
        }
    }
    command.args(["--shell", "--", &format!("{line} #"), ":::", "x"]);
    let output = command.current_dir(folder).stdin(Stdio::null()).output();
    let output = output.map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    let says = text.lines().find(|line| !line.starts_with("brigade")).unwrap_or_default();
    let says = says.replace(&format!("{}/", folder.display()), "");
    Err(says.replace('|', "/").chars().take(90).collect())
}
