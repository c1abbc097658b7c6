//! Which scores an area may hold, and which of them it does.
//!
//! A search takes the grid step at which a cell is about as large as the area, so the area lies within the cell of its
//! centre and the eight around it. Each cell is one range of scores. What is found there is tested exactly. Steps and
//! the order of cells are Redis's, because without `ASC` or `DESC` a client sees the order and `COUNT ... ANY` depends on it.

use smallvec::SmallVec;

use super::{Area, Cell, EARTH_RADIUS_M, LATITUDE_MAX, Position, STEP_MAX};
use crate::zset::{ScoreBound, ScoreRange};

/// Half the circumference of the projected earth, in metres.
const MERCATOR_MAX_M: f64 = 20_037_726.37;
/// The centre and its eight neighbours.
const CELLS_MAX: usize = 9;
/// Columns east and rows north of the centre, in the order in which Redis visits the cells.
const OFFSETS: [(i32, i32); CELLS_MAX] =
    [(0, 0), (0, 1), (0, -1), (1, 0), (-1, 0), (1, 1), (-1, 1), (1, -1), (-1, -1)];

/// The form of the searched area around its centre, in metres.
#[derive(Debug, Clone, PartialEq)]
pub enum Shape {
    /// All positions up to a distance.
    Radius(f64),
    /// A box along the axes.
    Box {
        /// East to west.
        width_m: f64,
        /// North to south.
        height_m: f64,
    },
    /// All positions within the lines between these corners, in degrees; see [`Search::of_polygon`].
    Polygon(Vec<Position>),
}

/// A search of an area.
#[derive(Debug, Clone, PartialEq)]
pub struct Search {
    /// The centre.
    pub centre: Position,
    /// The area around it.
    pub shape: Shape,
}

impl Search {
    /// The search of a polygon, whose centre is the mean of its corners on the sphere. Lines are straight on a map in degrees,
    /// and none crosses the edge of the map.
    #[must_use]
    pub fn of_polygon(corners: Vec<Position>) -> Self {
        let (mut x, mut y, mut z) = (0.0, 0.0, 0.0);
        for corner in &corners {
            let (longitude, latitude) = (corner.longitude.to_radians(), corner.latitude.to_radians());
            x += latitude.cos() * longitude.cos();
            y += latitude.cos() * longitude.sin();
            z += latitude.sin();
        }
        let (longitude, latitude) = (y.atan2(x).to_degrees(), z.atan2(x.hypot(y)).to_degrees());
        Self { centre: Position { longitude, latitude }, shape: Shape::Polygon(corners) }
    }

    /// The distance in metres from the centre, if `position` lies within the area.
    #[must_use]
    pub fn distance_m(&self, position: Position) -> Option<f64> {
        let distance_m = self.centre.distance_m(position);
        match &self.shape {
            Shape::Radius(radius_m) => (distance_m <= *radius_m).then_some(distance_m),
            Shape::Polygon(corners) => is_within(corners, position).then_some(distance_m),
            Shape::Box { width_m, height_m } => {
                let east = position.distance_m(Position { longitude: self.centre.longitude, ..position });
                let north = position.distance_m(Position { latitude: self.centre.latitude, ..position });
                (east <= width_m / 2.0 && north <= height_m / 2.0).then_some(distance_m)
            }
        }
    }

    /// The ranges of scores that hold all positions of the area, at most nine, in the order in which to visit them.
    /// Positions outside the area may lie in them: [`Self::distance_m`] decides.
    #[must_use]
    pub fn score_ranges(&self) -> SmallVec<[ScoreRange; CELLS_MAX]> {
        let bounds = self.bounds();
        let mut step = self.estimated_step();
        if step > 1 && !self.is_covered(step, &bounds) {
            step -= 1;
        }
        let centre = Cell::of(self.centre, step, LATITUDE_MAX);
        let area = centre.area();
        let mut ranges = SmallVec::new();
        let mut last = None;
        for (east, north) in OFFSETS {
            // From four cells per axis on, a neighbour on a side where the area ends within the centre holds nothing.
            let is_useless = step >= 2
                && ((north < 0 && area.latitude.0 < bounds.latitude.0)
                    || (north > 0 && area.latitude.1 > bounds.latitude.1)
                    || (east < 0 && area.longitude.0 < bounds.longitude.0)
                    || (east > 0 && area.longitude.1 > bounds.longitude.1));
            let cell = centre.moved(east, north);
            // With two cells per axis both neighbours are the same cell.
            if is_useless || last == Some(cell) {
                continue;
            }
            let shift = (STEP_MAX - step) * 2;
            ranges.push(ScoreRange {
                min: ScoreBound::Included((cell.bits() << shift) as f64),
                max: ScoreBound::Excluded(((cell.bits() + 1) << shift) as f64),
            });
            last = Some(cell);
        }
        ranges
    }

