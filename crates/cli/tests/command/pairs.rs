//! Compares `brigade parallel` with an installed GNU parallel, pair by pair.
//!
//! The table is `pairs/pairs.txt`. Each script runs in two folders with the same files and the same
//! environment, once with GNU parallel and once with links to `brigade` in front on the search
//! path. Without GNU parallel, only the table itself is checked.

use std::fmt::Write;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{fs, thread};

use tempfile::TempDir;

use crate::common::numbered;

const TABLE: &str = include_str!("pairs/pairs.txt");
/// The version that the table was written for.
const VERSION: &str = "GNU parallel 20221122";
const SYSTEM_PATH: &str = "/usr/local/bin:/usr/bin:/bin";
/// Number of pairs that run at the same time; most of a pair is the start of Perl.
const AT_ONCE: usize = 2;
/// A script that takes longer hangs.
const PATIENCE_SECONDS: &str = "30";

/// Number of pairs that are the same, and of all pairs.
const SAME: usize = 301;
const ALL: usize = 324;

/// One line of the table.
#[derive(Debug, Clone, Copy)]
struct Pair {
    section: &'static str,
    name: &'static str,
    script: &'static str,
    /// The reason, if the two differ.
    difference: Option<&'static str>,
}

fn pairs() -> Vec<Pair> {
    let mut section = "";
    let mut pairs = Vec::new();
    for line in TABLE.lines() {
        if let Some(title) = line.strip_prefix("## ") {
            section = title;
        }
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (difference, line) = match line.strip_prefix("differs (") {
            Some(rest) => {
                let (reason, line) = rest.split_once(") ").expect("differs (REASON) NAME");
                (Some(reason), line)
            }
            None => (None, line),
        };
        let (name, script) = line.split_once(": ").expect("NAME: SCRIPT");
        pairs.push(Pair { section, name, script, difference });
    }
    pairs
}

/// Everything that a script did.
#[derive(Debug, PartialEq)]
struct Effects {
    status: Option<i32>,
    stdout: String,
    files: Vec<(PathBuf, String)>,
}

/// Runs a script in a folder of its own, with `programs` in front on the search path.
fn run(pair: Pair, programs: Option<&Path>) -> Effects {
    let dir = TempDir::new().expect("a folder");
    let (work, home) = (dir.path().join("work"), dir.path().join("home"));
    prepare(&work);
    fs::create_dir(&home).expect("disk");
    let path = match programs {
        Some(programs) => format!("{}:{SYSTEM_PATH}", programs.display()),
        None => SYSTEM_PATH.to_owned(),
    };
    let output = Command::new("timeout")
        .args([PATIENCE_SECONDS, "bash", "-c", pair.script])
        .env_clear()
        .env("PATH", path)
        .env("HOME", &home)
        .env("SHELL", "/bin/bash")
        .env("LC_ALL", "C.UTF-8")
        // Runs of other tests must not wait for the cores of this one.
        .env("XDG_RUNTIME_DIR", &home)
        .current_dir(&work)
        .stdin(Stdio::null())
        .output()
        .expect("timeout");
    let stdout = String::from_utf8_lossy(&output.stdout);
    let is_ordered = ["-k", "-j1", "--keep"].iter().any(|option| pair.script.contains(option));
    let stdout = if is_ordered { stdout.into_owned() } else { sorted(&stdout) };
    let mut files = Vec::new();
    collect(&work, &work, &mut files);
    files.sort();
    Effects { status: output.status.code(), stdout, files }
}

/// Writes the files that scripts use.
fn prepare(work: &Path) {
    fs::create_dir_all(work.join("sub")).expect("disk");
    let write = |name: &str, text: &str| fs::write(work.join(name), text).expect("disk");
    write("abc.txt", "a\nb\nc\n");
    write("num.txt", "1\n2\n3\n");
    write("two.tsv", "a\t1\nb c\t2\n");
    write("head.csv", "name,size\nx,1\n\"y z\",2\n");
    write("jobs.txt", "echo a\necho b | tr b c\nexit 3\n");
    write("text.txt", &numbered(50, |number| format!("line {number}\n")));
}

fn sorted(text: &str) -> String {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines.join("\n")
}

fn collect(root: &Path, folder: &Path, files: &mut Vec<(PathBuf, String)>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("a file").path();
        let name = path.strip_prefix(root).expect("below").to_owned();
        if path.is_dir() {
            files.push((name, "folder".to_owned()));
            collect(root, &path, files);
        } else {
            let text = fs::read(&path).expect("a file");
            files.push((name, without_times(&String::from_utf8_lossy(&text))));
        }
    }
}

/// Removes from a log or a table of results what differs from run to run, and our own columns.
fn without_times(text: &str) -> String {
    if text.starts_with("{ \"Seq\"") {
        let is_time = |field: &&str| field.contains("\"Starttime\"") || field.contains("Runtime\"");
        let line = |line: &str| {
            let fields: Vec<&str> = line.split(", ").filter(|field| !is_time(field)).collect();
            fields.join(", ")
        };
        return sorted(&text.lines().map(line).collect::<Vec<_>>().join("\n"));
    }
    let separator = match text {
        text if text.starts_with("Seq\tHost\t") => '\t',
        text if text.starts_with("Seq,Host,") => ',',
        text => return text.to_owned(),
    };
    let lines = text.lines().map(|line| {
        let line = line.split("\t# cores=").next().unwrap_or(line);
        let columns = line.split(separator).enumerate();
        let columns: Vec<&str> = columns
            .filter(|(index, _)| ![2, 3].contains(index))
            .map(|(_, column)| column)
            .collect();
        columns.join("\t")
    });
    sorted(&lines.collect::<Vec<_>>().join("\n"))
}

