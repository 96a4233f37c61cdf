//! Writes the report page and the trace of a finished run.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use brigade::runner::{self, About, Job};
use miette::{IntoDiagnostic, Report, WrapErr};

use crate::arguments::Run;
use crate::screen::Statistics;

/// Describes the run of this process.
pub(crate) fn this_run(statistics: &Statistics, status: u8) -> About {
    let mut words = std::env::args_os();
    let command = Job::new(words.next().unwrap_or_default()).args(words);
    About {
        command: format!("{command:.1000}"),
        status: Some(status),
        total: statistics.total(),
        skipped: statistics.supply.skipped,
    }
}

/// The files that the options ask for. They are opened before the run: a mistake in a path must not
/// cost the report of a long run.
#[derive(Debug)]
pub(crate) struct Files {
    report: Option<Destination>,
    trace: Option<Destination>,
}

/// A file, and what and where it is, for people.
type Destination = (File, String);

impl Files {
    /// Opens the files. Existing ones keep their content until the run is over.
    pub(crate) fn open(options: &Run) -> Result<Self, Report> {
        let open = |path: &Option<PathBuf>, what| -> Result<_, Report> {
            let Some(path) = path else { return Ok(None) };
            let name = format!("{what} {}", path.display());
            let file = OpenOptions::new().write(true).create(true).truncate(false).open(path);
            let file = file.into_diagnostic().wrap_err_with(|| cannot_write(&name))?;
            Ok(Some((file, name)))
        };
        Ok(Self { report: open(&options.report, "report")?, trace: open(&options.trace, "trace")? })
    }

    /// Writes the files.
    pub(crate) fn write(&self, report: &mut runner::Report, about: &About) -> Result<(), Report> {
        write(self.report.as_ref(), |writer| report.page(writer, about))?;
        write(self.trace.as_ref(), |writer| report.trace(writer))
    }
}

fn write(
    destination: Option<&Destination>,
    write: impl FnOnce(&mut BufWriter<&File>) -> io::Result<()>,
) -> Result<(), Report> {
    let Some((file, name)) = destination else { return Ok(()) };
    let write = || {
        if file.metadata()?.is_file() {
            file.set_len(0)?;
        }
        let mut writer = BufWriter::new(file);
        write(&mut writer)?;
        writer.flush()
    };
    write().into_diagnostic().wrap_err_with(|| cannot_write(name))
}

fn cannot_write(name: &str) -> String {
    format!("cannot write the {name}")
}
