//! Writes the report page and the trace of a finished run.

mod page;
mod trace;

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use miette::{IntoDiagnostic, Report, WrapErr};

use crate::arguments::Run;
use crate::record::Records;
use crate::screen::Statistics;

/// Writes the files that the options ask for.
pub(crate) fn write(
    options: &Run,
    records: &mut Records,
    statistics: &Statistics,
) -> Result<(), Report> {
    if let Some(path) = &options.report {
        write_file(path, |writer| page::write(writer, records, statistics))
            .into_diagnostic()
            .wrap_err_with(|| format!("cannot write the report {}", path.display()))?;
    }
    if let Some(path) = &options.trace {
        write_file(path, |writer| trace::write(writer, records))
            .into_diagnostic()
            .wrap_err_with(|| format!("cannot write the trace {}", path.display()))?;
    }
    Ok(())
}

fn write_file(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> io::Result<()> {
    let mut writer = BufWriter::new(File::create(path)?);
    write(&mut writer)?;
    writer.flush()
}
