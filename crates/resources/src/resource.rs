use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::ResourceError;

/// How much there is of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Resource {
    /// A number of equal pieces, such as GPUs, which are numbered from 0. A task learns the numbers
    /// of those that it got. All of them together are at most 8,192.
    Indexed(u32),
    /// An amount that can be divided, such as bytes of memory or licenses.
    Sum(u64),
}

/// Maximum number of pieces of all resources. A task may get all of them, and their numbers must
/// fit into the head of a message.
pub(crate) const MOST_PIECES: u32 = 8192;

impl Resource {
    /// Returns the amount that there is in all.
    pub fn total(self) -> u64 {
        match self {
            Self::Indexed(pieces) => pieces.into(),
            Self::Sum(amount) => amount,
        }
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Indexed(pieces) => write!(out, "Indexed({pieces})"),
            Self::Sum(amount) => write!(out, "Sum({amount})"),
        }
    }
}

impl FromStr for Resource {
    type Err = ResourceError;

    /// Reads a count, such as `4`, as numbered pieces, and an amount with a unit, such as `16G`, as
    /// a sum. Units are powers of 1024: K, M, G and T. `B` is the unit of 1.
    fn from_str(text: &str) -> Result<Self, ResourceError> {
        let refused = || ResourceError::Text { text: text.to_owned() };
        if let Ok(pieces) = text.parse() {
            return Ok(Self::Indexed(pieces));
        }
        let (number, power) = [("B", 0), ("K", 10), ("M", 20), ("G", 30), ("T", 40)]
            .into_iter()
            .find_map(|(unit, power)| Some((text.strip_suffix(unit)?, power)))
            .ok_or_else(refused)?;
        let number: u64 = number.parse().map_err(|_| refused())?;
        number.checked_mul(1 << power).map(Self::Sum).ok_or_else(refused)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_makes_a_sum_of_a_count() {
        let read = |text: &str| text.parse::<Resource>().ok();
        assert_eq!(read("4"), Some(Resource::Indexed(4)));
        assert_eq!(read("16G"), Some(Resource::Sum(16 << 30)));
        assert_eq!(read("7B"), Some(Resource::Sum(7)));
        for text in ["", "G", "-1", "4.5G", "16GiB", "4g", "99999999999T", "99999999999"] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
