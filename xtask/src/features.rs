//! Sets of features that are checked, and whether every feature has tests that run.

use std::collections::{BTreeMap, BTreeSet};

use crate::checkout::{Checkout, root};
use crate::invocation::Invocation;
use crate::tidy::published;

/// Libraries that leave out features of those below them. In the workspace, a library has the
/// features that the others want of it.
const ALONE: [&str; 6] = ["cores", "runner", "sandbox", "supervisor", "timer", "worker"];

/// Returns checks of the facade: without features, with few sets in which, together with the empty
/// one, each pair is on, off, and only one of both, with each alone, and with all of them; and of
/// the libraries that use others without their features.
pub(crate) fn sets(resolution: &str) -> Vec<(String, Invocation)> {
    let features = declared("brigade");
    let rows = rows(&features);
    let count = rows.len();
    let names = (1..).map(|number| format!("set {number} of {count}"));
    let pairs = names.zip(rows.iter().map(|row| row.join(",")));
    let each = features.iter().map(|feature| (feature.clone(), feature.clone()));
    let sets = [("none".to_owned(), String::new()), ("all".to_owned(), features.join(","))];
    let sets = sets.into_iter().chain(pairs).chain(each);
    let checks = sets.map(|(name, set)| (name, facade(resolution, &set)));
    let client = format!("-p brigade-cluster {resolution} --no-default-features");
    let client = ("client of a cluster".to_owned(), check_strictly(&client));
    let alone = ALONE.map(|name| {
        let check = check_strictly(&format!("-p brigade-{name} {resolution} --lib"));
        (format!("{name} alone"), check)
    });
    checks.chain([client]).chain(alone).map(named).collect()
}

fn named((name, check): (String, Invocation)) -> (String, Invocation) {
    (format!("features: {name}"), check.counted())
}

fn facade(resolution: &str, set: &str) -> Invocation {
    check_strictly(&format!("-p brigade {resolution} --no-default-features --features={set}"))
}

/// Returns a check in which a warning is an error: code that only some features use is one without
/// them.
fn check_strictly(arguments: &str) -> Invocation {
    Invocation::cargo(&format!("check {arguments}")).wrapped("deny.sh")
}

/// Returns sets in which every pair of features is together, and apart.
///
/// Each feature is in another choice of just over half of the sets. So two features are together in
/// a set, and each is somewhere without the other; the empty set has neither. There are as few sets
/// as have that number of choices: six for 15 features, seven for 35. (Kleitman and Spencer,
/// Families of k-independent sets, 1973.)
fn rows(features: &[String]) -> Vec<Vec<String>> {
    let choices = |sets: u32| (0..1_u32 << sets).filter(move |it| it.count_ones() == sets / 2 + 1);
    let suffices = |sets: &u32| choices(*sets).count() >= features.len();
    let sets = (1..u32::BITS).find(suffices).unwrap_or_default();
    let placed: Vec<(&String, u32)> = features.iter().zip(choices(sets)).collect();
    let row = |set: u32| {
        let inside = placed.iter().filter(|(_, four)| four & 1 << set != 0);
        inside.map(|(feature, _)| (*feature).clone()).collect()
    };
    (0..sets).map(row).collect()
}

/// Returns the features that a package of the workspace declares, without `default`.
fn declared(package: &str) -> Vec<String> {
    let folder = package.strip_prefix("brigade-").unwrap_or(package);
    let path = root().join("crates").join(folder).join("Cargo.toml");
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let manifest: toml::Table = text.parse().unwrap_or_default();
    let features = manifest.get("features").and_then(toml::Value::as_table);
    let names = features.into_iter().flat_map(toml::Table::keys);
    names.filter(|name| *name != "default").cloned().collect()
}

/// Checks that the build of the tests has every feature of every published package: a feature that
/// it lacks has unit tests, doc examples and examples that never run.
pub(crate) fn check() -> Result<(), String> {
    let listed =
        Invocation::cargo("tree --workspace --depth 0 --prefix none -f {p}|{f}").output()?;
    let built = built(&listed);
    let mut missing = Vec::new();
    for package in published::names(&Checkout::read()?) {
        let has = |feature: &String| {
            built.get(package.as_str()).is_some_and(|it| it.contains(feature.as_str()))
        };
        let lacking = declared(&package).into_iter().filter(|feature| !has(feature));
        missing.extend(lacking.map(|feature| format!("{package}/{feature}")));
    }
    if missing.is_empty() {
        return Ok(());
    }
    Err(format!(
        "no test is built with {}: add the feature in crates/integration/Cargo.toml, or where its \
         tests are",
        missing.join(", ")
    ))
}

/// Parses lines such as `brigade v0.1.0 (/path)|default,cores`.
fn built(listed: &str) -> BTreeMap<&str, BTreeSet<&str>> {
    let lines = listed.lines().filter_map(|line| line.split_once('|'));
    lines
        .filter_map(|(package, features)| {
            let features = features.trim_end_matches(" (*)").split(',');
            Some((package.split(' ').next()?, features.collect()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{built, check, declared, rows};

    #[test]
    fn every_pair_of_features_is_together_and_apart() {
        let features = declared("brigade");
        assert!(features.len() > 10, "{features:?}");
        let rows = [rows(&features), vec![Vec::new()]].concat();
        for (index, one) in features.iter().enumerate() {
            for other in &features[..index] {
                for expected in [(false, false), (false, true), (true, false), (true, true)] {
                    let has = |row: &Vec<String>| (row.contains(one), row.contains(other));
                    assert!(rows.iter().any(|row| has(row) == expected), "{one}, {other}");
                }
            }
        }
    }

    #[test]
    fn features_of_a_build_are_found() {
        let built = built("a v0.1.0 (/a)|default,x\nb v0.1.0 (/b)|\n");
        assert!(built["a"].contains("x") && !built["b"].contains("x"));
    }

    #[test]
    fn the_tests_are_built_with_every_feature() {
        assert_eq!(check(), Ok(()));
    }
}
