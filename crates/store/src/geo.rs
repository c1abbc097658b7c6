//! Geo positions as sorted set scores: 52-bit geohashes, distances, and the search of an area.
//!
//! Owns the encoding and the geometry, equal to Redis's to the last bit, so that sets move between servers and queries
//! answer alike. Does not own the set ([`crate::zset`]) nor the commands' arguments and replies.
//!
//! A score interleaves 26 bits of latitude (even bits) and of longitude (odd bits) within the limits of the web mercator
//! projection (EPSG:900913): see <https://redis.io/docs/latest/commands/geoadd/>.

mod search;

pub use search::{Search, Shape};

/// Largest longitude in degrees, either way.
pub const LONGITUDE_MAX: f64 = 180.0;
/// Largest latitude in degrees, either way: where the projection ends.
pub const LATITUDE_MAX: f64 = 85.051_128_78;
/// Length of the text that [`geohash`] gives.
pub const GEOHASH_BYTES: usize = 11;

/// Radius of the earth in metres that Redis uses.
const EARTH_RADIUS_M: f64 = 6_372_797.560_856;
/// Bits per axis of a score.
const STEP_MAX: u32 = 26;
/// Latitude limit of standard geohash texts.
const GEOHASH_LATITUDE_MAX: f64 = 90.0;

/// A place on the earth, in degrees.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Position {
    longitude: f64,
    latitude: f64,
}

impl Position {
    /// A position within the limits; `None` outside, or when a coordinate is not a number.
    #[must_use]
    pub fn new(longitude: f64, latitude: f64) -> Option<Self> {
        let is_valid = longitude.abs() <= LONGITUDE_MAX && latitude.abs() <= LATITUDE_MAX;
        is_valid.then_some(Self { longitude, latitude })
    }

    /// Degrees east.
    #[must_use]
    pub fn longitude(self) -> f64 {
        self.longitude
    }

    /// Degrees north.
    #[must_use]
    pub fn latitude(self) -> f64 {
        self.latitude
    }

    /// The score under which `GEOADD` stores the position.
    #[must_use]
    pub fn score(self) -> f64 {
        Cell::of(self, STEP_MAX, LATITUDE_MAX).bits() as f64
    }

    /// The position that a score stands for: the centre of its cell. Any score is accepted; what `GEOADD` did not write
    /// gives some position.
    #[must_use]
    pub fn of_score(score: f64) -> Self {
        let area = Cell::of_bits(score as u64, STEP_MAX).area();
        let centre = |(low, high): (f64, f64), max: f64| ((low + high) / 2.0).clamp(-max, max);
        Self {
            longitude: centre(area.longitude, LONGITUDE_MAX),
            latitude: centre(area.latitude, LATITUDE_MAX),
        }
    }

    /// Distance in metres along the surface of a sphere (haversine).
    #[must_use]
    pub fn distance_m(self, other: Self) -> f64 {
        let (from, to) = (self.latitude.to_radians(), other.latitude.to_radians());
        let half_latitude = ((to - from) / 2.0).sin();
        let half_longitude = ((other.longitude.to_radians() - self.longitude.to_radians()) / 2.0).sin();
        let haversine =
            half_latitude * half_latitude + from.cos() * to.cos() * half_longitude * half_longitude;
        2.0 * EARTH_RADIUS_M * haversine.sqrt().asin()
    }
}

/// The standard geohash text of a score, as `GEOHASH` answers. The last character is always `0`: a score has too few bits
/// for it.
#[must_use]
pub fn geohash(score: f64) -> [u8; GEOHASH_BYTES] {
    const ALPHABET: &[u8; 32] = b"0123456789bcdefghjkmnpqrstuvwxyz";
    let bits = Cell::of(Position::of_score(score), STEP_MAX, GEOHASH_LATITUDE_MAX).bits();
    std::array::from_fn(|index| match (STEP_MAX * 2).checked_sub((index as u32 + 1) * 5) {
        Some(shift) => ALPHABET[(bits >> shift) as usize & 31],
        None => ALPHABET[0],
    })
}

/// The text of a distance in any unit, as `GEODIST` and `WITHDIST` answer it: four decimals, of which a half is rounded to
/// even after scaling.
#[must_use]
pub fn distance_text(distance: f64) -> String {
    const DECIMALS_FACTOR: f64 = 10_000.0;
    let scaled = (distance * DECIMALS_FACTOR).round_ties_even() as u64;
    format!("{}.{:04}", scaled / DECIMALS_FACTOR as u64, scaled % DECIMALS_FACTOR as u64)
}

