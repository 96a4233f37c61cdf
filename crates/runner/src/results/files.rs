//! The files for the results of one job.

use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::outcome::Outcome;
use crate::output::Output;

/// The files for the results of one job: its outputs and its number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultFiles {
    stdout: PathBuf,
    stderr: PathBuf,
    number: PathBuf,
}

impl ResultFiles {
    /// Returns the files `stdout`, `stderr` and `seq` in a directory.
    pub fn in_folder(folder: &Path) -> Self {
        let [stdout, stderr, number] = ["stdout", "stderr", "seq"].map(|name| folder.join(name));
        Self { stdout, stderr, number }
    }

    /// Returns the file with this name for standard output, and those with `.err` and `.seq` after
    /// it. A name that ends in a slash is a directory, as in [`in_folder`](Self::in_folder).
    pub fn named(name: &Path) -> Self {
        if name.as_os_str().as_bytes().ends_with(b"/") {
            return Self::in_folder(name);
        }
        let with = |end: &str| {
            let mut name = name.as_os_str().to_owned();
            name.push(end);
            PathBuf::from(name)
        };
        Self { stdout: name.to_owned(), stderr: with(".err"), number: with(".seq") }
    }

    /// Returns the path of the file for standard output.
    pub fn stdout(&self) -> &Path {
        &self.stdout
    }

    /// Returns the paths of all files.
    pub fn paths(&self) -> [&Path; 3] {
        [&self.stdout, &self.stderr, &self.number]
    }

    /// Creates the directories and the file with the job's number. Returns the destination of its
    /// output.
    ///
    /// # Errors
    /// Returns an error if a directory or the file cannot be created.
    pub fn prepare(&self, number: u64) -> io::Result<Output> {
        self.number.parent().map_or(Ok(()), fs::create_dir_all)?;
        fs::write(&self.number, number.to_string())?;
        Ok(Output::Files { stdout: self.stdout.clone(), stderr: self.stderr.clone() })
    }

    /// Writes the results of a job that did not write to the files itself.
    ///
    /// # Errors
    /// Returns an error if a file or its directory cannot be written.
    pub fn write(&self, outcome: &Outcome) -> io::Result<()> {
        self.prepare(outcome.number)?;
        outcome.stdout.copy_to(&mut File::create(&self.stdout)?)?;
        outcome.stderr.copy_to(&mut File::create(&self.stderr)?)?;
        Ok(())
    }
}
