//! Finds how much memory this process may use.

use std::fs;
use std::path::Path;

use crate::arena::mapping::page_size;

/// Returns the memory of this machine, or the lowest limit that a control group sets for this
/// process, whichever is smaller, in bytes.
///
/// Control groups of both versions are found at their usual mount points (`/sys/fs/cgroup`,
/// cgroups(7)).
pub(crate) fn memory_limit() -> u64 {
    // SAFETY: it reads a number of the running system.
    let pages = unsafe { libc::sysconf(libc::_SC_PHYS_PAGES) };
    let machine = u64::try_from(pages).unwrap_or(0).saturating_mul(page_size() as u64);
    control_group_limit(Path::new("/")).map_or(machine, |limit| limit.min(machine))
}

/// Returns the bytes that the process's control groups and their ancestors leave: the least of all
/// limits without what their members use. Cached files do not count as used. `None` if there is no
/// limit.
pub fn control_groups_leave() -> Option<u64> {
    left_by_control_groups(Path::new("/"))
}

fn left_by_control_groups(root: &Path) -> Option<u64> {
    least(root, |group, controller| {
        let limit = number(group, controller.limit)?;
        let used = number(group, controller.usage)?;
        let statistics = fs::read_to_string(group.join("memory.stat")).unwrap_or_default();
        let cached = statistics.lines().find_map(|line| line.strip_prefix("inactive_file "));
        let cached = cached.and_then(|number| number.trim().parse().ok()).unwrap_or(0);
        Some(limit.saturating_sub(used.saturating_sub(cached)))
    })
}

/// Returns the lowest limit of the process's groups and their ancestors, below the folder `root`.
fn control_group_limit(root: &Path) -> Option<u64> {
    least(root, |group, controller| number(group, controller.limit))
}

/// Returns the number of processes of this process's control group that the kernel has killed
/// because memory ran out. `None` if there is no such group.
pub fn out_of_memory_kills() -> Option<u64> {
    killed_in_control_group(Path::new("/"))
}

fn killed_in_control_group(root: &Path) -> Option<u64> {
    let groups = fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    let killed = |group: &Path, controller: &Controller| {
        let events = fs::read_to_string(group.join(controller.events)).ok()?;
        let killed = events.lines().find_map(|line| line.strip_prefix("oom_kill "))?;
        killed.trim().parse().ok()
    };
    groups.lines().find_map(|line| values_of(root, line, killed)?.into_iter().next())
}

/// The controller of memory: its folder, and its files.
struct Controller {
    mount: &'static str,
    limit: &'static str,
    usage: &'static str,
    events: &'static str,
}

const VERSION_2: Controller = Controller {
    mount: "sys/fs/cgroup",
    limit: "memory.max",
    usage: "memory.current",
    events: "memory.events",
};
const VERSION_1: Controller = Controller {
    mount: "sys/fs/cgroup/memory",
    limit: "memory.limit_in_bytes",
    usage: "memory.usage_in_bytes",
    events: "memory.oom_control",
};

/// Returns the least value of the process's groups and their ancestors, below the folder `root`.
fn least(root: &Path, value: impl Fn(&Path, &Controller) -> Option<u64>) -> Option<u64> {
    let groups = fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    groups.lines().filter_map(|line| values_of(root, line, &value)?.into_iter().min()).min()
}

/// Returns the values of a group, a line `id:controllers:/path` of the process's list, and of its
/// ancestors. In a container, the path may not exist, but the mount point shows the group.
fn values_of(
    root: &Path,
    line: &str,
    value: impl Fn(&Path, &Controller) -> Option<u64>,
) -> Option<Vec<u64>> {
    let mut fields = line.splitn(3, ':').skip(1);
    let controller = match fields.next()? {
        "" => &VERSION_2,
        all if all.split(',').any(|one| one == "memory") => &VERSION_1,
        _ => return None,
    };
    let mount = root.join(controller.mount);
    let group = mount.join(fields.next()?.trim_start_matches('/'));
    let groups = group.ancestors().take_while(|group| group.starts_with(&mount));
    Some(groups.filter_map(|group| value(group, controller)).collect())
}

/// Reads a number. Without a limit, the file of the limit says "max" or a number above all memory.
fn number(group: &Path, file: &str) -> Option<u64> {
    fs::read_to_string(group.join(file)).ok()?.trim().parse().ok()
}

#[cfg(not(loom))]
#[cfg(test)]
mod tests {
    use super::*;

    /// The list of groups, files with their texts, and the limit.
    type Case = (&'static str, &'static [(&'static str, &'static str)], Option<u64>);

    #[test]
    fn the_lowest_limit_of_a_group_and_its_ancestors_counts() {
        let cases: [Case; 6] = [
            ("0::/a/b\n", &[("a/b/memory.max", "max"), ("a/memory.max", "4096\n")], Some(4096)),
            ("0::/a/b\n", &[("a/b/memory.max", "512"), ("a/memory.max", "4096\n")], Some(512)),
            ("0::/elsewhere\n", &[("memory.max", "1024\n")], Some(1024)),
            ("0::/\n", &[], None),
            (
                "4:cpu:/x\n3:hugetlb,memory:/x\n0::/\n",
                &[("memory/x/memory.limit_in_bytes", "8192\n")],
                Some(8192),
            ),
            ("nonsense\n\n::\n0::/..\n", &[("memory.max", "17 apples")], None),
        ];
        for (groups, files, limit) in cases {
            let root = tempfile::tempdir().unwrap();
            let write = |path: &str, text: &str| {
                let path = root.path().join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            };
            write("proc/self/cgroup", groups);
            for (path, text) in files {
                write(&format!("sys/fs/cgroup/{path}"), text);
            }
            assert_eq!(control_group_limit(root.path()), limit, "{groups}");
        }
    }

    #[test]
    fn a_control_group_leaves_its_limit_without_what_is_used() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        assert_eq!(left_by_control_groups(root.path()), None);
        write("proc/self/cgroup", "0::/a/b\n");
        write("sys/fs/cgroup/a/memory.max", "10000\n");
        write("sys/fs/cgroup/a/memory.current", "7000\n");
        write("sys/fs/cgroup/a/memory.stat", "anon 6000\ninactive_file 1000\n");
        write("sys/fs/cgroup/a/b/memory.max", "max\n");
        write("sys/fs/cgroup/a/b/memory.current", "7000\n");
        assert_eq!(left_by_control_groups(root.path()), Some(4000));
    }

    #[test]
    fn the_kills_of_the_nearest_group_count() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        assert_eq!(killed_in_control_group(root.path()), None);
        write("proc/self/cgroup", "4:cpu:/x\n0::/a/b\n");
        assert_eq!(killed_in_control_group(root.path()), None);
        write("sys/fs/cgroup/a/memory.events", "oom 9\noom_kill 7\noom_group_kill 0\n");
        assert_eq!(killed_in_control_group(root.path()), Some(7));
        write("sys/fs/cgroup/a/b/memory.events", "low 0\noom_kill 2\n");
        assert_eq!(killed_in_control_group(root.path()), Some(2));
        write("proc/self/cgroup", "5:memory:/c\n0::/\n");
        write("sys/fs/cgroup/memory/c/memory.oom_control", "under_oom 0\noom_kill 3\n");
        assert_eq!(killed_in_control_group(root.path()), Some(3));
    }

    #[test]
    fn a_process_may_use_memory() {
        assert!((1 << 20..1 << 50).contains(&memory_limit()));
    }
}
