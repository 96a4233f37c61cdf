//! The number of repetitions of random tests.

use std::ops::Div;

/// Returns an eighth of `count`, at least one, or all if the variable `BRIGADE_REPETITIONS` is
/// `all`, as it is in `cargo xtask ci`.
pub fn repetitions<N: Div<Output = N> + From<u8> + Ord>(count: N) -> N {
    let all = std::env::var_os("BRIGADE_REPETITIONS").is_some_and(|text| text == "all");
    if all { count } else { (count / N::from(8)).max(N::from(1)) }
}
