//! Lines on stdout, failures and a progress bar on stderr.

use std::fmt::Write as _;
use std::io::{self, BufWriter, Stdout, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use brigade::{Exit, TaskErrorKind};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};

use crate::Failure;
use crate::digest::Digested;
use crate::report::Report;

/// Where results go.
pub(crate) struct Output {
    stdout: BufWriter<Stdout>,
    json: bool,
    bar: ProgressBar,
}

impl Output {
    pub(crate) fn new(json: bool, terminal: bool) -> Self {
        let bar = if terminal {
            let style = "{spinner} {human_pos} files, {msg}, {elapsed}";
            let style = ProgressStyle::with_template(style)
                .unwrap_or_else(|_| ProgressStyle::default_bar());
            ProgressBar::new_spinner().with_style(style)
        } else {
            ProgressBar::hidden()
        };
        Self { stdout: BufWriter::new(io::stdout()), json, bar }
    }

    pub(crate) fn digested(&mut self, path: &Path, digested: &Digested) -> io::Result<()> {
        let hex = hex(&digested.sha256);
        if self.json {
            let mut object = named(path);
            object["sha256"] = hex.into();
            object["bytes"] = digested.bytes.into();
            return self.line(object.to_string().as_bytes());
        }
        let (escaped, name) = escape(path.as_os_str().as_bytes());
        let mark: &[u8] = if escaped { b"\\" } else { b"" };
        self.line(&[mark, hex.as_bytes(), b"  ", &name].concat())
    }

    pub(crate) fn failed(&mut self, path: &Path, failure: &Failure) -> io::Result<()> {
        if self.json {
            let mut object = named(path);
            object["error"] = error(failure);
            self.line(object.to_string().as_bytes())?;
        }
        let text = match failure {
            Failure::Read(failure) => failure.message.clone(),
            Failure::Task(error) => error.to_string(),
        };
        self.bar.suspend(|| writeln!(io::stderr(), "checksum: {}: {text}", path.display()))
    }

    pub(crate) fn progress(&self, report: &Report) {
        if !self.bar.is_hidden() {
            self.bar.set_position(report.files + report.failures());
            self.bar.set_message(format!(
                "{} MB, {} failed",
                report.bytes / 1_000_000,
                report.failures()
            ));
        }
    }

    pub(crate) fn finish(&mut self) -> io::Result<()> {
        self.bar.finish_and_clear();
        self.stdout.flush()
    }

    fn line(&mut self, line: &[u8]) -> io::Result<()> {
        let Self { stdout, bar, .. } = self;
        let mut write = || stdout.write_all(line).and_then(|()| stdout.write_all(b"\n"));
        // A bar and lines on the same terminal take turns.
        if bar.is_hidden() {
            return write();
        }
        bar.suspend(write)
    }
}

/// As GNU sha256sum: a name with a backslash or a line break is escaped and its line begins with a backslash.
fn escape(name: &[u8]) -> (bool, Vec<u8>) {
    let mut escaped = Vec::with_capacity(name.len());
    for byte in name {
        match byte {
            b'\\' => escaped.extend(b"\\\\"),
            b'\n' => escaped.extend(b"\\n"),
            b'\r' => escaped.extend(b"\\r"),
            byte => escaped.push(*byte),
        }
    }
    (escaped.len() != name.len(), escaped)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// JSON has no bytes: a name that is not UTF-8 is given in hexadecimal as well.
fn named(path: &Path) -> Value {
    match path.to_str() {
        Some(path) => json!({ "path": path }),
        None => {
            json!({ "path": path.to_string_lossy(), "path_bytes": hex(path.as_os_str().as_bytes()) })
        }
    }
}

fn error(failure: &Failure) -> Value {
    match failure {
        Failure::Read(failure) => json!({ "kind": failure.kind, "message": failure.message }),
        Failure::Task(error) => {
            let mut object = json!({ "kind": kind(failure), "message": error.to_string(), "attempt": error.attempt() });
            if let TaskErrorKind::WorkerDied { pid, exit, .. } = error.kind() {
                object["pid"] = pid.into();
                match exit {
                    Exit::Code(code) => object["exit_code"] = code.into(),
                    Exit::Signal(number) => object["signal"] = number.into(),
                }
            }
            object
        }
    }
}

/// What the summary counts a failure as.
pub(crate) fn kind(failure: &Failure) -> String {
    match failure {
        Failure::Read(failure) => failure.kind.clone(),
        Failure::Task(error) => match error.kind() {
            TaskErrorKind::WorkerDied { exit, .. } => format!("worker died: {exit}"),
            TaskErrorKind::Panicked { .. } => "panic".to_owned(),
            TaskErrorKind::Cancelled => "cancelled".to_owned(),
            TaskErrorKind::PoolBroken { .. } => "pool broken".to_owned(),
            _ => "other".to_owned(),
        },
    }
}
