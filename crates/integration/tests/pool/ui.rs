//! The errors of the compiler for functions that workers cannot run, which callers meet first.
//!
//! The compiler reads the library as this test was linked with it. `BRIGADE_BLESS=1` writes the
//! expected errors.
//!
//! The compiler words its labels by their length, and the type of a closure has the path of its
//! file. The file of the closure that moves has a long name, so that its error is the same in a
//! checkout with a short path and in one with a long path.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const PROGRAMS: &str = "crates/integration/tests/ui";

/// Returns the newest of the libraries that were compiled beside this test. Older ones are of other
/// features.
fn library(folder: &Path) -> PathBuf {
    let files = fs::read_dir(folder).unwrap().flatten().map(|file| file.path());
    let is_library = |path: &PathBuf| {
        let stem =
            path.file_stem().is_some_and(|it| it.as_encoded_bytes().starts_with(b"libbrigade-"));
        stem && path.extension().is_some_and(|it| it == "rlib")
    };
    let libraries = files.filter(is_library);
    libraries.max_by_key(|path| path.metadata().unwrap().modified().unwrap()).unwrap()
}

/// Returns an error without places in the library, which change with it, without margins, whose
/// width does, and without modules, which the compiler names only if it knows a name twice, as it
/// does with more features.
fn normalized(printed: &str) -> String {
    let mut text = String::new();
    for line in printed.lines() {
        let line = line.trim_start();
        let behind_number = line.trim_start_matches(|it: char| it.is_ascii_digit()).trim_start();
        let line = if behind_number.starts_with('|') { behind_number } else { line };
        let path = line.split_once(".rs:").map(|(path, _)| path);
        let in_library = path.filter(|it| it.starts_with("--> ") && !it.contains(PROGRAMS));
        match in_library {
            Some(path) => text.extend([path, ".rs\n"]),
            None => text.extend([line, "\n"]),
        }
    }
    // What follows counts the errors and explains how to read more.
    let text = text.split("error: aborting").next().unwrap().trim_end().to_owned() + "\n";
    text.replace("brigade_task::function::", "").replace("brigade::", "")
}

/// Returns the errors of a program.
fn errors(root: &Path, program: &Path, emitted: &str) -> String {
    let test = std::env::current_exe().unwrap();
    let (folder, output) = (test.parent().unwrap(), tempfile::tempdir().unwrap());
    let mut compiler = Command::new("rustc");
    compiler.args(["--edition", "2024", "--emit", emitted, "-L"]).arg(folder);
    compiler.arg("--extern").arg(format!("brigade={}", library(folder).display()));
    compiler.arg("--out-dir").arg(output.path()).current_dir(root).arg(program);
    let ended = compiler.output().unwrap();
    assert!(!ended.status.success(), "{} compiles", program.display());
    String::from_utf8(ended.stderr).unwrap()
}

#[test]
fn a_pointer_to_a_function_is_an_error_where_it_is_passed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("program.rs");
    for call in ["submit(function, 1)", "map(function, [1])", "stream(function)"] {
        let text = format!(
            "fn main() {{\n    let pool = brigade::Pool::builder().build().unwrap();\n    let \
             function: fn(u64) -> u64 = u64::swap_bytes;\n    let _ = pool.{call};\n}}\n"
        );
        fs::write(&program, text).unwrap();
        let printed = errors(&root, &program, "obj");
        assert!(printed.contains("not a pointer to a function"), "{printed}");
        assert!(printed.contains("program.rs:4:13"), "{printed}");
    }
}

#[test]
fn the_compiler_says_why_a_function_cannot_run_elsewhere() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut wrong = String::new();
    let mut count = 0;
    for file in fs::read_dir(root.join(PROGRAMS)).unwrap().flatten().map(|file| file.path()) {
        if file.extension().is_none_or(|it| it != "rs") {
            continue;
        }
        count += 1;
        let program = Path::new(PROGRAMS).join(file.file_name().unwrap());
        let printed = normalized(&errors(&root, &program, "metadata"));
        let expected = file.with_extension("stderr");
        if std::env::var_os("BRIGADE_BLESS").is_some() {
            fs::write(&expected, &printed).unwrap();
        }
        if fs::read_to_string(&expected).unwrap() != printed {
            wrong.extend([&file.display().to_string(), " has another error:\n", &printed]);
        }
    }
    assert_eq!(count, 6);
    assert!(wrong.is_empty(), "{wrong}");
}
