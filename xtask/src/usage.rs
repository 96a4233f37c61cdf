//! The cost of commands: processor time, and units that a compiler made.
//!
//! Each lane of steps has a thread of its own, so the sums are kept for each thread. A shell in
//! front of a command prints what it and its descendants used, because the standard library does
//! not tell that.

use std::cell::{Cell, RefCell};
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Write};
use std::ops::AddAssign;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::thread;

use crate::checkout::target_folder;

/// The cost of some commands.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Usage {
    /// Of all cores together, in user mode and in the kernel.
    pub(crate) processor_seconds: f64,
    /// Libraries, programs and build scripts that were compiled or checked.
    pub(crate) units: usize,
}

thread_local! {
    static SPENT: Cell<Usage> = const { Cell::new(Usage { processor_seconds: 0.0, units: 0 }) };
    /// The file for all output, if it does not go to the terminal.
    static LOG: RefCell<Option<File>> = const { RefCell::new(None) };
}

/// Prints the times of a command into the file `$0`.
const TIMED: &str = r#""$@"; code=$?; times >"$0"; exit $code"#;

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.processor_seconds += other.processor_seconds;
        self.units += other.units;
    }
}

/// Returns what the commands of this thread have cost since the last call.
pub(crate) fn take() -> Usage {
    SPENT.take()
}

/// Sends what the commands of this thread print to a file from now on, and runs them behind
/// everything else that wants to run.
pub(crate) fn print_to(log: File) {
    LOG.set(Some(log));
}

/// Runs a command to its end. With `is_counted`, it prints messages of cargo as JSON, and the units
/// in them are counted.
pub(crate) fn run(command: &Command, is_counted: bool) -> io::Result<ExitStatus> {
    let file = times_file();
    let log = LOG.with_borrow(|log| log.as_ref().map(File::try_clone).transpose())?;
    let mut timed = Command::new("sh");
    timed.args(["-c", TIMED]).arg(&file);
    if let Some(log) = &log {
        timed.args(["nice", "-n", "19"]).stdin(Stdio::null());
        timed.stdout(log.try_clone()?).stderr(log.try_clone()?);
    }
    timed.arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => timed.env(name, value),
            None => timed.env_remove(name),
        };
    }
    if let Some(folder) = command.get_current_dir() {
        timed.current_dir(folder);
    }
    let mut usage = Usage::default();
    let status = if is_counted {
        let mut child = timed.stdout(Stdio::piped()).spawn()?;
        for line in child.stdout.take().into_iter().flat_map(|out| BufReader::new(out).lines()) {
            let line = line?;
            match units(&line) {
                Some(units) => usage.units += units,
                None => print(log.as_ref(), &line)?,
            }
        }
        child.wait()?
    } else {
        timed.status()?
    };
    // It is missing if the shell was killed.
    usage.processor_seconds = fs::read_to_string(&file).map_or(0.0, |text| seconds(&text));
    let _ = fs::remove_file(&file);
    SPENT.with(|spent| {
        let mut sum = spent.get();
        sum += usage;
        spent.set(sum);
    });
    Ok(status)
}

fn print(log: Option<&File>, line: &str) -> io::Result<()> {
    match log {
        Some(mut log) => writeln!(log, "{line}"),
        None => writeln!(io::stdout(), "{line}"),
    }
}

fn times_file() -> PathBuf {
    let name = format!("times-{}-{:?}", std::process::id(), thread::current().id());
    let folder = target_folder().canonicalize().unwrap_or_else(|_| std::env::temp_dir());
    folder.join(name)
}

/// Returns the number of units that a message of cargo is about, or `None` for other lines.
fn units(line: &str) -> Option<usize> {
    let is_message = line.starts_with(r#"{"reason":""#);
    let is_unit = line.starts_with(r#"{"reason":"compiler-artifact""#);
    is_message.then(|| usize::from(is_unit && line.contains(r#""fresh":false"#)))
}

/// Returns the sum of all times that a shell's `times` prints, such as `1m2.50s`.
fn seconds(text: &str) -> f64 {
    let time = |word: &str| {
        let (minutes, seconds) = word.strip_suffix('s')?.split_once('m')?;
        Some(60.0 * minutes.parse::<f64>().ok()? + seconds.parse::<f64>().ok()?)
    };
    text.split_whitespace().filter_map(time).sum()
}

#[cfg(test)]
mod tests {
    use super::{seconds, take, units};
    use crate::invocation::Invocation;

    #[test]
    fn only_what_was_compiled_counts() {
        let artifact = r#"{"reason":"compiler-artifact","package_id":"a","fresh":"#;
        assert_eq!(units(&format!("{artifact}false}}")), Some(1));
        assert_eq!(units(&format!("{artifact}true}}")), Some(0));
        assert_eq!(units(r#"{"reason":"build-finished","success":true}"#), Some(0));
        assert_eq!(units("test a::b ... ok"), None);
    }

    #[test]
    fn times_of_shells_are_added() {
        let (bash, dash) = ("0m0.500s 0m0.250s\n1m2.000s 0m3.000s\n", "0m1.00s 0m0.00s\n");
        assert!((seconds(bash) - 65.75).abs() < 1e-9 && (seconds(dash) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn the_time_of_a_command_is_taken_once() {
        take();
        let busy =
            ["-c".to_owned(), "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done".to_owned()];
        Invocation::shell().arguments(busy).run().unwrap();
        assert!(take().processor_seconds > 0.0);
        assert!(take().processor_seconds == 0.0);
    }
}
