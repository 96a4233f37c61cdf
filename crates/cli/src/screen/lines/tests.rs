//! Tests of the area's lines: what is seen at which width.

use std::sync::Arc;
use std::time::Duration;

use brigade::runner::{Event, Job, Need, Runner};

use super::super::SupplyCounts;
use super::*;
use crate::input::Ahead;

fn statistics(running: usize, supply: SupplyCounts) -> Statistics {
    let runner = Runner::builder().unpinned().jobs(16).build().expect("valid");
    let mut statistics = Statistics::new(&runner, false);
    statistics.supply = supply;
    for number in 1..=running {
        statistics.note(&started(number, Vec::new()));
    }
    statistics
}

fn started(number: usize, cores: Vec<u32>) -> Event {
    let job = Arc::new(Job::new("convert").arg(format!("{number}.tif")));
    let at = Duration::ZERO;
    Event::Started {
        number: number as u64,
        job,
        attempt: 1,
        slot: number,
        host: None,
        pid: 1,
        cores,
        at,
    }
}

fn shown(statistics: &Statistics, height: usize, width: usize) -> Vec<String> {
    let lines = lines(statistics, height, width, Tint::off());
    for line in &lines {
        assert!(console::measure_text_width(line) < width, "{line}");
    }
    lines
}

const TWENTY: SupplyCounts =
    SupplyCounts { supplied: 5, ahead: Ahead { count: 15, is_all: true }, skipped: 0 };

#[test]
fn a_narrow_terminal_shows_the_number_running_and_the_time() {
    let statistics = statistics(2, TWENTY);
    let lines = shown(&statistics, 20, 40);
    assert!(lines[0].starts_with("0/20 "), "{}", lines[0]);
    assert!(lines[0].contains("2 running, 0.0"), "{}", lines[0]);
    assert!(lines[1].ends_with("  convert 1.tif"), "{}", lines[1]);
}

#[test]
fn a_list_that_is_still_being_read_has_so_many_jobs_so_far() {
    let supply = SupplyCounts { ahead: Ahead { is_all: false, ..TWENTY.ahead }, ..TWENTY };
    let lines = shown(&statistics(2, supply), 20, 80);
    assert!(lines[0].starts_with("0 of 20+ so far, 2/16 running, 0.0"), "{}", lines[0]);
}

#[test]
fn cores_are_shown_for_pinned_jobs_only() {
    let mut statistics = statistics(1, TWENTY);
    assert!(!shown(&statistics, 20, 80)[1].contains("core"));
    statistics.note(&started(2, vec![4, 5, 7]));
    assert!(shown(&statistics, 20, 80)[2].contains("  #2  cores 4-5,7  convert 2.tif"));
}

#[test]
fn jobs_that_do_not_fit_are_counted() {
    let statistics = statistics(16, TWENTY);
    assert_eq!(shown(&statistics, 4, 80).len(), 5);
    assert_eq!(shown(&statistics, 4, 80)[4], "  and 13 more");
    assert_eq!(shown(&statistics, 0, 80).len(), 3);
    assert_eq!(shown(&statistics, 40, 200).len(), 10);
}

#[test]
fn the_area_says_what_the_run_waits_for_until_a_job_starts() {
    let mut statistics = statistics(1, TWENTY);
    statistics.note(&Event::WantsTerminal { number: 1, pid: 1 });
    statistics.note(&Event::Waiting { need: Need::Memory });
    let lines = shown(&statistics, 20, 80);
    assert!(lines[1].contains("stopped: wants the terminal"), "{}", lines[1]);
    assert_eq!(lines[2], "  waiting for memory: less is available than --memfree asks for");
    statistics.note(&started(2, Vec::new()));
    assert_eq!(shown(&statistics, 20, 80).len(), 3);
}

#[test]
fn a_bar_grows_by_eighths() {
    for (done, expected) in [(0, "    "), (1, "▌   "), (2, "█   "), (7, "███▌"), (8, "████")]
    {
        assert_eq!(blocks(done, 8, 4), expected);
    }
    assert_eq!(blocks(0, 0, 2), "██");
}
