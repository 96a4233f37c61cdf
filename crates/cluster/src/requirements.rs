//! Requirements of a task, what a node offers, and the class in which equal requirements meet.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::names::{NameError, token};

/// The class of tasks without requirements.
const ANY: &str = "any";

/// Maximum length of a label. Several of them make one token of a subject.
const LABEL_LIMIT: usize = 16;

/// Maximum length of a class, which is a token of a subject and a part of a consumer's name.
const CLASS_LIMIT: usize = 64;

/// Requirements of a task: only nodes that meet all of them take it.
///
/// ```
/// use brigade_cluster::Requirements;
///
/// let needs = Requirements::cores(4).memory_gib(8).label("gpu");
/// assert!(needs.are_met_by(&Requirements::cores(8).memory_gib(16).label("gpu").label("fast")));
/// assert!(!needs.are_met_by(&Requirements::cores(8).memory_gib(16)));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
#[must_use = "requirements are nothing until a task or a node gets them"]
pub struct Requirements {
    cores: u32,
    memory_gib: u32,
    labels: BTreeSet<String>,
    resources: BTreeMap<String, u64>,
}

impl Requirements {
    /// Creates requirements that every node meets.
    pub fn new() -> Self {
        Self::default()
    }

    /// Requires a number of cores for the worker that runs the task.
    pub fn cores(cores: u32) -> Self {
        Self { cores, ..Self::default() }
    }
}

brigade_sys::setters! {
    impl Requirements;

    /// Sets the number of cores.
    pub(crate) fn with_cores(self, cores: u32) { self.cores = cores }

    /// Requires an amount of memory for the worker that runs the task.
    pub fn memory_gib(self, memory_gib: u32) { self.memory_gib = memory_gib }

    /// Requires a label of the node: 1 to 16 lower-case letters, digits and `_`, with a letter
    /// first. `any`, and `c` or `m` with a number, are taken.
    pub fn label(self, label: impl Into<String>) {
        self.labels.insert(label.into());
    }

    /// Adds an amount of a [resource](crate::NodeBuilder::resource) that the task takes while it
    /// runs. A name is spelled like a label.
    pub fn resource(self, name: impl Into<String>, amount: u64) {
        self.add_resource(name.into(), amount);
    }
}

impl Requirements {
    pub(crate) fn add_resource(&mut self, name: String, amount: u64) {
        if amount > 0 {
            let sum = self.resources.entry(name).or_default();
            *sum = sum.saturating_add(amount);
        }
    }

    /// Returns the resources that are required, with their amounts.
    pub(crate) fn resources(&self) -> impl Iterator<Item = (&str, u64)> {
        self.resources.iter().map(|(name, amount)| (name.as_str(), *amount))
    }

    /// Returns `true` if a label of the node is required.
    pub(crate) fn has_label(&self, label: &str) -> bool {
        self.labels.contains(label)
    }

    /// Returns `true` if a node that offers this may run the task: cores and memory for each of its
    /// workers, and resources for all of them together.
    pub fn are_met_by(&self, offer: &Self) -> bool {
        // A task without requirements also runs on a node that says nothing of itself.
        self.cores <= offer.cores.max(1)
            && self.memory_gib <= offer.memory_gib
            && self.labels.is_subset(&offer.labels)
            && self.resources().all(|(name, amount)| {
                offer.resources.get(name).is_some_and(|offered| amount <= *offered)
            })
    }

    /// Returns the class of these requirements.
    ///
    /// # Errors
    /// If a label has characters that are not allowed, or there are too many.
    pub(crate) fn class(&self) -> Result<Class, NameError> {
        if let Some(label) = self.labels.iter().find(|label| !is_label(label)) {
            return Err(NameError { what: "the label of a node", text: label.clone() });
        }
        if let Some(name) = self.resources.keys().find(|name| !is_label(name)) {
            return Err(NameError { what: "the name of a resource", text: name.clone() });
        }
        let text = self.to_string();
        if text.len() > CLASS_LIMIT {
            return Err(NameError { what: "requirements", text });
        }
        Ok(Class(text.into()))
    }
}

