//! Reads the limits that control groups set for this process: cpus, memory nodes, processor time.
//!
//! Versions 1 and 2 may both be mounted, anywhere. A file of the process's own group may be missing
//! where a controller is not enabled; the nearest ancestor with the file decides then. In a cgroup
//! namespace, the paths of the process's group and of the mounted group are relative to the
//! namespace's root, and groups above the root have no names.

use super::files::Files;
use crate::cpu_set::CpuSet;
use crate::topology::CpuQuota;

/// The limits of this process.
#[derive(Default)]
pub(super) struct CgroupLimits {
    pub(super) cpus: Option<CpuSet>,
    /// NUMA nodes.
    pub(super) memory: Option<CpuSet>,
    pub(super) quota: Option<CpuQuota>,
}

pub(super) fn read(files: &mut Files<'_>) -> CgroupLimits {
    let membership = Membership::read(files);
    let mut limits = CgroupLimits::default();
    for hierarchy in hierarchies(files) {
        let groups = hierarchy.groups(files, &membership);
        let (cpus, memory) = hierarchy.kind.cpuset_files();
        limits.cpus = narrower(limits.cpus.take(), nearest(files, &groups, cpus));
        limits.memory = narrower(limits.memory.take(), nearest(files, &groups, memory));
        for group in &groups {
            let quota = hierarchy.kind.quota(files, group);
            let all = limits.quota.into_iter().chain(quota);
            limits.quota = all.min_by_key(|quota| quota.millicpus());
        }
    }
    limits
}

fn narrower(a: Option<CpuSet>, b: Option<CpuSet>) -> Option<CpuSet> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.intersection(&b)),
        (a, b) => a.or(b),
    }
}

/// Returns the first non-empty set, of the innermost group that has one.
fn nearest(files: &mut Files<'_>, groups: &[String], names: &[&str]) -> Option<CpuSet> {
    groups
        .iter()
        .flat_map(|group| names.iter().map(move |name| format!("{group}/{name}")))
        .find_map(|path| files.list(&path).filter(|set| !set.is_empty()))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    V2,
    /// Version 1, with the controllers that are relevant here.
    V1 {
        cpuset: bool,
        cpu: bool,
    },
    /// The predecessor of control groups, or version 1 mounted without prefixes.
    Cpuset,
}

impl Kind {
    /// Returns the files with the cpus and with the memory nodes, in order of precedence.
    fn cpuset_files(self) -> (&'static [&'static str], &'static [&'static str]) {
        match self {
            Self::V2 => (&["cpuset.cpus.effective"], &["cpuset.mems.effective"]),
            Self::V1 { cpuset: true, .. } => (
                &["cpuset.effective_cpus", "cpuset.cpus"],
                &["cpuset.effective_mems", "cpuset.mems"],
            ),
            Self::V1 { cpuset: false, .. } => (&[], &[]),
            Self::Cpuset => (&["effective_cpus", "cpus"], &["effective_mems", "mems"]),
        }
    }

    fn quota(self, files: &mut Files<'_>, group: &str) -> Option<CpuQuota> {
        let (quota, period) = match self {
            Self::V2 => {
                let text = files.text(&format!("{group}/cpu.max"))?;
                let (quota, period) = text.split_once(' ')?;
                // "max": no limit.
                (quota.parse().ok()?, period.parse().ok()?)
            }
            Self::V1 { cpu: true, .. } => {
                let quota = files.number(&format!("{group}/cpu.cfs_quota_us"))?;
                let period = files.number(&format!("{group}/cpu.cfs_period_us"))?;
                // -1: no limit.
                (u64::try_from(quota).ok()?, u64::try_from(period).ok()?)
            }
            Self::V1 { cpu: false, .. } | Self::Cpuset => return None,
        };
        (quota > 0 && period > 0).then_some(CpuQuota { quota_us: quota, period_us: period })
    }
}

/// A mounted hierarchy of groups.
struct Hierarchy {
    kind: Kind,
    /// The mount point relative to the root, without slashes at its ends.
    mount: String,
    /// The group that is mounted there; not `/` in containers.
    mounted: String,
}

impl Hierarchy {
    /// Returns the folders of the process's group and its ancestors, the innermost first.
    fn groups(&self, files: &mut Files<'_>, membership: &Membership) -> Vec<String> {
        let path = match self.kind {
            Kind::V2 => membership.v2.as_deref().or(membership.cpuset.as_deref()),
            Kind::V1 { cpuset: true, .. } | Kind::Cpuset => membership.cpuset.as_deref(),
            Kind::V1 { .. } => membership.cpu.as_deref(),
        };
        // A group outside the mount cannot be read; the mounted group is the nearest to it.
        let inside = path.and_then(|path| self.inside(files, path)).unwrap_or_default();
        let mut folder = format!("{}{}", self.mount, inside.trim_end_matches('/'));
        let mut groups = Vec::new();
        while folder.len() > self.mount.len() {
            groups.push(folder.clone());
            folder.truncate(folder.rfind('/').unwrap_or(0));
        }
        groups.push(self.mount.clone());
        groups
    }

    /// Returns a group's path below the mount; `None` if it is outside or not found.
    fn inside(&self, files: &mut Files<'_>, path: &str) -> Option<String> {
        let (up, path) = ascended(path);
        let (mounted_up, mounted) = ascended(&self.mounted);
        let inside = match mounted_up.checked_sub(up)? {
            0 => path.strip_prefix(mounted)?.to_owned(),
            unnamed if mounted.is_empty() => self.find(files, unnamed, path)?,
            _ => return None,
        };
        let below = inside.is_empty() || inside.starts_with('/');
        (below && !inside.contains("/..")).then_some(inside)
    }

