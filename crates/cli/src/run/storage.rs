//! The place of outputs that are stored: `--results` and `--files`.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

use brigade::runner::{Captured, Duplicates, ResultFiles, ResultTable, Results, TableFormat};
use miette::{IntoDiagnostic, Report, WrapErr, miette};

use super::lists::hash_of;
use crate::arguments::Run;
use crate::input::text_of_start;
use crate::patient::Patient;
use crate::template::{Grammar, Template};

/// The place of outputs that are stored.
pub(super) enum Storage {
    /// They are only printed.
    Nowhere,
    /// Each job has files of its own.
    Files(FileNames),
    /// Each job has a row in a table.
    Table { path: PathBuf, format: TableFormat, names: Vec<OsString> },
}

/// Names the files of each job.
pub(super) struct FileNames {
    scheme: Scheme,
    /// The files that have a job already, unless later jobs may replace them.
    taken: Option<Duplicates<u64>>,
}

enum Scheme {
    InFolder(Results),
    Named(Template),
}

/// The endings of tables.
const TABLES: [(&str, TableFormat); 4] = [
    (".csv", TableFormat::Csv),
    (".tsv", TableFormat::Tsv),
    (".json", TableFormat::JsonLines),
    (".jsonl", TableFormat::JsonLines),
];
/// The name of a table, without its ending, that is printed.
const PRINTED: &str = "-";

impl Storage {
    /// Returns the place that the options name.
    pub(super) fn of(options: &Run, grammar: &Grammar) -> Result<Self, Report> {
        let Some(path) = &options.results else { return Ok(Self::Nowhere) };
        let names = grammar.names.clone();
        let is_gnu = options.is_gnu();
        let template = text_of_start("--results", path.as_os_str(), grammar)?;
        if let Some((stem, format)) = table_of(path, is_gnu)
            && (is_gnu || template.is_constant())
        {
            if options.resume || options.resume_failed || options.retry_failed {
                return Err(miette!(
                    help = "store outputs in a directory, as with --results DIR",
                    "a table of results cannot be continued: it would lose the rows of earlier runs"
                ));
            }
            if options.printed.files {
                return Err(miette!("--files needs files, and --results names a table"));
            }
            if stem == PRINTED && (options.json || options.line_buffer) {
                return Err(miette!(
                    "a table on standard output excludes --json and --line-buffer"
                ));
            }
            return Ok(Self::Table { path: path.clone(), format, names });
        }
        let is_constant = template.is_constant();
        let scheme = match template {
            _ if is_constant => Scheme::InFolder(Results::new(path).names(names)),
            template => Scheme::Named(template),
        };
        // Jobs of GNU parallel with the same arguments replace each other's files.
        let taken = (!is_gnu || !is_constant).then(Duplicates::default);
        Ok(Self::Files(FileNames { scheme, taken }))
    }

    /// Creates the directory of results or the table, and checks that it can be written.
    pub(super) fn open(
        self,
        options: &Run,
    ) -> Result<(Option<FileNames>, Option<ResultTable>), Report> {
        let path = options.results.as_deref().unwrap_or(Path::new(""));
        match self {
            Self::Nowhere => Ok((None, None)),
            Self::Files(names) => {
                if matches!(names.scheme, Scheme::InFolder(_)) {
                    let about =
                        || format!("cannot write to the results directory {}", path.display());
                    fs::create_dir_all(path).into_diagnostic().wrap_err_with(about)?;
                    tempfile::tempfile_in(path).into_diagnostic().wrap_err_with(about)?;
                }
                Ok((Some(names), None))
            }
            Self::Table { path, format, names } => {
                let table = if is_printed(&path) {
                    ResultTable::new(Box::new(Patient(io::stdout())), format)
                } else {
                    let created = ResultTable::create(&path, format).into_diagnostic();
                    created
                        .wrap_err_with(|| format!("cannot write the table {}", path.display()))?
                };
                Ok((None, Some(table.names(names))))
            }
        }
    }
}

impl FileNames {
    /// Returns the files of a job. Fails if another job of this run has one of them.
    pub(super) fn next(
        &mut self,
        number: u64,
        arguments: &[OsString],
    ) -> Result<ResultFiles, String> {
        let files = match &self.scheme {
            Scheme::InFolder(results) => results.files(arguments),
            Scheme::Named(template) => {
                let name = template.line(number, arguments).map_err(|error| error.to_string())?;
                if name.is_empty() {
                    return Err(format!("the name of job {number}'s results is empty"));
                }
                ResultFiles::named(Path::new(&OsString::from_vec(name)))
            }
        };
        let Some(taken) = &mut self.taken else { return Ok(files) };
        for path in files.paths() {
            let key = std::path::absolute(path).map_err(|error| error.to_string())?;
            if let Some(first) = taken.add(hash_of(&plain(&key)), number) {
                let path = path.display();
                return Err(format!(
                    "jobs {first} and {number} would both write to {path}; add {{#}} to the name of --results"
                ));
            }
        }
        Ok(files)
    }
}

/// Returns `true` if nothing but a table is printed.
pub(super) fn hides_outputs(options: &Run) -> bool {
    let path = options.results.as_ref();
    // GNU parallel does not print what it stores.
    path.is_some_and(|path| options.is_gnu() || is_printed(path))
}

/// Sets the directory for temporary files, and checks that the one in use can be written.
pub(super) fn set_temporary_folder(options: &Run) -> Result<(), Report> {
    let tmpdir = options.printed.tmpdir.as_deref();
    if let Some(folder) = tmpdir {
        // Nothing has asked for the directory yet.
        let _ = tempfile::env::override_temp_dir(folder);
    }
    if tmpdir.is_none() && !options.printed.files {
        return Ok(());
    }
    let folder = tempfile::env::temp_dir();
    let cannot = || format!("cannot write to the temporary directory {}", folder.display());
    tempfile::tempfile_in(&folder).map(drop).into_diagnostic().wrap_err_with(cannot)
}

/// Writes an output to a new temporary file, and returns its path.
pub(super) fn store(output: &Captured) -> io::Result<PathBuf> {
    let mut file = tempfile::Builder::new().prefix("brigade-").suffix(".out").tempfile()?;
    output.copy_to(&mut file)?;
    Ok(file.into_temp_path().keep()?)
}

/// Returns the name without its ending and the format, if the path is that of a table.
fn table_of(path: &Path, is_gnu: bool) -> Option<(&str, TableFormat)> {
    let name = path.as_os_str().as_bytes();
    TABLES.iter().find_map(|(end, format)| {
        let (stem, last) = name.split_at_checked(name.len().checked_sub(end.len())?)?;
        let is_one = last.eq_ignore_ascii_case(end.as_bytes()) && !(is_gnu && *end == ".jsonl");
        is_one.then(|| (std::str::from_utf8(stem).unwrap_or_default(), *format))
    })
}

fn is_printed(path: &Path) -> bool {
    table_of(path, false).is_some_and(|(stem, _)| stem == PRINTED)
}

/// Resolves `.` and `..` in an absolute path, without regard to links.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            component => plain.push(component),
        }
    }
    plain
}