    /// The degrees between which the area lies. They may leave the map.
    fn bounds(&self) -> Area {
        let (width_m, height_m) = match &self.shape {
            Shape::Radius(radius_m) => (*radius_m, *radius_m),
            Shape::Box { width_m, height_m } => (width_m / 2.0, height_m / 2.0),
            Shape::Polygon(corners) => return bounds_of(corners),
        };
        let Position { longitude, latitude } = self.centre;
        let north = (height_m / EARTH_RADIUS_M).to_degrees();
        // A metre is most degrees at the edge that is nearer to a pole.
        let nearest_pole = if latitude < 0.0 { latitude - north } else { latitude + north };
        let east = (width_m / EARTH_RADIUS_M / nearest_pole.to_radians().cos()).to_degrees();
        Area {
            longitude: (longitude - east, longitude + east),
            latitude: (latitude - north, latitude + north),
        }
    }

    /// The step at which a cell is about as large as the area.
    fn estimated_step(&self) -> u32 {
        let mut range_m = match &self.shape {
            Shape::Radius(radius_m) => *radius_m,
            Shape::Box { width_m, height_m } => (width_m / 2.0).hypot(height_m / 2.0),
            Shape::Polygon(corners) => self.farthest_m(&bounds_of(corners)),
        };
        if range_m == 0.0 {
            return STEP_MAX;
        }
        let mut step = 1;
        while range_m < MERCATOR_MAX_M && step < 64 {
            range_m *= 2.0;
            step += 1;
        }
        // Two less, so that the neighbours hold the area also when its centre is at a cell's edge; less near the poles,
        // where cells are narrow.
        step -= 2;
        let latitude = self.centre.latitude.abs();
        step -= i32::from(latitude > 66.0) + i32::from(latitude > 80.0);
        step.clamp(1, STEP_MAX as i32).cast_unsigned()
    }

    /// The distance of the corner of `bounds` that is farthest from the centre.
    fn farthest_m(&self, bounds: &Area) -> f64 {
        let (east, north) = (bounds.longitude, bounds.latitude);
        let corners = [(east.0, north.0), (east.0, north.1), (east.1, north.0), (east.1, north.1)];
        let distance = |(longitude, latitude)| self.centre.distance_m(Position { longitude, latitude });
        corners.into_iter().map(distance).fold(0.0, f64::max)
    }

    /// Whether the cells around the centre's reach as far as the area.
    fn is_covered(&self, step: u32, bounds: &Area) -> bool {
        let centre = Cell::of(self.centre, step, LATITUDE_MAX);
        let area = |east, north| centre.moved(east, north).area();
        area(0, 1).latitude.1 >= bounds.latitude.1
            && area(0, -1).latitude.0 <= bounds.latitude.0
            && area(1, 0).longitude.1 >= bounds.longitude.1
            && area(-1, 0).longitude.0 <= bounds.longitude.0
    }
}

/// The degrees between which corners lie.
fn bounds_of(corners: &[Position]) -> Area {
    let range = |axis: fn(&Position) -> f64| {
        let all = corners.iter().map(axis);
        (all.clone().fold(f64::INFINITY, f64::min), all.fold(f64::NEG_INFINITY, f64::max))
    };
    Area { longitude: range(|corner| corner.longitude), latitude: range(|corner| corner.latitude) }
}

/// Whether a line from the position to the east crosses the polygon's lines an odd number of times.
fn is_within(corners: &[Position], position: Position) -> bool {
    let mut is_within = false;
    let Some(mut from) = corners.last() else { return false };
    for to in corners {
        let spans = (from.latitude > position.latitude) != (to.latitude > position.latitude);
        if spans {
            let share = (position.latitude - from.latitude) / (to.latitude - from.latitude);
            let crossing = from.longitude + share * (to.longitude - from.longitude);
            is_within ^= position.longitude < crossing;
        }
        from = to;
    }
    is_within
}
