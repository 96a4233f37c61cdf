//! Control groups, in which the kernel limits the memory and the number of processes exactly, for a
//! process with everything that it starts (cgroups(7)).
//!
//! A group is a folder below that of this process, or beside it: with version 2, a group that has
//! processes may not have groups with limits below it. It is removed when it is dropped. If
//! processes are left in it they are killed, and a later group removes the folder, or another
//! process of ours if this one is gone.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use brigade_sys::process::{ForeignProcess, Signal};
use brigade_sys::sync::Mutex;

use crate::limits::Limits;

/// The folders in which this process may make groups.
#[derive(Debug, Clone, Default)]
pub struct Groups {
    memory: Option<Place>,
    processes: Option<Place>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    folder: PathBuf,
    version: Version,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

/// A control group of its own for a process, which enters it through its [doors](Self::doors).
#[derive(Debug)]
pub struct Group {
    memory: Option<(PathBuf, Version)>,
    processes: Option<PathBuf>,
}

/// All groups have this prefix, the id of the process that made them, and a number.
const PREFIX: &str = "brigade-";

static NEXT: AtomicU64 = AtomicU64::new(0);

/// Folders that could not be removed yet.
static LEFT: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

impl Groups {
    /// Finds the folders in which this process may make groups, and removes groups that processes
    /// of ours have left which are gone.
    pub fn find() -> Self {
        Self::find_below(Path::new("/"))
    }

    fn find_below(root: &Path) -> Self {
        let groups = fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
        let find = |controller| places(root, &groups, controller).into_iter().find(Place::works);
        Self { memory: find("memory"), processes: find("pids") }
    }

    /// Returns the means of a limit on memory; `None` if there is none.
    pub fn memory_means(&self) -> Option<&'static str> {
        self.memory.as_ref().map(|place| place.version.means())
    }

    /// Returns the means of a limit on processes; `None` if there is none.
    pub fn process_means(&self) -> Option<&'static str> {
        self.processes.as_ref().map(|place| place.version.means())
    }

    /// Makes a group that can have these limits, but has none yet. One for which there is no
    /// controller is left out.
    ///
    /// # Errors
    /// The error of the system.
    pub fn create(&self, limits: &Limits) -> io::Result<Group> {
        remove_left();
        let name =
            format!("{PREFIX}{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let mut group = Group { memory: None, processes: None };
        if let (Some(place), Some(_)) = (&self.memory, limits.memory_limit()) {
            group.memory = Some((make(&place.folder.join(&name))?, place.version));
        }
        if let (Some(place), Some(_)) = (&self.processes, limits.process_limit()) {
            let folder = place.folder.join(&name);
            if group.memory.as_ref().is_none_or(|(memory, _)| *memory != folder) {
                make(&folder)?;
            }
            group.processes = Some(folder);
        }
        Ok(group)
    }

    /// Returns `true` if these limits need a group, and there is a place for it.
    pub fn serve(&self, limits: &Limits) -> bool {
        let memory = limits.memory_limit().is_some() && self.memory.is_some();
        memory || limits.process_limit().is_some() && self.processes.is_some()
    }
}

impl Version {
    fn means(self) -> &'static str {
        match self {
            Self::One => "control group (version 1)",
            Self::Two => "control group (version 2)",
        }
    }
}

/// Returns the folders that may have groups with a controller, the best first.
fn places(root: &Path, groups: &str, controller: &str) -> Vec<Place> {
    let mut places = Vec::new();
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
        let path = path.trim_start_matches('/');
        if controllers.is_empty() {
            let mount = root.join("sys/fs/cgroup");
            let own = within(&mount, path);
            let has = |folder: &&Path| {
                let enabled = fs::read_to_string(folder.join("cgroup.subtree_control"));
                enabled.is_ok_and(|list| list.split_whitespace().any(|one| one == controller))
            };
            let near = own.ancestors().take(2).filter(|folder| folder.starts_with(&mount));
            let two = |folder: &Path| Place { folder: folder.to_owned(), version: Version::Two };
            places.extend(near.filter(has).map(two));
        } else if controllers.split(',').any(|one| one == controller) {
            let folder = within(&root.join("sys/fs/cgroup").join(controller), path);
            places.push(Place { folder, version: Version::One });
        }
    }
    places
}

