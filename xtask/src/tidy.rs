//! `cargo xtask tidy`: checks the rules of this repository that neither the compiler nor clippy
//! checks.
//!
//! Each rule has a file with a function from the checkout to its findings, and unit tests on small
//! inputs. A finding names file and line and says what to do about it.

mod banned;
mod budget;
mod circles;
pub(crate) mod conformance;
mod dependencies;
mod errors;
mod fences;
mod figures;
mod language;
mod layering;
mod length;
mod links;
mod manifest;
mod map;
mod members;
mod metadata;
pub(crate) mod msrv;
mod opening;
mod paths;
pub(crate) mod published;
mod script_sleeps;
mod test_names;
mod tuning;
mod type_names;
mod unsafe_code;
mod untested;
mod wire_hash;
mod wrapping;

use std::fmt;
use std::process::ExitCode;

use crate::checkout::{Checkout, on_all_processors};
use crate::features;

/// A violation of a rule.
#[derive(Debug, PartialEq, Eq)]
struct Finding {
    path: String,
    /// Counted from 1.
    line: usize,
    message: String,
}

type Check = fn(&Checkout) -> Vec<Finding>;

const CHECKS: &[Check] = &[
    layering::check,
    layering::check_table,
    members::check,
    msrv::check,
    dependencies::check,
    unsafe_code::check,
    length::check,
    circles::check,
    budget::check,
    test_names::check,
    untested::check,
    script_sleeps::check,
    type_names::check,
    tuning::check,
    figures::check,
    banned::check,
    paths::check,
    opening::check,
    language::check,
    links::check,
    map::check,
    wire_hash::check,
    conformance::check,
    published::check,
    metadata::check,
    errors::check,
    fences::check,
    wrapping::check,
];

pub(crate) fn run(arguments: &[String]) -> Result<ExitCode, String> {
    match arguments {
        [] => {}
        [only] if only == "--bless" => {
            let checkout = Checkout::read()?;
            println!("tidy: {}", wire_hash::bless(&checkout)?);
            println!("tidy: {}", published::bless(&checkout)?);
            println!("tidy: {}", layering::bless(&checkout)?);
        }
        _ => return Err("usage: cargo xtask tidy [--bless]".to_owned()),
    }
    check()?;
    Ok(ExitCode::SUCCESS)
}

/// Prints every finding, and fails if there is any.
pub(crate) fn check() -> Result<(), String> {
    let checkout = Checkout::read()?;
    let mut findings = on_all_processors(CHECKS, |check| check(&checkout));
    findings.sort_by(|one, two| (&one.path, one.line).cmp(&(&two.path, two.line)));
    for finding in &findings {
        println!("{finding}");
    }
    budget::print_distances(&checkout);
    budget::check_history()?;
    features::check()?;
    if findings.is_empty() {
        println!("tidy: {} rules hold in {} files", CHECKS.len(), checkout.files.len());
        Ok(())
    } else {
        Err(format!("tidy: {} findings", findings.len()))
    }
}

impl Finding {
    fn new(path: &str, line: usize, message: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, message: message.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}: {}", self.path, self.line, self.message)
    }
}

/// Returns path and line of each finding, for the tests of checks.
#[cfg(test)]
fn locations(check: Check, files: &[(&str, &str)]) -> Vec<String> {
    check(&Checkout::of(files))
        .iter()
        .map(|found| format!("{}:{}", found.path, found.line))
        .collect()
}
