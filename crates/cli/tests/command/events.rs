//! Tests of `--json` against the schema in docs/events.schema.json.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::common::TestDir;

const SCHEMA: &str = include_str!("../../../../docs/events.schema.json");

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

#[test]
fn the_schema_and_the_documentation_name_the_same_events() {
    let schema: Value = serde_json::from_str(SCHEMA).expect("JSON");
    let text = include_str!("../../../../docs/runner.md");
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