    /// Finds the group that holds this process, `unnamed` levels and then `path` below the mount.
    fn find(&self, files: &mut Files<'_>, unnamed: usize, path: &str) -> Option<String> {
        let stat = files.text("proc/self/stat").unwrap_or_default();
        let process = stat.split(' ').next().unwrap_or_default();
        let mut groups = vec![String::new()];
        for _ in 0..unnamed {
            let mut inner = Vec::new();
            for group in &groups {
                let folder = format!("{}{group}", self.mount);
                let mut names = files.names(&folder);
                names.retain(|name| files.has_folder(&format!("{folder}/{name}")));
                inner.extend(names.into_iter().map(|name| format!("{group}/{name}")));
            }
            groups = inner;
            if groups.is_empty() || groups.len() > MAX_GROUPS {
                break;
            }
        }
        groups.truncate(MAX_GROUPS);
        let holds = |group: &String| {
            let processes = files.text(&format!("{}{group}{path}/cgroup.procs", self.mount));
            processes.is_some_and(|all| all.lines().any(|one| one == process))
        };
        let found = groups.into_iter().find(holds);
        if found.is_none() {
            let problem = "does not show the control group of this process; its limits are unknown";
            files.warn(&self.mount, problem);
        }
        Some(found? + path)
    }
}

/// Maximum number of groups that are searched for the process's own one.
const MAX_GROUPS: usize = 4_096;

/// Returns how many levels a path goes up from its root, and the rest of the path without a
/// trailing slash.
fn ascended(path: &str) -> (usize, &str) {
    let (mut up, mut rest) = (0, path.trim_end_matches('/'));
    while let Some(inner) =
        rest.strip_prefix("/..").filter(|inner| !inner.starts_with(|next| next != '/'))
    {
        (up, rest) = (up + 1, inner);
    }
    (up, rest)
}

/// The groups that this process belongs to.
#[derive(Default)]
struct Membership {
    v2: Option<String>,
    cpuset: Option<String>,
    cpu: Option<String>,
}

impl Membership {
    fn read(files: &mut Files<'_>) -> Self {
        let mut membership = Self::default();
        for line in files.text("proc/self/cgroup").unwrap_or_default().lines() {
            let mut fields = line.splitn(3, ':').skip(1);
            let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
            if controllers.is_empty() {
                membership.v2 = Some(path.to_owned());
            }
            for controller in controllers.split(',') {
                match controller {
                    "cpuset" => membership.cpuset = Some(path.to_owned()),
                    "cpu" => membership.cpu = Some(path.to_owned()),
                    _ => {}
                }
            }
        }
        // The file does not depend on the version: it holds the path in whichever hierarchy has
        // cpusets.
        if membership.cpuset.is_none() {
            membership.cpuset = files.text("proc/self/cpuset");
        }
        membership
    }
}

/// Returns the mounted hierarchies, or the usual mount points if none is listed.
fn hierarchies(files: &mut Files<'_>) -> Vec<Hierarchy> {
    let from_mountinfo = files.text("proc/self/mountinfo").map(|text| parse(&text, mountinfo));
    let mut found = from_mountinfo
        .or_else(|| files.text("proc/mounts").map(|text| parse(&text, mounts)))
        .unwrap_or_default();
    if found.is_empty() {
        let usual = [
            (Kind::V2, "sys/fs/cgroup"),
            (Kind::V1 { cpuset: true, cpu: false }, "sys/fs/cgroup/cpuset"),
            (Kind::V1 { cpuset: false, cpu: true }, "sys/fs/cgroup/cpu"),
            (Kind::Cpuset, "dev/cpuset"),
        ];
        found.extend(usual.map(|(kind, mount)| Hierarchy {
            kind,
            mount: mount.to_owned(),
            mounted: "/".to_owned(),
        }));
    }
    found
}

fn parse(text: &str, line: impl Fn(&str) -> Option<Hierarchy>) -> Vec<Hierarchy> {
    text.lines().filter_map(line).collect()
}

/// `36 35 98:0 /mounted /mount/point options optional... - type source options`
fn mountinfo(line: &str) -> Option<Hierarchy> {
    let (before, after) = line.split_once(" - ")?;
    let mut before = before.split(' ').skip(3);
    let (mounted, mount) = (before.next()?, before.next()?);
    let mut after = after.split(' ');
    let (kind, options) = (after.next()?, after.nth(1).unwrap_or(""));
    hierarchy(kind, options, mount, mounted)
}

/// `source /mount/point type options 0 0`
fn mounts(line: &str) -> Option<Hierarchy> {
    let mut fields = line.split(' ').skip(1);
    let (mount, kind, options) = (fields.next()?, fields.next()?, fields.next()?);
    hierarchy(kind, options, mount, "/")
}

fn hierarchy(kind: &str, options: &str, mount: &str, mounted: &str) -> Option<Hierarchy> {
    let option = |name: &str| options.split(',').any(|option| option == name);
    let kind = match kind {
        "cgroup2" => Kind::V2,
        "cgroup" if option("cpuset") && option("noprefix") => Kind::Cpuset,
        "cgroup" if option("cpuset") || option("cpu") => {
            Kind::V1 { cpuset: option("cpuset"), cpu: option("cpu") }
        }
        "cpuset" => Kind::Cpuset,
        _ => return None,
    };
    let unescaped = |path: &str| path.replace("\\040", " ").replace("\\134", "\\");
    let mount = unescaped(mount).trim_matches('/').to_owned();
    Some(Hierarchy { kind, mount, mounted: unescaped(mounted) })
}
