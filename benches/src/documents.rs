//! Writes tables into the documents that have markers for them.

mod markers;

use crate::folders;
use crate::report::Outcome;
use crate::results::Results;
use crate::tables;

/// The documents to write tables into, relative to the root of the checkout.
const DOCUMENTS: &[&str] = &["README.md", "docs/performance.md"];

/// Writes each table between its markers in each document, and prints which markers are missing.
pub(crate) fn write(results: &Results) -> Outcome<()> {
    let blocks = tables::blocks(results);
    for document in DOCUMENTS {
        let path = folders::root().join(document);
        let failed = |error: std::io::Error| format!("{document}: {error}");
        let mut text = std::fs::read_to_string(&path).map_err(failed)?;
        let (mut written, mut absent) = (Vec::new(), Vec::new());
        for (name, block) in &blocks {
            match markers::replace(&text, name, block)
                .map_err(|problem| format!("{document}: {problem}"))?
            {
                Some(changed) => {
                    text = changed;
                    written.push(*name);
                }
                None => absent.push(*name),
            }
        }
        std::fs::write(&path, text).map_err(failed)?;
        let listed = |names: &[&str]| match names {
            [] => "none".to_owned(),
            names => names.join(", "),
        };
        println!("{document}: wrote {}; no markers for {}", listed(&written), listed(&absent));
    }
    Ok(())
}
