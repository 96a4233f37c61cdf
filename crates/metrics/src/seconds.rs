//! Durations as numbers of seconds, which is what readers of JSON and Prometheus expect.

use std::time::Duration;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serializer};

pub(crate) fn serialize<S: Serializer>(time: &Duration, out: S) -> Result<S::Ok, S::Error> {
    out.serialize_f64(time.as_secs_f64())
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    Duration::try_from_secs_f64(f64::deserialize(from)?).map_err(Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, serde::Serialize, Deserialize)]
    struct Time(#[serde(with = "super")] Duration);

    #[test]
    fn a_day_keeps_its_nanoseconds() {
        for nanos in [0, 1, 999_999_999, 86_400_000_000_001] {
            let time = Time(Duration::from_nanos(nanos));
            let text = serde_json::to_string(&time).unwrap();
            assert_eq!(serde_json::from_str::<Time>(&text).unwrap(), time, "{text}");
        }
    }

    #[test]
    fn a_number_that_is_no_duration_is_an_error() {
        for text in ["-1", "1e300"] {
            assert!(serde_json::from_str::<Time>(text).is_err(), "{text}");
        }
    }
}
