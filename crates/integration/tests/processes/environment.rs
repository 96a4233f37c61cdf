//! The environment and the working folder in which workers start.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::process::Command;

use brigade::{PoolBuilder, PoolError, worker};
use brigade_integration::builder;
use brigade_testkit::outcome;
use tempfile::TempDir;

fn variable(name: String) -> Option<String> {
    env::var(name).ok()
}

#[track_caller]
fn variable_in(builder: PoolBuilder, name: &str) -> Option<String> {
    let pool = builder.build().unwrap();
    outcome(pool.submit(variable, name.to_owned()).unwrap()).unwrap()
}

#[test]
fn a_variable_is_set_when_the_process_starts() {
    /// Returns `true` if the kernel gave the variable to the process at its start, whatever the
    /// process changed since.
    fn at_the_start((): ()) -> bool {
        let text = fs::read("/proc/self/environ").unwrap();
        text.split(|byte| *byte == 0).any(|variable| variable == b"BRIGADE_TEST_START=here")
    }
    let pool = builder(1)
        .env("BRIGADE_TEST_START", "here")
        .initializer(|(): ()| variable("BRIGADE_TEST_START".to_owned()), ())
        .build()
        .unwrap();
    assert!(outcome(pool.submit(at_the_start, ()).unwrap()).unwrap());
    let initial = |(): ()| worker::state::<Option<String>>().cloned().flatten();
    let seen = outcome(pool.submit(initial, ()).unwrap()).unwrap();
    assert_eq!(seen.as_deref(), Some("here"), "the initializer finds it as well");
    assert_eq!(env::var_os("BRIGADE_TEST_START"), None, "and the host does not");
}

#[test]
fn each_pool_has_its_own_environment() {
    let pools: Vec<_> =
        ["a", "b"].map(|value| builder(1).env("BRIGADE_TEST_OWN", value).build().unwrap()).into();
    for (pool, value) in pools.iter().zip(["a", "b"]) {
        let name = "BRIGADE_TEST_OWN".to_owned();
        let found = outcome(pool.submit(variable, name).unwrap()).unwrap();
        assert_eq!(found.as_deref(), Some(value));
    }
    assert_eq!(variable_in(builder(1), "BRIGADE_TEST_OWN"), None);
}

#[test]
fn a_host_variable_can_be_removed_and_the_last_setting_wins() {
    assert!(env::var_os("PATH").is_some());
    assert!(variable_in(builder(1), "PATH").is_some());
    assert_eq!(variable_in(builder(1).env_remove("PATH"), "PATH"), None);
    let twice = builder(1).env_remove("PATH").env("PATH", "/nowhere");
    assert_eq!(variable_in(twice, "PATH").as_deref(), Some("/nowhere"));
    let twice = builder(1).env("BRIGADE_TEST_TWICE", "1").env_remove("BRIGADE_TEST_TWICE");
    assert_eq!(variable_in(twice, "BRIGADE_TEST_TWICE"), None);
}

#[test]
fn changes_made_by_a_task_end_with_its_worker() {
    fn leaves_a_mark((): ()) -> u32 {
        // A task may do this, because its process has no other thread.
        brigade_sys::environment::with_var("BRIGADE_TEST_MARK", "1", || std::process::exit(0))
            .unwrap()
    }
    let pool = builder(1).env("BRIGADE_TEST_MARK", "0").build().unwrap();
    outcome(pool.submit(leaves_a_mark, ()).unwrap()).unwrap_err();
    let name = "BRIGADE_TEST_MARK".to_owned();
    let found = outcome(pool.submit(variable, name).unwrap()).unwrap();
    assert_eq!(found.as_deref(), Some("0"), "a replacement starts as the first did");
}

#[test]
fn values_may_be_any_bytes_that_the_system_accepts() {
    let odd = OsString::from_vec(b"= \n\xff'\"$HOME".to_vec());
    let pool = builder(1).env("BRIGADE_TEST_ODD", &odd).env("BRIGADE_TEST_EMPTY", "").build();
    let look = |(): ()| {
        let values = ["BRIGADE_TEST_ODD", "BRIGADE_TEST_EMPTY"].map(env::var_os);
        values.map(|value| value.map(OsString::into_vec)).to_vec()
    };
    let found = outcome(pool.unwrap().submit(look, ()).unwrap());
    assert_eq!(found.unwrap(), [Some(odd.into_vec()), Some(Vec::new())]);
}

#[test]
fn workers_run_in_the_given_folder() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().canonicalize().unwrap();
    let here = |(): ()| env::current_dir().unwrap();
    let pool = builder(1).current_dir(&path).build().unwrap();
    assert_eq!(outcome(pool.submit(here, ()).unwrap()).unwrap(), path);
    let pool = builder(1).build().unwrap();
    let found: PathBuf = outcome(pool.submit(here, ()).unwrap()).unwrap();
    assert_eq!(found, env::current_dir().unwrap());
}

#[test]
fn pool_settings_override_those_of_the_command() {
    let mut command = Command::new(env::current_exe().unwrap());
    command.env("BRIGADE_TEST_ONE", "command").env("BRIGADE_TEST_TWO", "command").current_dir("/");
    let pool = builder(1)
        .worker_command(&command)
        .env("BRIGADE_TEST_TWO", "pool")
        .current_dir("/proc")
        .build()
        .unwrap();
    let look = |(): ()| {
        let values = ["ONE", "TWO"].map(|name| variable(format!("BRIGADE_TEST_{name}")));
        (values.to_vec(), env::current_dir().unwrap())
    };
    let (values, folder) = outcome(pool.submit(look, ()).unwrap()).unwrap();
    assert_eq!(values, [Some("command".to_owned()), Some("pool".to_owned())]);
    assert_eq!(folder, PathBuf::from("/proc"));
}

#[test]
fn impossible_settings_are_errors_that_name_them() {
    let mut command = Command::new("true");
    command.env("A=B", "x");
    for (name, builder) in [
        ("env", builder(1).env("A=B", "x")),
        ("env_remove", builder(1).env_remove("")),
        ("current_dir", builder(1).current_dir("/nowhere/to/be/found")),
        ("worker_command", builder(1).worker_command(&command)),
    ] {
        match builder.build() {
            Err(PoolError::Configuration { field, .. }) => assert_eq!(field, name),
            other => panic!("{name}: {other:?}"),
        }
    }
}