impl fmt::Display for Requirements {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cores = (self.cores > 0).then(|| format!("c{}", self.cores));
        let memory = (self.memory_gib > 0).then(|| format!("m{}", self.memory_gib));
        let resources = self.resources().map(|(name, amount)| format!("{name}={amount}"));
        let labels = self.labels.iter().cloned();
        let parts: Vec<String> =
            cores.into_iter().chain(memory).chain(labels).chain(resources).collect();
        if parts.is_empty() { out.write_str(ANY) } else { out.write_str(&parts.join("-")) }
    }
}

impl FromStr for Requirements {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let mut needs = Self::default();
        let refused = || NameError { what: "requirements", text: text.to_owned() };
        if text == ANY {
            return Ok(needs);
        }
        for part in text.split('-') {
            if let Some(cores) = amount(part, 'c') {
                needs.cores = cores;
            } else if let Some(memory) = amount(part, 'm') {
                needs.memory_gib = memory;
            } else if let Some((name, amount)) = part.split_once('=') {
                let amount = amount.parse().map_err(|_| refused())?;
                if !is_label(name) {
                    return Err(refused());
                }
                needs.add_resource(name.to_owned(), amount);
            } else if is_label(part) {
                needs.labels.insert(part.to_owned());
            } else {
                return Err(refused());
            }
        }
        // Equal requirements must meet in one lane, so they have one spelling.
        if needs.to_string() == text && text.len() <= CLASS_LIMIT {
            Ok(needs)
        } else {
            Err(refused())
        }
    }
}

/// Returns the number behind a letter.
fn amount(part: &str, letter: char) -> Option<u32> {
    let digits = part.strip_prefix(letter)?;
    if digits.bytes().all(|byte| byte.is_ascii_digit()) { digits.parse().ok() } else { None }
}

fn is_label(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    let is_amount = amount(text, 'c').is_some() || amount(text, 'm').is_some();
    text.len() <= LABEL_LIMIT
        && text.starts_with(|first: char| first.is_ascii_lowercase())
        && text.bytes().all(allowed)
        && text != ANY
        && !is_amount
}

token! {
    /// Requirements in their only spelling, such as `any` or `c4-m8-gpu-licenses=3`.
    pub(crate) Class, "requirements", is_class
}

fn is_class(text: &str) -> bool {
    text.parse::<Requirements>().is_ok()
}

impl Class {
    pub(crate) fn requirements(&self) -> Requirements {
        // A class is made of requirements, so they can be read again.
        self.as_str().parse().unwrap_or_default()
    }
}

impl Default for Class {
    fn default() -> Self {
        Self(ANY.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_requirements_have_one_spelling() {
        let needs = Requirements::cores(4).label("gpu").memory_gib(8).label("fast");
        let needs = needs.resource("licenses", 1).resource("licenses", 2).resource("none", 0);
        let class = needs.class().unwrap();
        assert_eq!(class.to_string(), "c4-m8-fast-gpu-licenses=3");
        assert_eq!(class.requirements(), needs);
        assert_eq!(Requirements::new().class().unwrap(), Class::default());
        for text in [
            "gpu-fast",
            "m8-c4",
            "c4-c4",
            "c04",
            "any-gpu",
            "",
            "a--b",
            "c+4",
            "gpu=01",
            "gpu=0",
            "gpu=",
            "gpu=1-a",
            "gpu=1-gpu=1",
            "G=1",
        ] {
            assert!(text.parse::<Class>().is_err(), "{text}");
        }
    }

    #[test]
    fn labels_that_read_as_something_else_are_refused() {
        for label in ["c4", "m8", "any", "a-b", "a.b", "", "GPU", "4x"] {
            assert!(Requirements::new().label(label).class().is_err(), "{label}");
        }
        assert!(Requirements::new().label("cpu_7").class().is_ok());
    }

    #[test]
    fn a_node_that_says_nothing_runs_tasks_without_requirements() {
        assert!(Requirements::new().are_met_by(&Requirements::new()));
        assert!(Requirements::cores(1).are_met_by(&Requirements::new()));
        assert!(!Requirements::cores(2).are_met_by(&Requirements::new()));
        assert!(!Requirements::new().resource("gpu", 1).are_met_by(&Requirements::new()));
    }
}
