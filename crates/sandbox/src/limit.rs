//! A limit that was exceeded, or what was used of a resource.

use std::fmt;
use std::time::Duration;

/// An amount of a resource: a limit, or what was used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Limit {
    /// Bytes of memory.
    Memory(u64),
    /// Processor time of all threads.
    CpuTime(Duration),
    /// Bytes of a file.
    FileSize(u64),
    /// Bytes of the stack of the thread that runs tasks.
    Stack(u64),
}

impl Limit {
    /// Returns the kind and the number, for another process.
    #[doc(hidden)]
    pub fn to_parts(self) -> (u8, u64) {
        match self {
            Self::Memory(bytes) => (0, bytes),
            Self::CpuTime(time) => (1, u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)),
            Self::FileSize(bytes) => (2, bytes),
            Self::Stack(bytes) => (3, bytes),
        }
    }

    /// Returns the limit with these parts; `None` for a kind that this version does not know.
    #[doc(hidden)]
    pub fn from_parts(kind: u8, number: u64) -> Option<Self> {
        Some(match kind {
            0 => Self::Memory(number),
            1 => Self::CpuTime(Duration::from_nanos(number)),
            2 => Self::FileSize(number),
            3 => Self::Stack(number),
            _ => return None,
        })
    }
}

/// In a part of a sentence, like `512 MiB of memory`.
impl fmt::Display for Limit {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Memory(bytes) => write!(out, "{} of memory", Bytes(bytes)),
            Self::CpuTime(time) => write!(out, "{time:.3?} of processor time"),
            Self::FileSize(bytes) => write!(out, "{} in a file", Bytes(bytes)),
            Self::Stack(bytes) => write!(out, "{} of stack", Bytes(bytes)),
        }
    }
}

/// A number of bytes, as people write it.
pub(crate) struct Bytes(pub(crate) u64);

impl fmt::Display for Bytes {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
        let largest = (1..=4).rev().find(|power| self.0 >= 1 << (10 * power));
        let Some(power) = largest else { return write!(out, "{} bytes", self.0) };
        let (unit, name) = (1_u64 << (10 * power), UNITS[power - 1]);
        let tenths = (u128::from(self.0) * 10 + u128::from(unit / 2)) / u128::from(unit);
        match tenths % 10 {
            0 => write!(out, "{} {name}", tenths / 10),
            rest => write!(out, "{}.{rest} {name}", tenths / 10),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_written_as_people_do() {
        for (limit, text) in [
            (Limit::Memory(512 << 20), "512 MiB of memory"),
            (Limit::Memory(3 << 29), "1.5 GiB of memory"),
            (Limit::Memory(17), "17 bytes of memory"),
            (Limit::Memory(u64::MAX), "16777216 TiB of memory"),
            (Limit::CpuTime(Duration::from_millis(1500)), "1.500s of processor time"),
            (Limit::FileSize(1 << 30), "1 GiB in a file"),
            (Limit::Stack(4096), "4 KiB of stack"),
        ] {
            assert_eq!(limit.to_string(), text);
            let (kind, number) = limit.to_parts();
            assert_eq!(Limit::from_parts(kind, number), Some(limit));
        }
        assert_eq!(Limit::from_parts(9, 1), None);
    }
}
