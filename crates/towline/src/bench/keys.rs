//! Key numbers: the distributions, and the digits.
//!
//! Owns which key number an operation uses and how it is written. Does not own where in a command the digits go:
//! that is `workload`.

use std::str::FromStr;

use towline_sansio::Prng;

/// Digits of a key number in redis-benchmark's key format (`key:%012d`).
pub(crate) const KEY_DIGITS: usize = 12;

/// Zipf exponent without an argument; the value that YCSB made customary.
const ZIPF_EXPONENT_DEFAULT: f64 = 0.99;

/// Largest accepted Zipf exponent; beyond it nearly every draw is the first key.
const ZIPF_EXPONENT_MAX: f64 = 10.0;

/// The generator of stream `stream` (one per connection) in the run with seed `seed`.
pub(crate) fn random_stream(seed: u64, stream: u64) -> Prng {
    let mut mixer = Prng::new(stream.wrapping_mul(0xD1B5_4A32_D192_ED03));
    Prng::new(seed ^ mixer.next_u64())
}

/// A number in `[0, 1)` with 53 random bits.
#[inline]
fn unit(random: &mut Prng) -> f64 {
    (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
}

/// How key numbers are drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Distribution {
    /// Every key is as likely as any other.
    Uniform,
    /// Key number k is drawn with a weight of `1 / (k + 1)^exponent`.
    Zipf(f64),
    /// The keys in order, again and again.
    Sequential,
}

impl FromStr for Distribution {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            None if text == "uniform" => Ok(Self::Uniform),
            None if text == "sequential" => Ok(Self::Sequential),
            None if text == "zipf" => Ok(Self::Zipf(ZIPF_EXPONENT_DEFAULT)),
            Some(("zipf", exponent)) => match exponent.parse::<f64>() {
                Ok(value) if value > 0.0 && value <= ZIPF_EXPONENT_MAX => Ok(Self::Zipf(value)),
                _ => Err(format!("the exponent of zipf must be above 0 and at most {ZIPF_EXPONENT_MAX}")),
            },
            _ => Err("use uniform, zipf, zipf:EXPONENT or sequential".to_owned()),
        }
    }
}

/// Draws key numbers in `0..range`.
#[derive(Debug)]
pub(crate) struct KeyPicker {
    range: u64,
    draw: Draw,
}

#[derive(Debug)]
enum Draw {
    Uniform,
    Zipf(Zipf),
    Sequential,
}

impl KeyPicker {
    /// A picker over `range` keys (at least one).
    pub(crate) fn new(distribution: Distribution, range: u64) -> Self {
        let range = range.max(1);
        let draw = match distribution {
            Distribution::Uniform => Draw::Uniform,
            Distribution::Sequential => Draw::Sequential,
            Distribution::Zipf(exponent) => Draw::Zipf(Zipf::new(range, exponent)),
        };
        Self { range, draw }
    }

    /// The key number for the place that is `position`-th in the whole run.
    #[inline]
    pub(crate) fn pick(&self, random: &mut Prng, position: u64) -> u64 {
        match &self.draw {
            Draw::Uniform => random.below(self.range),
            Draw::Sequential => position % self.range,
            Draw::Zipf(zipf) => zipf.pick(random),
        }
    }
}

/// Zipf by rejection-inversion (W. Hormann, G. Derflinger, 1996): constant time and memory for any range.
#[derive(Debug)]
struct Zipf {
    range: u64,
    exponent: f64,
    /// Integral of the weight up to the last key's upper edge.
    area_last: f64,
    /// The same up to the first key's upper edge, less the first key's weight.
    area_first: f64,
    /// Below this distance from the rounded value a draw is accepted without evaluating the integral.
    shortcut: f64,
}

impl Zipf {
    fn new(range: u64, exponent: f64) -> Self {
        let mut zipf = Self { range, exponent, area_last: 0.0, area_first: 0.0, shortcut: 0.0 };
        zipf.area_last = zipf.area(range as f64 + 0.5);
        zipf.area_first = zipf.area(1.5) - 1.0;
        zipf.shortcut = 2.0 - zipf.area_inverse(zipf.area(2.5) - zipf.weight(2.0));
        zipf
    }

    fn weight(&self, x: f64) -> f64 {
        x.powf(-self.exponent)
    }

