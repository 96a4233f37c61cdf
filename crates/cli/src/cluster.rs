//! `brigade cluster`: shows a queue and its nodes.

use std::io::{self, Write};
use std::time::Duration;

use brigade::cluster::{ClusterStatus, LaneStatus, NodeStatus};
use miette::{IntoDiagnostic, Report};

use crate::arguments::{Cluster, ClusterStatusOptions, QueueAddress};

pub(crate) fn run(command: &Cluster) -> Result<u8, Report> {
    match command {
        Cluster::Status(options) => show(options),
        Cluster::Dead(options) => crate::dead::run(options),
    }
}

fn show(options: &ClusterStatusOptions) -> Result<u8, Report> {
    let ClusterStatusOptions { address: QueueAddress { url, queue, login, .. }, json } = options;
    let endpoint = login.endpoint(url.as_deref())?;
    let status = ClusterStatus::fetch(&endpoint, queue).into_diagnostic()?;
    let mut text =
        if *json { serde_json::to_string(&status).into_diagnostic()? } else { describe(&status) };
    text.push('\n');
    io::stdout().write_all(text.as_bytes()).into_diagnostic()?;
    Ok(0)
}

fn describe(status: &ClusterStatus) -> String {
    let mut lines = vec![
        format!(
            "queue {}: {} tasks, {} outcomes, {} dead letters",
            status.queue, status.tasks, status.outcomes, status.dead_letters
        ),
        format!(
            "last second: {:.0} submitted, {:.0} recorded",
            status.submitted_per_second, status.recorded_per_second
        ),
        String::new(),
    ];
    let lane = |it: &LaneStatus| vec![it.name.clone(), it.waiting.to_string(), it.held.to_string()];
    lines.extend(table(&["LANE", "WAITING", "HELD"], status.lanes.iter().map(lane)));
    lines.push(String::new());
    if status.nodes.is_empty() {
        lines.push("no node has answered".to_owned());
    } else {
        let head =
            ["NODE", "WORKERS", "HELD", "OUTCOMES", "DEATHS", "GIVEN UP", "UPTIME", "OFFERS"];
        lines.extend(table(&head, status.nodes.iter().map(row)));
    }
    lines.join("\n")
}

fn row(node: &NodeStatus) -> Vec<String> {
    let uptime = humantime::format_duration(Duration::from_secs(node.uptime_seconds)).to_string();
    let draining = if node.is_draining { " (draining)" } else { "" };
    vec![
        format!("{}{draining}", node.name),
        node.workers.to_string(),
        node.held.to_string(),
        node.recorded.to_string(),
        node.worker_deaths.to_string(),
        node.given_up.to_string(),
        uptime,
        node.offers.clone(),
    ]
}

/// Returns the lines of a table whose columns are aligned.
pub(crate) fn table(head: &[&str], rows: impl Iterator<Item = Vec<String>>) -> Vec<String> {
    let head = head.iter().map(ToString::to_string).collect();
    let rows: Vec<Vec<String>> = std::iter::once(head).chain(rows).collect();
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| console::measure_text_width(cell)).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..rows[0].len()).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| {
            console::pad_str(cell, *width, console::Alignment::Left, None).into_owned()
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned() {
        let rows = [["a", "1"], ["größer", "22"]].map(|row| row.map(str::to_owned).to_vec());
        let lines = table(&["NAME", "N"], rows.into_iter());
        assert_eq!(lines, ["NAME    N", "a       1", "größer  22"]);
    }

    #[test]
    fn a_queue_without_nodes_says_so() {
        let text = describe(&ClusterStatus::default());
        assert!(text.contains("no node has answered"), "{text}");
    }
}
