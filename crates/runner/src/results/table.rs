//! A table of results, as GNU parallel's `--results FILE.csv` writes it.

use std::ffi::OsString;
use std::io::{self, BufWriter, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::text::{write_field, write_string};
use crate::joblog::{self, LogColumns};
use crate::outcome::Outcome;

/// The format of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TableFormat {
    /// Fields separated by commas.
    Csv,
    /// Fields separated by tabs, quoted as in CSV.
    Tsv,
    /// A JSON object on each line.
    JsonLines,
}

/// A table with a row for each job: the columns of a [`Joblog`](crate::Joblog), the arguments and
/// the outputs.
///
/// The first row decides how many columns there are for arguments. A later job with fewer arguments
/// leaves the rest empty; of one with more, the last column has all that remain, separated by
/// spaces. In JSON the arguments are a list.
pub struct ResultTable {
    writer: BufWriter<Box<dyn Write + Send>>,
    format: TableFormat,
    names: Vec<OsString>,
    /// Number of columns for arguments; `None` before the first row.
    width: Option<usize>,
}

/// The columns before the arguments.
const COLUMNS: [&str; 9] =
    ["Seq", "Host", "Starttime", "JobRuntime", "Send", "Receive", "Exitval", "Signal", "Command"];

impl ResultTable {
    /// Creates a table, or removes the rows of an existing one. No other run can write to it
    /// meanwhile.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written, or another run writes to it.
    pub fn create(path: impl AsRef<Path>, format: TableFormat) -> io::Result<Self> {
        let file = joblog::create_alone(path.as_ref())?;
        Ok(Self::new(Box::new(file), format))
    }

    /// Returns a table that is written to `writer`.
    pub fn new(writer: Box<dyn Write + Send>, format: TableFormat) -> Self {
        Self { writer: BufWriter::new(writer), format, names: Vec::new(), width: None }
    }

    /// Sets the names of the arguments' columns, from the first, instead of `V1`, `V2` and so on.
    #[must_use]
    pub fn names(mut self, names: Vec<OsString>) -> Self {
        self.names = names;
        self
    }

    /// Appends the row of a job that is over. A job that never started has none.
    ///
    /// # Errors
    /// Returns an error if the table cannot be written or an output cannot be read.
    pub fn write(&mut self, outcome: &Outcome, arguments: &[OsString]) -> io::Result<()> {
        if outcome.attempts == 0 {
            return Ok(());
        }
        match self.format {
            TableFormat::Csv => self.write_row(b',', outcome, arguments)?,
            TableFormat::Tsv => self.write_row(b'\t', outcome, arguments)?,
            TableFormat::JsonLines => self.write_object(outcome, arguments)?,
        }
        self.writer.flush()
    }

    fn write_row(
        &mut self,
        separator: u8,
        outcome: &Outcome,
        arguments: &[OsString],
    ) -> io::Result<()> {
        let width = match self.width {
            Some(width) => width,
            None => self.write_header(separator, arguments.len())?,
        };
        let LogColumns { started, wall, received, exit, signal } = LogColumns::of(outcome);
        let writer = &mut self.writer;
        for field in [
            outcome.number.to_string(),
            outcome.host_column(),
            format!("{started:.3}"),
            format!("{wall:.3}"),
            "0".to_owned(),
            received.to_string(),
            exit.to_string(),
            signal.to_string(),
        ] {
            writer.write_all(field.as_bytes())?;
            writer.write_all(&[separator])?;
        }
        let line = outcome.command().to_line();
        write_field(writer, separator, |field| field.write_all(line.as_bytes()))?;
        for column in 1..=width {
            writer.write_all(&[separator])?;
            let rest = arguments.get(column - 1..).unwrap_or_default();
            let count = if column == width { rest.len() } else { rest.len().min(1) };
            let argument = rest[..count].join(" ".as_ref());
            write_field(writer, separator, |field| field.write_all(argument.as_bytes()))?;
        }
        for output in [&outcome.stdout, &outcome.stderr] {
            writer.write_all(&[separator])?;
            write_field(writer, separator, |mut field| output.copy_to(&mut field).map(drop))?;
        }
        writer.write_all(b"\n")
    }

    /// Writes the names of the columns. Returns the number of columns for arguments.
    fn write_header(&mut self, separator: u8, width: usize) -> io::Result<usize> {
        self.width = Some(width);
        for name in COLUMNS {
            self.writer.write_all(name.as_bytes())?;
            self.writer.write_all(&[separator])?;
        }
        for index in 0..width {
            match self.names.get(index) {
                Some(name) => {
                    let fill = |field: &mut dyn Write| field.write_all(name.as_bytes());
                    write_field(&mut self.writer, separator, fill)?;
                }
                None => write!(self.writer, "V{}", index + 1)?,
            }
            self.writer.write_all(&[separator])?;
        }
        writeln!(self.writer, "Stdout{}Stderr", char::from(separator))?;
        Ok(width)
    }

    fn write_object(&mut self, outcome: &Outcome, arguments: &[OsString]) -> io::Result<()> {
        let LogColumns { started, wall, received, exit, signal } = LogColumns::of(outcome);
        let (number, host, writer) = (outcome.number, outcome.host_column(), &mut self.writer);
        write!(
            writer,
            "{{ \"Seq\": {number}, \"Host\": \"{host}\", \"Starttime\": {started:.3}, \"JobRuntime\": {wall:.3}, \
             \"Send\": 0, \"Receive\": {received}, \"Exitval\": {exit}, \"Signal\": {signal}, \"Command\": "
        )?;
        let line = outcome.command().to_line();
        write_string(writer, |text| text.write_all(line.as_bytes()))?;
        writer.write_all(b", \"V\": [ ")?;
        for (index, argument) in arguments.iter().enumerate() {
            if index > 0 {
                writer.write_all(b",")?;
            }
            write_string(writer, |text| text.write_all(argument.as_bytes()))?;
        }
        writer.write_all(b" ], \"Stdout\": ")?;
        write_string(writer, |mut text| outcome.stdout.copy_to(&mut text).map(drop))?;
        writer.write_all(b", \"Stderr\": ")?;
        write_string(writer, |mut text| outcome.stderr.copy_to(&mut text).map(drop))?;
        writer.write_all(b" }\n")
    }
}

brigade_sys::debug_fields! {
    impl ResultTable { format, names, width }
}
