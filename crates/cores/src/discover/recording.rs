//! Recordings of another machine's files.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The files that describe a machine, by path below the root without a leading slash.
///
/// It serializes as a map of strings, such as a JSON object. Bytes above 127 are stored as the
/// characters with the same number.
///
/// ```
/// use brigade_cores::{Recording, Topology};
///
/// let recording: Recording = serde_json::from_str(
///     r#"{
///         "sys/devices/system/cpu/online": "0-1\n",
///         "sys/devices/system/cpu/cpu0/topology/core_cpus": "3\n",
///         "sys/devices/system/cpu/cpu1/topology/core_cpus": "3\n"
///     }"#,
/// )?;
/// let topology = Topology::replay(&recording)?;
/// assert_eq!(topology.counts().units, 2);
/// assert_eq!(topology.counts().cores, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Recording {
    files: BTreeMap<String, String>,
}

impl Recording {
    pub(super) fn file(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(String::as_str)
    }

    /// Returns the names in a folder. A folder's name is repeated for each file below it.
    pub(super) fn names<'a>(&'a self, folder: &str) -> impl Iterator<Item = &'a str> {
        let prefix = format!("{folder}/");
        let length = prefix.len();
        self.files
            .range(prefix.clone()..)
            .take_while(move |(path, _)| path.starts_with(&prefix))
            .filter_map(move |(path, _)| path[length..].split('/').next())
    }
}

impl FromIterator<(String, String)> for Recording {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(files: I) -> Self {
        Self { files: files.into_iter().collect() }
    }
}
