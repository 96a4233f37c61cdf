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
    report: Option<(PathBuf, File)>,
    trace: Option<(PathBuf, File)>,
}

impl Files {
    /// Opens the files. Existing ones keep their content until the run is over.
    pub(crate) fn open(options: &Run) -> Result<Self, Report> {
        let open = |path: &Option<PathBuf>, what| {
            let Some(path) = path else { return Ok(None) };
            let file = OpenOptions::new().write(true).create(true).truncate(false).open(path);
            let cannot = || format!("cannot write the {what} {}", path.display());
            file.map(|file| Some((path.clone(), file))).into_diagnostic().wrap_err_with(cannot)
        };
        Ok(Self { report: open(&options.report, "report")?, trace: open(&options.trace, "trace")? })
    }

    /// Writes the files.
    pub(crate) fn write(&self, report: &mut runner::Report, about: &About) -> Result<(), Report> {
        if let Some((path, file)) = &self.report {
            write(file, |writer| report.page(writer, about))
                .into_diagnostic()
                .wrap_err_with(|| format!("cannot write the report {}", path.display()))?;
        }
        if let Some((path, file)) = &self.trace {
            write(file, |writer| report.trace(writer))
                .into_diagnostic()
                .wrap_err_with(|| format!("cannot write the trace {}", path.display()))?;
        }
        Ok(())
    }
}

fn write(
    file: &File,
    write: impl FnOnce(&mut BufWriter<&File>) -> io::Result<()>,
) -> io::Result<()> {
    if file.metadata()?.is_file() {
        file.set_len(0)?;
    }
    let mut writer = BufWriter::new(file);
    write(&mut writer)?;
    writer.flush()
}
