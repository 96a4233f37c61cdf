//! The system calls of Linux, their numbers on this processor, and what each level of a sandbox
//! answers: the table of `calls.txt`.

use std::sync::LazyLock;

/// A line of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line {
    /// The name of the call.
    pub name: &'static str,
    /// Its number; `None` if this processor does not have it.
    pub number: Option<u32>,
    /// The answers of the levels, from the most open one on.
    pub answers: [&'static str; 3],
}

static TABLE: LazyLock<Vec<Line>> = LazyLock::new(|| {
    let lines = include_str!("calls.txt").lines();
    lines.filter(|line| !line.starts_with('#')).filter_map(Line::parse).collect()
});

impl Line {
    fn parse(text: &'static str) -> Option<Self> {
        let mut words = text.split_whitespace();
        let (name, x86_64, others) = (words.next()?, words.next()?, words.next()?);
        let number = if cfg!(target_arch = "x86_64") { x86_64 } else { others };
        let answers = [words.next()?, words.next()?, words.next()?];
        Some(Self { name, number: number.parse().ok(), answers })
    }
}

/// Returns the table, in the order of the names.
pub fn table() -> &'static [Line] {
    &TABLE
}

/// Returns a call by its name.
pub fn named(name: &str) -> Option<&'static Line> {
    TABLE.binary_search_by(|line| line.name.cmp(name)).ok().map(|at| &TABLE[at])
}

/// Returns the name of a call by its number.
pub fn name_of(number: i64) -> Option<&'static str> {
    let is_it = |line: &&Line| line.number.is_some_and(|it| i64::from(it) == number);
    TABLE.iter().find(is_it).map(|line| line.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_is_in_order_and_has_a_number_of_its_own() {
        assert!(TABLE.is_sorted_by(|one, other| one.name < other.name));
        let lines = include_str!("calls.txt").lines().filter(|line| !line.starts_with('#'));
        assert_eq!(TABLE.len(), lines.count());
        for line in table() {
            assert_eq!(named(line.name), Some(line));
            if let Some(number) = line.number {
                assert_eq!(name_of(number.into()), Some(line.name));
            }
        }
        assert_eq!((name_of(-1), named("sockets")), (None, None));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_numbers_are_those_of_the_c_library() {
        for (name, number) in [
            ("read", libc::SYS_read),
            ("io_setup", libc::SYS_io_setup),
            ("fcntl", libc::SYS_fcntl),
            ("newfstatat", libc::SYS_newfstatat),
            ("kill", libc::SYS_kill),
            ("setresuid", libc::SYS_setresuid),
            ("socket", libc::SYS_socket),
            ("accept4", libc::SYS_accept4),
            ("wait4", libc::SYS_wait4),
            ("prlimit64", libc::SYS_prlimit64),
            ("rseq", libc::SYS_rseq),
            ("pidfd_send_signal", libc::SYS_pidfd_send_signal),
            ("set_mempolicy_home_node", libc::SYS_set_mempolicy_home_node),
        ] {
            assert_eq!(named(name).unwrap().number.map(i64::from), Some(number), "{name}");
        }
    }
}
