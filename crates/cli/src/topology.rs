//! `brigade topology`: shows the machine and the cores that jobs can be pinned to.

use std::io::{self, Write};

use brigade::cores::Topology;
use miette::{IntoDiagnostic, Report};

pub(crate) fn show() -> Result<(), Report> {
    let topology = Topology::discover().into_diagnostic()?;
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{}", topology.to_string().trim_end()).into_diagnostic()?;
    for warning in topology.warnings() {
        writeln!(stdout, "note: {warning}").into_diagnostic()?;
    }
    writeln!(stdout, "jobs can be pinned to {}", topology.cpus()).into_diagnostic()
}
