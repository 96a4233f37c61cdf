//! Requirements of a task, what a node offers, and the class in which equal requirements meet.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::names::NameError;

/// The class of tasks without requirements.
const ANY: &str = "any";

/// Maximum length of a label. Several of them make one token of a subject.
const LABEL_LIMIT: usize = 16;

/// Maximum length of a class, which is a token of a subject and a part of a consumer's name.
const CLASS_LIMIT: usize = 64;

/// Requirements of a task: only nodes that meet all of them take it.
///
/// ```
/// use brigade_cluster::Needs;
///
/// let needs = Needs::cores(4).memory_gib(8).label("gpu");
/// assert!(needs.are_met_by(&Needs::cores(8).memory_gib(16).label("gpu").label("fast")));
/// assert!(!needs.are_met_by(&Needs::cores(8).memory_gib(16)));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
#[must_use = "requirements are nothing until a task or a node gets them"]
pub struct Needs {
    cores: u32,
    memory_gib: u32,
    labels: BTreeSet<String>,
}

impl Needs {
    /// Creates requirements that every node meets.
    pub fn new() -> Self {
        Self::default()
    }

    /// Requires a number of cores for the worker that runs the task.
    pub fn cores(cores: u32) -> Self {
        Self { cores, ..Self::default() }
    }

    /// Sets the number of cores.
    pub(crate) fn with_cores(mut self, cores: u32) -> Self {
        self.cores = cores;
        self
    }

    /// Requires an amount of memory for the worker that runs the task.
    pub fn memory_gib(mut self, memory_gib: u32) -> Self {
        self.memory_gib = memory_gib;
        self
    }

    /// Requires a label of the node: 1 to 16 lower-case letters, digits and `_`, with a letter
    /// first. `any`, and `c` or `m` with a number, are taken.
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.labels.insert(label.into());
        self
    }

    /// Returns `true` if a label of the node is required.
    pub(crate) fn has_label(&self, label: &str) -> bool {
        self.labels.contains(label)
    }

    /// Returns `true` if a node that offers this for each of its workers may run the task.
    pub fn are_met_by(&self, offer: &Self) -> bool {
        // A task without requirements also runs on a node that says nothing of itself.
        self.cores <= offer.cores.max(1)
            && self.memory_gib <= offer.memory_gib
            && self.labels.is_subset(&offer.labels)
    }

    /// Returns the class of these requirements.
    ///
    /// # Errors
    /// If a label has characters that are not allowed, or there are too many.
    pub(crate) fn class(&self) -> Result<Class, NameError> {
        if let Some(label) = self.labels.iter().find(|label| !is_label(label)) {
            return Err(NameError { what: "the label of a node", text: label.clone() });
        }
        let text = self.to_string();
        if text.len() > CLASS_LIMIT {
            return Err(NameError { what: "requirements", text });
        }
        Ok(Class(text.into()))
    }
}

impl fmt::Display for Needs {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cores = (self.cores > 0).then(|| format!("c{}", self.cores));
        let memory = (self.memory_gib > 0).then(|| format!("m{}", self.memory_gib));
        let parts: Vec<String> =
            cores.into_iter().chain(memory).chain(self.labels.iter().cloned()).collect();
        if parts.is_empty() { out.write_str(ANY) } else { out.write_str(&parts.join("-")) }
    }
}

impl FromStr for Needs {
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

/// Requirements in their only spelling, such as `any` or `c4-m8-gpu`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct Class(Arc<str>);

impl Class {
    pub(crate) fn needs(&self) -> Needs {
        // A class is made of requirements, so they can be read again.
        self.0.parse().unwrap_or_default()
    }
}

impl Default for Class {
    fn default() -> Self {
        Self(ANY.into())
    }
}

impl FromStr for Class {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        text.parse::<Needs>().map(|_| Self(text.into()))
    }
}

impl TryFrom<String> for Class {
    type Error = NameError;

    fn try_from(text: String) -> Result<Self, NameError> {
        text.parse()
    }
}

impl From<Class> for String {
    fn from(class: Class) -> Self {
        class.0.as_ref().to_owned()
    }
}

impl fmt::Display for Class {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl fmt::Debug for Class {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:?}", &*self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_requirements_have_one_spelling() {
        let needs = Needs::cores(4).label("gpu").memory_gib(8).label("fast");
        let class = needs.class().unwrap();
        assert_eq!(class.to_string(), "c4-m8-fast-gpu");
        assert_eq!(class.needs(), needs);
        assert_eq!(Needs::new().class().unwrap(), Class::default());
        for text in ["gpu-fast", "m8-c4", "c4-c4", "c04", "any-gpu", "", "a--b", "c+4"] {
            assert!(text.parse::<Class>().is_err(), "{text}");
        }
    }

    #[test]
    fn labels_that_read_as_something_else_are_refused() {
        for label in ["c4", "m8", "any", "a-b", "a.b", "", "GPU", "4x"] {
            assert!(Needs::new().label(label).class().is_err(), "{label}");
        }
        assert!(Needs::new().label("cpu_7").class().is_ok());
    }

    #[test]
    fn a_node_that_says_nothing_runs_tasks_without_requirements() {
        assert!(Needs::new().are_met_by(&Needs::new()));
        assert!(Needs::cores(1).are_met_by(&Needs::new()));
        assert!(!Needs::cores(2).are_met_by(&Needs::new()));
    }
}
