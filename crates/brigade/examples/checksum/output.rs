//! Lines on stdout, failures and a progress bar on stderr.

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

/// Where results go.
pub(crate) struct Output {
    stdout: BufWriter<StdoutLock<'static>>,
    /// Whether somebody watches the lines, perhaps on the terminal that shows the bar.
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
        self.bar.suspend(|| complain(&message));
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
            // Somebody who watches gets each line at once, and the bar finds none of it in its way afterwards.
            if *watched { stdout.flush() } else { Ok(()) }
        };
        if *watched { bar.suspend(write) } else { write() }
    }
}

/// A line on stderr. When it is closed there is nobody left to be told.
pub(crate) fn complain(message: &str) {
    let _ = writeln!(io::stderr(), "{message}");
}

/// There is no telling how long it takes, because the walk is lazy; so it shows what is done.
fn bar() -> ProgressBar {
    // Events of the library go to stderr as well, and know of no bar.
    if !io::stderr().is_terminal() || std::env::var_os("RUST_LOG").is_some() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{spinner} {human_pos} files, {msg}, {elapsed}")
        .unwrap_or_else(|_| ProgressStyle::default_spinner());
    let bar = ProgressBar::new_spinner().with_style(style).with_message("0 MB, 0 failed");
    // It moves while a large file is read, too.
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
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

/// The path for a message of one line: what is not text, or would steer the terminal, is escaped.
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

/// JSON has no bytes: a name that is not UTF-8 is given in hexadecimal as well.
fn named(path: &Path) -> Value {
    match path.to_str() {
        Some(path) => json!({ "path": path }),
        None => json!({
            "path": path.to_string_lossy(),
            "path_bytes_hex": hex(path.as_os_str().as_bytes()),
        }),
    }
}
