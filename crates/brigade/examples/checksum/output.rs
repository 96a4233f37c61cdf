//! Writes lines to stdout, and failures and a progress bar to stderr.

use std::fmt::Write as _;
use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};

use crate::digest::Digested;
use crate::failure::Failure;
use crate::report::Report;

/// The output streams.
pub(crate) struct Output {
    stdout: BufWriter<StdoutLock<'static>>,
    /// `true` if stdout is a terminal, possibly the one that shows the bar.
    watched: bool,
    json: bool,
    bar: ProgressBar,
}

impl Output {
    pub(crate) fn new(json: bool) -> Self {
        let stdout = io::stdout().lock();
        let watched = stdout.is_terminal();
        Self { stdout: BufWriter::new(stdout), watched, json, bar: bar() }
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
            object["error"] = failure.to_json();
            self.line(object.to_string().as_bytes())?;
        }
        let message = format!("checksum: {}: {failure}", printable(path));
        self.bar.suspend(|| print_line(&message));
        Ok(())
    }

    pub(crate) fn progress(&self, report: &Report) {
        if !self.bar.is_hidden() {
            let (megabytes, failures) = (report.bytes / 1_000_000, report.failures());
            self.bar.set_position(report.files + failures);
            self.bar.set_message(format!("{megabytes} MB, {failures} failed"));
        }
    }

    pub(crate) fn finish(&mut self) -> io::Result<()> {
        self.bar.finish_and_clear();
        self.stdout.flush()
    }

    fn line(&mut self, line: &[u8]) -> io::Result<()> {
        let Self { stdout, watched, bar, .. } = self;
        let mut write = || {
            stdout.write_all(line)?;
            stdout.write_all(b"\n")?;
            // On a terminal, each line is shown at once, so that none is left to disturb the bar
            // later.
            if *watched { stdout.flush() } else { Ok(()) }
        };
        if *watched { bar.suspend(write) } else { write() }
    }
}

/// Writes a line to stderr. There is nowhere to report that stderr is closed.
pub(crate) fn print_line(message: &str) {
    let _ = writeln!(io::stderr(), "{message}");
}

/// Returns a bar that shows the work done. The total is unknown, because the walk is lazy.
fn bar() -> ProgressBar {
    // Events of the library also go to stderr, and would disturb the bar.
    if !io::stderr().is_terminal() || std::env::var_os("RUST_LOG").is_some() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{spinner} {human_pos} files, {msg}, {elapsed}")
        .unwrap_or_else(|_| ProgressStyle::default_spinner());
    let bar = ProgressBar::new_spinner().with_style(style).with_message("0 MB, 0 failed");
    // Keep it moving while a large file is read.
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}

/// Escapes a name like GNU sha256sum: a backslash or a line break is escaped, and the line then
/// begins with a backslash.
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

/// Returns the path for a one-line message. Bytes that are not text, and control characters, are
/// escaped.
fn printable(path: &Path) -> String {
    let mut text = String::new();
    for chunk in path.as_os_str().as_bytes().utf8_chunks() {
        for character in chunk.valid().chars() {
            if character.is_control() {
                text.extend(character.escape_default());
            } else {
                text.push(character);
            }
        }
        text.extend(chunk.invalid().escape_ascii().map(char::from));
    }
    text
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Returns a JSON object with the path. If the name is not UTF-8, it is also given in hexadecimal,
/// because JSON has no byte strings.
fn named(path: &Path) -> Value {
    match path.to_str() {
        Some(path) => json!({ "path": path }),
        None => json!({
            "path": path.to_string_lossy(),
            "path_bytes_hex": hex(path.as_os_str().as_bytes()),
        }),
    }
}
