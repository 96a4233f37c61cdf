//! The display of a cluster.

use std::time::Duration;

use brigade::cluster::{LaneStatus, NodeStatus};
use ratatui::Frame;
use ratatui::layout::Constraint::{Fill, Length};
use ratatui::layout::{Layout, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Cell, Row, Table};

use super::View;
use crate::top::figures::{ACCENT, BAD, bold, dim, figure, key};
use crate::top::format::{count, one_line, rate, span};

/// The most lanes that have a line.
const LANES: usize = 6;

/// Draws everything.
pub(super) fn draw(frame: &mut Frame<'_>, view: &View) {
    let lanes = u16::try_from(view.status.lanes.len().min(LANES)).unwrap_or(u16::MAX);
    let lanes = Length(1 + lanes);
    let heights =
        [Length(1), Length(1), Length(1), Length(1), lanes, Length(1), Fill(1), Length(1)];
    let [head, figures, more, _, lanes_area, _, nodes, foot] =
        Layout::vertical(heights).areas(frame.area());
    frame.render_widget(heading(view), head);
    frame.render_widget(connection(view), head);
    let status = &view.status;
    let running: u64 = status.nodes.iter().map(|node| u64::from(node.running)).sum();
    let first = [
        figure(count(status.tasks), "tasks in the queue", false),
        figure(format!("{}/s", rate(status.submitted_per_second)), "submitted", false),
        figure(format!("{}/s", rate(status.recorded_per_second)), "recorded", false),
    ];
    let second = [
        figure(count(status.nodes.len() as u64), "nodes", status.nodes.is_empty()),
        figure(format!("{} of {}", count(running), count(status.workers())), "workers busy", false),
        figure(count(status.outcomes), "outcomes kept", false),
        figure(count(status.dead_letters), "dead letters", status.dead_letters > 0),
    ];
    frame.render_widget(Line::from(first.concat()), figures);
    frame.render_widget(Line::from(second.concat()), more);
    let widths = [Fill(1), Length(10), Length(10)];
    let rows = status.lanes.iter().take(LANES).map(lane);
    let table = Table::new(rows, widths).header(heads(&["LANE", "WAITING", "HELD"]));
    frame.render_widget(table, lanes_area);
    draw_nodes(frame, nodes, view);
    let keys = [key("q", "quit"), key("↑ ↓", "nodes")];
    frame.render_widget(Line::from(keys.concat()), foot);
}

fn draw_nodes(frame: &mut Frame<'_>, area: Rect, view: &View) {
    let head =
        ["NODE", "BUSY", "WORKERS", "HELD", "RATE", "OUTCOMES", "DEATHS", "UPTIME", "OFFERS"];
    let widths = [5, 7, 6, 8, 8, 6, 12].map(Length);
    let widths = [Fill(2)].into_iter().chain(widths).chain([Fill(1)]);
    let nodes = view.status.nodes.iter().zip(&view.rates).skip(view.first);
    let table = Table::new(nodes.map(node), widths).header(heads(&head));
    frame.render_widget(table, area);
}

fn heading(view: &View) -> Line<'static> {
    Line::styled(format!("queue {}", one_line(&view.status.queue)), bold().fg(ACCENT))
}

fn connection(view: &View) -> Line<'static> {
    let line = match &view.lost {
        Some(reason) => {
            let text = format!(" {}; trying again… ", one_line(reason));
            Line::styled(text, Style::new().fg(BAD))
        }
        None => Line::styled("live", dim()),
    };
    line.right_aligned()
}

fn heads(names: &[&'static str]) -> Row<'static> {
    Row::new(names.iter().map(|name| Cell::from(Span::styled(*name, dim()))))
}

fn lane(lane: &LaneStatus) -> Row<'static> {
    Row::new([one_line(&lane.name), count(lane.waiting), count(lane.held)])
}

fn node((node, tasks): (&NodeStatus, &Option<f64>)) -> Row<'static> {
    let draining = if node.is_draining { " (draining)" } else { "" };
    Row::new([
        format!("{}{draining}", one_line(&node.name)),
        node.running.to_string(),
        node.workers.to_string(),
        count(node.held.into()),
        tasks.map_or_else(String::new, |tasks| format!("{}/s", rate(tasks))),
        count(node.recorded),
        count(node.worker_deaths),
        span(Duration::from_secs(node.uptime_seconds)),
        one_line(&node.offers),
    ])
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use brigade::cluster::ClusterStatus;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use serde_json::json;

    use super::*;
    use crate::top::app::Scroll;

    /// Returns a status with two nodes, as `brigade cluster status --json` prints it.
    fn status(recorded: u64) -> ClusterStatus {
        let node = |name: &str| {
            json!({
                "name": name, "version": "1", "workers": 4, "held": 9, "running": 3,
                "recorded": recorded, "refused": 0, "returned": 0, "given_up": 0,
                "worker_deaths": 2, "offers": "c4-gpu", "tasks": [], "is_draining": name == "b",
                "uptime_seconds": 75,
            })
        };
        serde_json::from_value(json!({
            "queue": "images", "nodes": [node("a"), node("b")],
            "lanes": [{ "name": "any_h", "waiting": 1_234, "held": 18 }],
            "tasks": 1_252, "outcomes": 77, "dead_letters": 5,
            "submitted_per_second": 100.0, "recorded_per_second": 0.0,
        }))
        .unwrap()
    }

    fn lines(view: &View, (width, height): (u16, u16)) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, view)).unwrap();
        let buffer = terminal.backend().buffer();
        let line = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>();
        (0..height).map(line).collect()
    }

    fn assert_shows(view: &View, parts: &[&str]) {
        let lines = lines(view, (110, 24));
        for part in parts {
            assert!(lines.iter().any(|line| line.contains(part)), "{part}:\n{}", lines.join("\n"));
        }
    }

    #[test]
    fn queue_lanes_and_nodes_are_shown() {
        let (mut view, now) = (View::default(), Instant::now());
        view.update(status(10), now);
        view.update(status(210), now + Duration::from_secs(2));
        let parts = [
            "queue images",
            "1,252 tasks in the queue   100/s submitted   0/s recorded",
            "2 nodes   6 of 8 workers busy   77 outcomes kept   5 dead letters",
            "any_h",
            "b (draining)",
            "100/s",
            "1 min 15 s",
        ];
        assert_shows(&view, &parts);
        view.lost = Some("no answer".to_owned());
        assert_shows(&view, &["no answer; trying again…", "any_h"]);
        view.scroll(Scroll::Lines(1));
        assert!(!lines(&view, (110, 24)).join("\n").contains("\na "));
    }

    #[test]
    fn every_size_can_be_drawn() {
        let mut view = View::default();
        view.update(status(1), Instant::now());
        for size in [(1, 1), (3, 2), (20, 5), (80, 9), (300, 100)] {
            lines(&view, size);
        }
    }
}
