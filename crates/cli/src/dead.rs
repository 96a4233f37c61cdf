//! `brigade cluster dead`: shows the tasks that were given up, and submits them again or removes
//! them.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::time::{Duration, SystemTime};

use brigade::cluster::{Cluster, DeadLetter};
use miette::{IntoDiagnostic, Report, WrapErr, miette};

use crate::arguments::{Dead, QueueAddress};
use crate::cluster::table;

/// The word for every dead letter. An item has a `/`.
const ALL: &str = "all";

pub(crate) fn run(options: &Dead) -> Result<u8, Report> {
    let QueueAddress { url, queue, login, .. } = &options.address;
    let builder = Cluster::builder().endpoint(login.endpoint(url.as_deref())?);
    let cluster = builder.queue(queue).create_queue(false).connect().into_diagnostic()?;
    if options.requeue.is_empty() && options.remove.is_empty() {
        return list(&cluster, options.json);
    }
    let is_requeue = !options.requeue.is_empty();
    let named = if is_requeue { &options.requeue } else { &options.remove };
    let mut missing: BTreeSet<&str> = named.iter().map(String::as_str).collect();
    let is_all = missing.remove(ALL);
    // All of them first, because a task that is submitted again may come back at once.
    let letters: Vec<_> = cluster.dead_letters().collect::<Result<_, _>>().into_diagnostic()?;
    for letter in letters {
        let item = letter.key.to_string();
        if missing.remove(item.as_str()) || is_all {
            let (done, verb) = if is_requeue {
                (cluster.requeue(&letter), "submitted again")
            } else {
                (cluster.remove_dead_letter(&letter), "removed")
            };
            let is_done = done.into_diagnostic().wrap_err_with(|| item.clone())?;
            let verb = if is_done { verb } else { "gone" };
            writeln!(io::stdout(), "{item}: {verb}").into_diagnostic()?;
        }
    }
    if missing.is_empty() {
        return Ok(0);
    }
    let missing: Vec<_> = missing.into_iter().collect();
    Err(miette!(
        help = "`brigade cluster dead` lists them, as BATCH/ITEM",
        "there is no dead letter of {}",
        missing.join(", ")
    ))
}

fn list(cluster: &Cluster, is_json: bool) -> Result<u8, Report> {
    let mut out = io::stdout().lock();
    if is_json {
        for letter in cluster.dead_letters() {
            let line = serde_json::to_string(&letter.into_diagnostic()?).into_diagnostic()?;
            writeln!(out, "{line}").into_diagnostic()?;
        }
        return Ok(0);
    }
    let letters: Vec<_> = cluster.dead_letters().collect::<Result<_, _>>().into_diagnostic()?;
    let head = ["ITEM", "FUNCTION", "LABEL", "DEATHS", "AGE", "LAST REPORT"];
    for line in table(&head, letters.iter().map(row)) {
        writeln!(out, "{line}").into_diagnostic()?;
    }
    Ok(0)
}

fn row(letter: &DeadLetter) -> Vec<String> {
    #[expect(clippy::disallowed_methods, reason = "the age of a record of another machine")]
    let age = SystemTime::now().duration_since(letter.when).unwrap_or_default();
    let age = Duration::from_secs(age.as_secs());
    let last = letter.history.last().map_or_else(
        || "none: the nodes have died".to_owned(),
        |report| format!("{}: {}", report.node, report.incident),
    );
    vec![
        letter.key.to_string(),
        letter.function.clone(),
        letter.label.clone().unwrap_or_default(),
        letter.deaths.to_string(),
        humantime::format_duration(age).to_string(),
        // Descriptions may have several lines, and a stack at the end, which is among the JSON.
        last.split("\nthread ")
            .next()
            .unwrap_or_default()
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" "),
    ]
}
