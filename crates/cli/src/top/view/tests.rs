//! The display on terminals of several sizes.

use brigade_testkit::repetitions;
use proptest::prelude::*;
use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::draw;
use crate::top::app::tests::app;
use crate::top::app::{App, DisplayEvent, Scroll};

/// Returns the lines of a display of this size.
fn lines(app: &App, (width, height): (u16, u16)) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, app)).unwrap();
    let buffer = terminal.backend().buffer();
    let line = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>();
    (0..height).map(line).collect()
}

fn assert_shows(lines: &[String], parts: &[&str]) {
    for part in parts {
        assert!(lines.iter().any(|line| line.contains(part)), "{part}:\n{}", lines.join("\n"));
    }
}

#[test]
fn a_small_terminal_shows_figures_times_and_workers() {
    let lines = lines(&app(2), (80, 24));
    assert_shows(
        &lines,
        &[
            "thumbnails   checksum   pid 4711   up 12 min 34 s",
            "live",
            "12,000 of 12,347 finished",
            "2 of 2 workers busy",
            "6 failed",
            "Throughput   at most 50/s in 10 min",
            "run            900 µs",
            "0.1     busy     decode",
            "q quit",
        ],
    );
}

#[test]
fn a_large_terminal_shows_everything() {
    let lines = lines(&app(8), (200, 50));
    assert_shows(
        &lines,
        &[
            "Labels",
            "(other)",
            "Slowest tasks",
            "task 1007",
            "Failures   2 panicked   3 worker died   1 deadline",
            "lost its worker (pid 40001): killed by SIGSEGV",
            "7.4     vacant",
        ],
    );
}

#[test]
fn many_workers_are_cells_and_the_longest_tasks_are_lines() {
    for size in [(80, 24), (200, 50)] {
        let lines = lines(&app(256), size);
        let cells = |symbol: char| -> usize {
            lines.iter().map(|line| line.chars().filter(|it| *it == symbol).count()).sum()
        };
        // One more of each in the legend.
        assert_eq!((cells('■'), cells('□')), (129, 33), "{}", lines.join("\n"));
        assert_shows(&lines, &["81.2    busy     decode", "997 ms"]);
    }
}

#[test]
fn a_lost_connection_is_shown_with_the_last_state() {
    let mut app = app(2);
    app.take(DisplayEvent::Lost("nobody listens".to_owned()));
    let shown = lines(&app, (100, 24));
    assert_shows(&shown, &["nobody listens; trying again…", "12,000 of 12,347"]);
    let mut app = App::new(([127, 0, 0, 1], 80).into());
    assert_shows(&lines(&app, (80, 24)), &["connecting to 127.0.0.1:80…"]);
    app.take(DisplayEvent::Lost("nobody listens".to_owned()));
    assert_shows(&lines(&app, (80, 24)), &["no connection to 127.0.0.1:80: nobody listens"]);
}

#[test]
fn scrolling_moves_the_list_of_workers() {
    let mut app = app(8);
    app.take(DisplayEvent::Scroll(Scroll::Lines(3)));
    let lines = lines(&app, (200, 50));
    assert_shows(&lines, &["3.4     idle"]);
    assert!(!lines.iter().any(|line| line.contains("0.1     busy")));
}

#[test]
fn hostile_labels_do_not_reach_the_terminal_as_commands() {
    let mut app = app(2);
    let snapshot = app.snapshot.as_mut().unwrap();
    snapshot.workers[0].running.as_mut().unwrap().label = "\u{1b}[2J\u{7}\nx".to_owned();
    snapshot.name = "\u{1b}]0;title\u{7}".to_owned();
    for line in lines(&app, (80, 24)) {
        assert!(!line.chars().any(char::is_control), "{line:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(repetitions(64)))]

    #[test]
    fn every_size_can_be_drawn(
        width in 0_u16..220, height in 0_u16..70, workers in 0_u32..300, first in 0_usize..400,
    ) {
        let mut app = app(workers);
        app.first = first;
        lines(&app, (width, height));
    }
}
