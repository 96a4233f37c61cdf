//! Finds the cores on which other programs are running.
//!
//! The kernel adds up the load of a core since its start, so the present load needs two looks some
//! time apart, which would delay each run. A single look at all threads finds those that are
//! running now, and the cores that they run on. It is a guess. Jobs with a wrong one are no worse
//! off than those that get the first free cores.

use std::fs;
use std::path::Path;

use brigade::cores::CpuSet;

/// Returns the cores on which threads of other processes are running now.
pub(super) fn busy_cores() -> CpuSet {
    busy_in(Path::new("/proc"), std::process::id())
}

fn busy_in(processes: &Path, own: u32) -> CpuSet {
    let mut busy = CpuSet::new();
    for (pid, status) in statuses(processes).filter(|(pid, _)| *pid != own) {
        if status.threads <= 1 {
            busy.extend(status.core);
            continue;
        }
        let threads = processes.join(pid.to_string()).join("task");
        busy.extend(statuses(&threads).filter_map(|(_, status)| status.core));
    }
    busy
}

/// The state of a process or thread.
#[derive(Debug, PartialEq, Eq)]
struct Status {
    /// The core that it runs on, if it runs.
    core: Option<u32>,
    threads: u32,
}

/// Returns the ids and the states of the processes or threads in a folder. Some may end meanwhile.
fn statuses(folder: &Path) -> impl Iterator<Item = (u32, Status)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        let id = entry.file_name().to_str()?.parse().ok()?;
        Some((id, parse(&fs::read_to_string(entry.path().join("stat")).ok()?)?))
    })
}

/// Parses `/proc/PID/stat`. The name in parentheses may contain anything.
fn parse(stat: &str) -> Option<Status> {
    // The third field is the first one after the name.
    const STATE: usize = 3;
    const THREADS: usize = 20;
    const PROCESSOR: usize = 39;
    let (_, fields) = stat.rsplit_once(") ")?;
    let fields: Vec<&str> = fields.split(' ').take(PROCESSOR - STATE + 1).collect();
    let number = |field: usize| fields.get(field - STATE)?.parse().ok();
    let is_running = *fields.first()? == "R";
    Some(Status { core: number(PROCESSOR).filter(|_| is_running), threads: number(THREADS)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_running_thread_makes_its_core_busy() {
        let stat = |state: &str, threads: u32, core: u32| {
            let zeros = |count: usize| "0 ".repeat(count);
            format!("7 (a) R b) {state} {}{threads} {}{core} 0 0\n", zeros(16), zeros(18))
        };
        assert_eq!(parse(&stat("R", 1, 3)), Some(Status { core: Some(3), threads: 1 }));
        assert_eq!(parse(&stat("S", 2, 3)), Some(Status { core: None, threads: 2 }));
        assert_eq!(parse("7 (a"), None);
        let processes = tempfile::tempdir().expect("disk");
        let write = |path: &str, text: String| {
            let folder = processes.path().join(path);
            fs::create_dir_all(&folder).expect("disk");
            fs::write(folder.join("stat"), text).expect("disk");
        };
        write("1", stat("R", 1, 1));
        write("2", stat("S", 2, 2));
        write("2/task/2", stat("S", 2, 2));
        write("2/task/3", stat("R", 2, 4));
        write("5", stat("R", 1, 5));
        write("self", stat("R", 1, 6));
        assert_eq!(busy_in(processes.path(), 5).iter().collect::<Vec<_>>(), [1, 4]);
    }
}
