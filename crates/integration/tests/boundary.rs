//! The boundary around a worker in a sandbox: what its host reads of it.

use std::ffi::CString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc;
use std::thread;

use brigade::{Pool, Sandbox};
use brigade_integration::builder;
use brigade_sys::misdeeds;
use brigade_testkit::{BOUND, outcome};

brigade::init_for_tests!();

/// Compiles a library whose debug information is in another file, which it names, and returns the
/// path of both.
fn split_library(folder: &Path) -> (PathBuf, PathBuf) {
    let source = "unsigned long decode(unsigned long p) { return *(volatile char *)p + 1; }\n";
    fs::write(folder.join("evil.c"), source).unwrap();
    let compile = |arguments: &[&str]| {
        let status = Command::new("cc").current_dir(folder).args(arguments).status();
        assert!(status.unwrap().success());
    };
    compile(&["-c", "-g", "-gsplit-dwarf", "-fPIC", "-o", "evil.o", "evil.c"]);
    compile(&["-shared", "-o", "libevil.so", "evil.o"]);
    (folder.join("libevil.so"), folder.join("evil.dwo"))
}

fn calls(library: PathBuf) -> u64 {
    let library = CString::new(library.into_os_string().into_encoded_bytes()).unwrap();
    misdeeds::call_library(&library, c"decode", 8).unwrap()
}

/// Crashes a worker in the library, and returns what its host says about it. Fails if the host does
/// not come back, after a writer has released it from a pipe.
fn report(pool: &Pool, library: &Path, pipe: &Path) -> String {
    let error = outcome(pool.submit(calls, library.to_owned()).unwrap()).unwrap_err();
    let (send, receive) = mpsc::channel();
    thread::spawn(move || send.send(format!("{error:#}")));
    receive.recv_timeout(BOUND).unwrap_or_else(|_| {
        drop(fs::File::options().write(true).open(pipe));
        panic!("the host waits for a pipe that a worker has named");
    })
}

#[test]
fn a_file_that_a_module_names_is_not_opened() {
    let folder = tempfile::tempdir().unwrap();
    let (library, other) = split_library(folder.path());
    fs::remove_file(&other).unwrap();
    assert!(Command::new("mkfifo").arg(&other).status().unwrap().success());
    for sandbox in [Some(Sandbox::strict().write(folder.path())), None] {
        let pool = match sandbox.clone() {
            Some(sandbox) => builder(1).sandbox(sandbox),
            None => builder(1),
        };
        let text = report(&pool.build().unwrap(), &library, &other);
        assert!(text.contains("libevil.so + 0x"), "{text}");
        assert_eq!(text.contains("decode"), sandbox.is_none(), "{text}");
    }
}

#[test]
fn a_module_that_a_sandbox_could_have_written_is_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let (library, _) = split_library(folder.path());
    let pool = builder(1).sandbox(Sandbox::strict().write(folder.path())).build().unwrap();
    let text = report(&pool, &library, Path::new("/"));
    assert!(text.contains("libevil.so + 0x") && !text.contains("evil.c"), "{text}");
    // The program itself is named as ever.
    let error = outcome(pool.submit(brigade_testkit::faults::aborts, ()).unwrap()).unwrap_err();
    assert!(format!("{error:#}").contains("endings::aborts"), "{error:#}");
}