/// A folder with links to `brigade` under the names of GNU parallel's programs.
fn links() -> TempDir {
    let folder = TempDir::new().expect("a folder");
    for name in ["parallel", "sem"] {
        symlink(env!("CARGO_BIN_EXE_brigade"), folder.path().join(name)).expect("a link");
    }
    folder
}

/// Returns a complaint if the mark of a pair is not true.
fn check(pair: Pair, links: &Path) -> Option<String> {
    let (theirs, ours) = (run(pair, None), run(pair, Some(links)));
    let Pair { name, script, .. } = pair;
    match (pair.difference, theirs == ours) {
        (None, true) | (Some(_), false) => None,
        (None, false) => {
            let mut text = format!("{name}: {script}\n");
            let both = [(theirs.status, ours.status)];
            let _ = writeln!(text, "  status (GNU, ours): {both:?}");
            if theirs.stdout != ours.stdout {
                let _ = writeln!(
                    text,
                    "  GNU:  {:.600?}\n  ours: {:.600?}",
                    theirs.stdout, ours.stdout
                );
            }
            for (side, files, others) in
                [("GNU", &theirs.files, &ours.files), ("ours", &ours.files, &theirs.files)]
            {
                for file in files.iter().filter(|file| !others.contains(file)) {
                    let _ = writeln!(text, "  file of {side}: {file:.600?}");
                }
            }
            Some(text)
        }
        (Some(reason), true) => {
            Some(format!("{name}: is the same now; remove `differs ({reason})`\n"))
        }
    }
}

/// Returns `true` if the version of GNU parallel is installed that the table was written for.
fn is_installed() -> bool {
    let version = Command::new("parallel").arg("--version").env("PATH", SYSTEM_PATH).output();
    version.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).starts_with(VERSION))
}

#[expect(clippy::print_stderr, reason = "says that nothing was compared")]
fn compare(section: &str) {
    if !is_installed() {
        eprintln!("left out: {VERSION} is not installed");
        return;
    }
    let links = links();
    let pairs: Vec<Pair> = pairs().into_iter().filter(|pair| pair.section == section).collect();
    assert!(!pairs.is_empty(), "the table has no section `{section}`");
    let (next, complaints) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(pair) = pairs.get(next.fetch_add(1, Ordering::SeqCst)) {
                    if let Some(complaint) = check(*pair, links.path()) {
                        complaints.lock().expect("no panic").push(complaint);
                    }
                }
            });
        }
    });
    let complaints = complaints.into_inner().expect("no panic");
    assert!(complaints.is_empty(), "{} pairs\n{}", complaints.len(), complaints.concat());
}

#[test]
fn the_table_of_pairs_is_counted() {
    let pairs = pairs();
    let same = pairs.iter().filter(|pair| pair.difference.is_none()).count();
    assert_eq!((same, pairs.len()), (SAME, ALL));
}

macro_rules! sections {
    ($($name:ident: $title:literal,)*) => {$(
        #[test]
        fn $name() {
            compare($title);
        }
    )*

    #[test]
    fn every_section_of_pairs_has_a_test() {
        assert!(pairs().iter().all(|pair| [$($title),*].contains(&pair.section)));
    }};
}

sections! {
    arguments_on_the_command_line: "Arguments on the command line",
    linked_lists_and_separators: "Linked lists and separators",
    arguments_from_files_and_standard_input: "Arguments from files and standard input",
    argument_files_delimiters_and_columns: "Argument files, delimiters and columns",
    commands_as_arguments: "Commands as arguments",
    replacement_strings: "Replacement strings",
    replacement_strings_repeated_and_with_plus: "Replacement strings, repeated and with --plus",
    replacement_strings_own_ones: "Replacement strings, own ones",
    the_shell: "The shell",
    the_shell_and_its_surroundings: "The shell and its surroundings",
    numbers_of_jobs: "Numbers of jobs",
    output: "Output",
    tags_and_line_buffers: "Tags and line buffers",
    commands_groups_and_progress: "Commands, groups and progress",
    exit_status_and_failures: "Exit status and failures",
    retries_and_timeouts: "Retries and timeouts",
    halting: "Halting",
    halting_by_shares_and_short_forms: "Halting by shares and short forms",
    log_and_resume: "Log and resume",
    resuming: "Resuming",
    results: "Results",
    several_arguments_of_a_job: "Several arguments of a job",
    standard_input_in_blocks: "Standard input in blocks",
    blocks_with_headers_files_and_fifos: "Blocks with headers, files and fifos",
    defaults_and_traces: "Defaults and traces",
    spelling_of_options: "Spelling of options",
    semaphores_and_other_machines: "Semaphores and other machines",
}
