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

/// Returns the lowest limit of the process's groups and their ancestors, below the folder `root`.
fn control_group_limit(root: &Path) -> Option<u64> {
    let groups = fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    groups.lines().filter_map(|line| limit_of(root, line)).min()
}

/// Returns the lowest limit of a group, a line `id:controllers:/path` of the process's list, and of
/// its ancestors. In a container, the path may not exist, but the mount point shows the group.
fn limit_of(root: &Path, line: &str) -> Option<u64> {
    let mut fields = line.splitn(3, ':').skip(1);
    let (mount, file) = match fields.next()? {
        "" => ("sys/fs/cgroup", "memory.max"),
        all if all.split(',').any(|one| one == "memory") => {
            ("sys/fs/cgroup/memory", "memory.limit_in_bytes")
        }
        _ => return None,
    };
    let mount = root.join(mount);
    let group = mount.join(fields.next()?.trim_start_matches('/'));
    // Without a limit, the file says "max" or a number above all memory.
    let limit = |group: &Path| fs::read_to_string(group.join(file)).ok()?.trim().parse().ok();
    group.ancestors().take_while(|group| group.starts_with(&mount)).filter_map(limit).min()
}

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
    fn a_process_may_use_memory() {
        assert!((1 << 20..1 << 50).contains(&memory_limit()));
    }
}