/// Returns the folder of a group. In a container its path may not exist, but the mount point shows
/// the group.
fn within(mount: &Path, path: &str) -> PathBuf {
    let folder = mount.join(path);
    if folder.is_dir() { folder } else { mount.to_owned() }
}

impl Place {
    /// Returns `true` if this process may make groups there.
    fn works(&self) -> bool {
        self.remove_stale();
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let probe = self.folder.join(format!("{PREFIX}{}-{number}", std::process::id()));
        let works = fs::create_dir(&probe).is_ok() && probe.join("cgroup.procs").exists();
        let _ = fs::remove_dir(&probe);
        works
    }

    /// Removes the groups of processes that are gone. Those with processes cannot be removed.
    fn remove_stale(&self) {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        for entry in entries {
            let name = entry.file_name();
            let owner = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.split('-').next());
            let is_alive = |pid: &str| Path::new("/proc").join(pid).exists();
            if owner.is_some_and(|pid| pid.parse::<u32>().is_ok() && !is_alive(pid)) {
                let _ = fs::remove_dir(entry.path());
            }
        }
    }
}

impl Group {
    /// Returns the files to which a process with one thread writes a 0 to move itself into the
    /// group, with the processes that it starts from then on.
    ///
    /// With version 1 they move threads: the kernel waits for milliseconds before it moves another
    /// process, or one with all its threads.
    ///
    /// # Errors
    /// The error of the system.
    pub fn doors(&self) -> io::Result<Vec<fs::File>> {
        let open = |folder: &Path| {
            let tasks = folder.join("tasks");
            let file = if tasks.exists() { tasks } else { folder.join("cgroup.procs") };
            fs::OpenOptions::new().write(true).open(file)
        };
        self.folders().into_iter().map(open).collect()
    }

    /// Limits the processes and threads of the group.
    ///
    /// # Errors
    /// The error of the system.
    pub fn set_processes(&self, count: u64) -> io::Result<()> {
        let limit = |folder: &PathBuf| write(folder, "pids.max", &count.to_string());
        self.processes.as_ref().map_or(Ok(()), limit)
    }

    /// Limits the memory of the group.
    ///
    /// # Errors
    /// If the group has more than that and the kernel cannot take it back.
    pub fn set_memory(&self, bytes: u64) -> io::Result<()> {
        let Some((folder, version)) = &self.memory else { return Ok(()) };
        let text = bytes.to_string();
        match version {
            Version::One => {
                // The limit with swap must never be below the other one.
                let swap = "memory.memsw.limit_in_bytes";
                let has_swap = folder.join(swap).exists();
                if has_swap {
                    write(folder, swap, "-1")?;
                }
                write(folder, "memory.limit_in_bytes", &text)?;
                if has_swap { write(folder, swap, &text) } else { Ok(()) }
            }
            Version::Two => {
                // A system without swap has no such file.
                let _ = write(folder, "memory.swap.max", "0");
                let _ = write(folder, "memory.oom.group", "1");
                write(folder, "memory.max", &text)
            }
        }
    }

    /// Returns `true` if the group limits memory.
    pub fn limits_memory(&self) -> bool {
        self.memory.is_some()
    }

    /// Returns the bytes that the group uses now.
    pub fn memory_used(&self) -> Option<u64> {
        self.number("memory.usage_in_bytes", "memory.current")
    }

    /// Returns the most bytes that the group has used.
    pub fn most_memory_used(&self) -> Option<u64> {
        self.number("memory.max_usage_in_bytes", "memory.peak").or_else(|| self.memory_used())
    }

    /// Returns the number of processes that the kernel has killed because the limit was reached.
    pub fn killed_for_memory(&self) -> u64 {
        let Some((folder, version)) = &self.memory else { return 0 };
        let file = if *version == Version::One { "memory.oom_control" } else { "memory.events" };
        let text = fs::read_to_string(folder.join(file)).unwrap_or_default();
        let count = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
        count.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
    }