    /// The integral of the weight from 1 to `x`.
    fn area(&self, x: f64) -> f64 {
        let power = 1.0 - self.exponent;
        let log = x.ln();
        // exp_m1 keeps the digits when the exponent is near one, where both sides of the quotient vanish.
        if (power * log).abs() < 1e-12 { log } else { (power * log).exp_m1() / power }
    }

    fn area_inverse(&self, area: f64) -> f64 {
        let power = 1.0 - self.exponent;
        let scaled = power * area;
        if scaled.abs() < 1e-12 { area.exp() } else { (scaled.max(-1.0).ln_1p() / power).exp() }
    }

    fn pick(&self, random: &mut Prng) -> u64 {
        loop {
            let area = self.area_last + unit(random) * (self.area_first - self.area_last);
            let x = self.area_inverse(area);
            let rank = x.round().clamp(1.0, self.range as f64);
            if rank - x <= self.shortcut || area >= self.area(rank + 0.5) - self.weight(rank) {
                return rank as u64 - 1;
            }
        }
    }
}

const DIGIT_PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[0; 2]; 100];
    let mut number = 0;
    while number < 100 {
        pairs[number] = [b'0' + (number / 10) as u8, b'0' + (number % 10) as u8];
        number += 1;
    }
    pairs
};

/// Fills `out` with the last `out.len()` decimal digits of `value`, zeros in front.
#[inline]
pub(crate) fn write_digits(out: &mut [u8], mut value: u64) {
    let mut pairs = out.rchunks_exact_mut(2);
    for pair in pairs.by_ref() {
        pair.copy_from_slice(&DIGIT_PAIRS[(value % 100) as usize]);
        value /= 100;
    }
    if let [first] = pairs.into_remainder() {
        *first = b'0' + (value % 10) as u8;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn digits_are_those_of_format(value in 0_u64..1_000_000_000_000, width in 1_usize..=12) {
            let mut out = vec![0; width];
            write_digits(&mut out, value);
            let all = format!("{value:012}");
            prop_assert_eq!(&out[..], &all.as_bytes()[12 - width..]);
        }

        #[test]
        fn every_distribution_stays_in_range(range in 1_u64..1_000_000, seed: u64, exponent in 0.01_f64..5.0) {
            for distribution in [Distribution::Uniform, Distribution::Sequential, Distribution::Zipf(exponent)] {
                let picker = KeyPicker::new(distribution, range);
                let mut random = random_stream(seed, 0);
                for position in 0..64 {
                    prop_assert!(picker.pick(&mut random, position) < range);
                }
            }
        }
    }

    #[test]
    fn sequential_visits_every_key_once_per_round() {
        let picker = KeyPicker::new(Distribution::Sequential, 7);
        let mut random = random_stream(1, 1);
        let mut seen: Vec<u64> = (7..14).map(|position| picker.pick(&mut random, position)).collect();
        seen.sort_unstable();
        assert_eq!(seen, [0, 1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn zipf_frequencies_follow_the_weights() {
        for exponent in [0.5, 0.99, 1.0, 1.5] {
            let picker = KeyPicker::new(Distribution::Zipf(exponent), 100);
            let mut random = random_stream(7, 0);
            let draws = 200_000;
            let mut counts = [0_u32; 100];
            for position in 0..draws {
                counts[picker.pick(&mut random, position) as usize] += 1;
            }
            let norm: f64 = (1..=100).map(|rank| f64::from(rank).powf(-exponent)).sum();
            for rank in [1_u32, 2, 5, 20, 100] {
                let expected = draws as f64 * f64::from(rank).powf(-exponent) / norm;
                let seen = f64::from(counts[rank as usize - 1]);
                let tolerance = 6.0 * expected.sqrt();
                assert!(
                    (seen - expected).abs() < tolerance,
                    "exponent {exponent} rank {rank}: {seen} of {expected}"
                );
            }
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_keys_and_streams_differ() {
        let draw = |seed, stream| {
            let mut random = random_stream(seed, stream);
            [random.next_u64(), random.next_u64()]
        };
        assert_eq!(draw(5, 3), draw(5, 3));
        assert_ne!(draw(5, 3), draw(5, 4));
        assert_ne!(draw(5, 3), draw(6, 3));
    }

    #[test]
    fn distributions_are_parsed() {
        assert_eq!("zipf:1.2".parse(), Ok(Distribution::Zipf(1.2)));
        assert_eq!("zipf".parse(), Ok(Distribution::Zipf(0.99)));
        assert!("zipf:-1".parse::<Distribution>().is_err());
        assert!("gauss".parse::<Distribution>().is_err());
    }
}
