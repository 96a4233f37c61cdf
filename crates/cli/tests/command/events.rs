//! Tests of `--json` against the schema in crates/cli/docs/events.schema.json.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use serde_json::{Map, Value};

use crate::common::{TestDir, is_stopped, pids, signal, until};

const SCHEMA: &str = include_str!("../../docs/events.schema.json");

/// Checks an event, and returns its name. Unlike the schema, this refuses unknown fields: they
/// must be documented.
fn check(event: &Map<String, Value>, schema: &Value) -> String {
    let name = event["event"].as_str().expect("a name");
    let definition = &schema["$defs"][name];
    let properties = definition["properties"].as_object().expect("the event is documented");
    assert_eq!(properties["event"]["const"], name);
    for field in definition["required"].as_array().expect("a list") {
        assert!(event.contains_key(field.as_str().expect("a name")), "{name} lacks {field}");
    }
    for (field, value) in event.iter().filter(|(field, _)| *field != "event") {
        let property = properties.get(field).expect("the field is documented");
        check_value(&format!("{name}.{field}"), value, property);
    }
    name.to_owned()
}

fn check_value(what: &str, value: &Value, property: &Value) {
    let allowed = match &property["type"] {
        Value::Array(types) => types.clone(),
        one => vec![one.clone()],
    };
    let is = |name: &str| match name {
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "null" => value.is_null(),
        other => panic!("`{other}` is not checked here"),
    };
    assert!(allowed.iter().any(|name| is(name.as_str().expect("a name"))), "{what}: {value}");
    if let Some(values) = property["enum"].as_array() {
        assert!(values.contains(value), "{what}: {value}");
    }
    if let (Some(least), Some(number)) = (property["minimum"].as_f64(), value.as_f64()) {
        assert!(number >= least, "{what}: {value}");
    }
    for item in value.as_array().into_iter().flatten() {
        check_value(what, item, &property["items"]);
    }
}

#[test]
fn every_line_of_json_follows_the_schema() {
    let schema: Value = serde_json::from_str(SCHEMA).expect("JSON");
    let dir = TestDir::new();
    dir.write("jobs.jsonl", "{\"command\":[\"true\"],\"label\":\"a\",\"prelude\":\"true\"}\n{\"shell\":\"kill -9 $$\"}\n");
    let stray = "setsid sh -c ': > left{}; exec sleep 600' & \
                 until test -e left{}; do sleep 0.01; done; exit {}";
    let mut names = BTreeSet::new();
    for arguments in [
        &["--json", "--retries", "1", "jobs.jsonl"][..],
        &[
            "--json",
            "--canary",
            "true",
            "--halt",
            "soon,fail=1",
            "-j1",
            "--shell",
            "--",
            stray,
            ":::",
            "1",
            "2",
        ],
        &["--json", "--timeout", "0.2", "--no-pin", "--", "sleep", ":::", "600"],
        &["--json", "--", "./missing", ":::", "x"],
    ] {
        let ran = dir.run(arguments);
        for line in ran.stdout.lines() {
            let event: Map<String, Value> = serde_json::from_str(line).expect("an object");
            names.insert(check(&event, &schema));
        }
        let last = ran.stdout.lines().last().expect("a line");
        assert!(last.contains("\"event\":\"end\""), "{last}");
    }
    let expected = ["canary_passed", "end", "finished", "halting", "retrying", "started", "stray"];
    assert!(expected.iter().all(|name| names.contains(*name)), "{names:?}");
}

/// Starts a run with `--json` in a process group of its own, and calls `step` with the name of each
/// event and the run's process id.
fn watch(
    dir: &TestDir,
    schema: &Value,
    arguments: &[&str],
    mut step: impl FnMut(&str, u32),
) -> BTreeSet<String> {
    let mut command = dir.command(&[&["run", "--json", "--no-pin"], arguments].concat());
    let mut brigade = command.stdout(Stdio::piped()).process_group(0).spawn().expect("brigade");
    let mut names = BTreeSet::new();
    for line in BufReader::new(brigade.stdout.take().expect("piped")).lines() {
        let line = line.expect("UTF-8");
        let event: Map<String, Value> = serde_json::from_str(&line).expect("an object");
        let name = check(&event, schema);
        step(&name, brigade.id());
        names.insert(name);
    }
    brigade.wait().expect("own child");
    names
}

#[test]
fn events_of_a_suspended_and_stopped_run_follow_the_schema() {
    let schema: Value = serde_json::from_str(SCHEMA).expect("JSON");
    let dir = TestDir::new();
    let mut names =
        watch(&dir, &schema, &["--memfree", "900T", "--", "true", ":::", "x"], |name, pid| {
            if name == "waiting" {
                signal(pid, "INT");
            }
        });
    let job = "trap '' INT; echo $$ > pid; while :; do sleep 0.01; done # {}";
    names.extend(watch(
        &dir,
        &schema,
        &["--shell", "--", job, ":::", "x"],
        |name, pid| match name {
            "started" => {
                pids(&dir.path("pid"), 1);
                signal(pid, "TSTP");
            }
            "suspended" => {
                until("the stop", || is_stopped(&pid.to_string()));
                signal(pid, "CONT");
                signal(pid, "INT");
            }
            "grace" => signal(pid, "INT"),
            _ => {}
        },
    ));
    for name in ["waiting", "suspended", "grace", "signalled", "halting", "end"] {
        assert!(names.contains(name), "{name}: {names:?}");
    }
}

#[test]
fn the_event_of_a_job_for_the_terminal_follows_the_schema() {
    let schema: Value = serde_json::from_str(SCHEMA).expect("JSON");
    let dir = TestDir::new();
    let session = format!(
        "{} run --json -- sh -c 'read x < /dev/tty' ::: 1 > events & \
         until grep -q wants_terminal events; do sleep 0.05; done; kill -INT $!; wait $!",
        env!("CARGO_BIN_EXE_brigade")
    );
    dir.write("session", session);
    // Job control, so that the run is not in the foreground either.
    let mut terminal = Command::new("script");
    terminal.args(["-qc", "exec sh -m session", "/dev/null"]).current_dir(dir.path(""));
    terminal.env("XDG_RUNTIME_DIR", dir.path("")).stdin(Stdio::null()).stdout(Stdio::null());
    terminal.status().expect("script");
    let names: BTreeSet<String> = dir
        .read("events")
        .lines()
        .map(|line| check(&serde_json::from_str(line).expect("an object"), &schema))
        .collect();
    assert!(names.contains("wants_terminal") && names.contains("end"), "{names:?}");
}

#[test]
fn the_schema_and_the_documentation_name_the_same_events() {
    let schema: Value = serde_json::from_str(SCHEMA).expect("JSON");
    let text = include_str!("../../docs/manual.md");
    let definitions = schema["$defs"].as_object().expect("definitions");
    assert_eq!(schema["anyOf"].as_array().expect("a list").len(), definitions.len());
    for (name, definition) in definitions {
        let is_row = |line: &&str| line.starts_with("| ") && line.contains(&format!("`{name}`"));
        let row = text.lines().find(is_row).expect("a row of the table");
        for field in definition["properties"].as_object().expect("fields").keys() {
            assert!(
                field == "event" || row.contains(&format!("`{field}`")),
                "{name}.{field}: {row}"
            );
        }
    }
}
