//! Numbers that look random and always come out the same: `SplitMix64`.

/// The odd number nearest to 2⁶⁴ divided by the golden ratio.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// Mixes the bits of a number, so that numbers which differ by little have little in common.
///
/// This is a step of the `SplitMix64` generator (Steele, Lea, Flood 2014). It maps no two numbers
/// to the same one. Everybody who knows the result can compute the input, so it keeps no secret.
///
/// ```
/// assert_eq!(brigade_base::mix64(0), 0xe220_a839_7b1d_cdaf);
/// ```
#[must_use]
pub const fn mix64(bits: u64) -> u64 {
    // Keeps 0 from the fixed point 0.
    let bits = bits.wrapping_add(GOLDEN);
    let bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// The `SplitMix64` generator: the same seed gives the same numbers on every machine.
#[derive(Debug, Clone)]
pub struct SplitMix64 {
    state: u64,
}

impl SplitMix64 {
    /// Creates the generator for `seed`.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// Returns the next number.
    pub const fn number(&mut self) -> u64 {
        let number = mix64(self.state);
        self.state = self.state.wrapping_add(GOLDEN);
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_those_of_splitmix64() {
        let mut random = SplitMix64::new(1_234_567);
        let numbers = [(); 3].map(|()| random.number());
        // From the reference implementation in C (Vigna 2015).
        assert_eq!(
            numbers,
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }
}