    fn number(&self, one: &str, two: &str) -> Option<u64> {
        let (folder, version) = self.memory.as_ref()?;
        let file = if *version == Version::One { one } else { two };
        fs::read_to_string(folder.join(file)).ok()?.trim().parse().ok()
    }

    fn folders(&self) -> Vec<&Path> {
        let memory = self.memory.as_ref().map(|(folder, _)| folder.as_path());
        let processes = self.processes.as_deref().filter(|folder| Some(*folder) != memory);
        memory.into_iter().chain(processes).collect()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for folder in self.folders() {
            if fs::remove_dir(folder).is_err() {
                kill_all(folder);
                LEFT.lock().push(folder.to_owned());
            }
        }
        remove_left();
    }
}

/// Kills the processes in a group.
fn kill_all(folder: &Path) {
    if write(folder, "cgroup.kill", "1").is_ok() {
        return;
    }
    let processes = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
    for pid in processes.lines().filter_map(|line| line.parse().ok()) {
        // It is one of ours: the kernel has just said that it is in the group.
        let _ = ForeignProcess::open(pid).and_then(|process| process.signal(Signal::Kill));
    }
}

/// Removes folders that could not be removed earlier.
fn remove_left() {
    let mut left = LEFT.lock();
    left.retain(|folder| fs::remove_dir(folder).is_err() && folder.exists());
}

fn make(folder: &Path) -> io::Result<PathBuf> {
    fs::create_dir(folder)?;
    Ok(folder.to_owned())
}

fn write(folder: &Path, file: &str, text: &str) -> io::Result<()> {
    fs::OpenOptions::new().write(true).open(folder.join(file)).and_then(|mut file| {
        use io::Write as _;
        file.write_all(text.as_bytes())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn below(files: &[(&str, &str)], controller: &str) -> Vec<(String, Version)> {
        let root = tempfile::tempdir().unwrap();
        let mut groups = String::new();
        for (path, text) in files {
            if *path == "groups" {
                groups = (*text).to_owned();
                continue;
            }
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let found = places(root.path(), &groups, controller).into_iter();
        let relative = |folder: PathBuf| {
            folder.strip_prefix(root.path().join("sys/fs/cgroup")).unwrap().display().to_string()
        };
        found.map(|place| (relative(place.folder), place.version)).collect()
    }

    #[test]
    fn a_group_beside_our_own_is_found_where_ours_has_processes() {
        let found = below(
            &[
                ("groups", "0::/a/b\n"),
                ("sys/fs/cgroup/a/cgroup.subtree_control", "cpu memory pids\n"),
                ("sys/fs/cgroup/a/b/cgroup.subtree_control", "\n"),
            ],
            "memory",
        );
        assert_eq!(found, [("a".to_owned(), Version::Two)]);
    }

    #[test]
    fn version_1_has_a_hierarchy_for_each_controller() {
        let files = [
            ("groups", "8:pids:/\n4:cpu,memory:/x\n0::/\n"),
            ("sys/fs/cgroup/memory/x/tasks", ""),
            ("sys/fs/cgroup/pids/tasks", ""),
        ];
        assert_eq!(below(&files, "memory"), [("memory/x".to_owned(), Version::One)]);
        assert_eq!(below(&files, "pids"), [("pids".to_owned(), Version::One)]);
        assert_eq!(below(&[("groups", "nonsense\n::\n0::/..\n")], "memory"), []);
    }

    #[test]
    fn a_group_is_gone_when_it_is_dropped() {
        let groups = Groups::find();
        // Where nobody may make groups, there is nothing to leave behind.
        let Some(place) = groups.memory.clone() else { return };
        let group = groups.create(&Limits::new().memory(64 << 20)).unwrap();
        group.set_memory(64 << 20).unwrap();
        assert!(group.limits_memory() && group.killed_for_memory() == 0);
        let folder = group.folders()[0].to_owned();
        assert!(folder.starts_with(&place.folder) && folder.exists());
        let mut sleeper = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        write(&folder, "cgroup.procs", &sleeper.id().to_string()).unwrap();
        drop(group);
        assert!(!sleeper.wait().unwrap().success(), "killed with its group");
        remove_left();
        assert!(!folder.exists());
    }
}