/// Units of distance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Unit {
    /// Metres.
    #[default]
    Metre,
    /// Kilometres.
    Kilometre,
    /// Feet.
    Foot,
    /// Miles.
    Mile,
}

impl Unit {
    /// Parses `m`, `km`, `ft` or `mi`, in any case.
    #[must_use]
    pub fn parse(name: &[u8]) -> Option<Self> {
        const NAMES: [(&[u8], Unit); 4] =
            [(b"m", Unit::Metre), (b"km", Unit::Kilometre), (b"ft", Unit::Foot), (b"mi", Unit::Mile)];
        NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, unit)| *unit)
    }

    /// How many metres one unit has.
    #[must_use]
    pub fn metres(self) -> f64 {
        match self {
            Self::Metre => 1.0,
            Self::Kilometre => 1000.0,
            Self::Foot => 0.3048,
            Self::Mile => 1609.34,
        }
    }
}

/// A cell of the grid that halves each axis `step` times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Cell {
    /// Column, counted from the west.
    x: u32,
    /// Row, counted from the south.
    y: u32,
    step: u32,
}

/// The degrees that a cell covers, as (low, high).
#[derive(Debug, Clone, Copy)]
struct Area {
    longitude: (f64, f64),
    latitude: (f64, f64),
}

impl Cell {
    /// The cell of a position. The upper limits themselves lie in a column or row behind the last, as in Redis.
    fn of(position: Position, step: u32, latitude_max: f64) -> Self {
        let cells = f64::from(1_u32 << step);
        let index = |value: f64, max: f64| ((value - -max) / (max - -max) * cells) as u32;
        Self { x: index(position.longitude, LONGITUDE_MAX), y: index(position.latitude, latitude_max), step }
    }

    fn of_bits(bits: u64, step: u32) -> Self {
        Self { x: gather(bits >> 1), y: gather(bits), step }
    }

    /// Rows in the even bits, columns in the odd ones.
    fn bits(self) -> u64 {
        spread(self.y) | spread(self.x) << 1
    }

    fn area(self) -> Area {
        let cells = (1_u64 << self.step) as f64;
        let span = |index: u32, max: f64| {
            let edge = |index: f64| -max + index / cells * (max - -max);
            (edge(f64::from(index)), edge(f64::from(index) + 1.0))
        };
        Area { longitude: span(self.x, LONGITUDE_MAX), latitude: span(self.y, LATITUDE_MAX) }
    }

    /// The cell so many columns east and rows north. The grid wraps around along an axis that moves; along one that does
    /// not, a position on the upper limit stays behind the last cell, as it does in its score.
    fn moved(self, east: i32, north: i32) -> Self {
        let mask = (1 << self.step) - 1;
        let shift = |index: u32, by: i32| if by == 0 { index } else { index.wrapping_add_signed(by) & mask };
        Self { x: shift(self.x, east), y: shift(self.y, north), step: self.step }
    }
}

/// Puts the bits of a word into the even bits of a word twice as wide.
fn spread(word: u32) -> u64 {
    const MASKS: [(u32, u64); 5] = [
        (16, 0x0000_ffff_0000_ffff),
        (8, 0x00ff_00ff_00ff_00ff),
        (4, 0x0f0f_0f0f_0f0f_0f0f),
        (2, 0x3333_3333_3333_3333),
        (1, 0x5555_5555_5555_5555),
    ];
    MASKS.iter().fold(u64::from(word), |bits, (shift, mask)| (bits | bits << shift) & mask)
}

/// Takes the even bits of a word.
fn gather(bits: u64) -> u32 {
    const MASKS: [(u32, u64); 5] = [
        (1, 0x3333_3333_3333_3333),
        (2, 0x0f0f_0f0f_0f0f_0f0f),
        (4, 0x00ff_00ff_00ff_00ff),
        (8, 0x0000_ffff_0000_ffff),
        (16, 0x0000_0000_ffff_ffff),
    ];
    MASKS.iter().fold(bits & 0x5555_5555_5555_5555, |bits, (shift, mask)| (bits | bits >> shift) & mask)
        as u32
}

#[cfg(test)]
mod tests;
