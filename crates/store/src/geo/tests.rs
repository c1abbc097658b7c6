use proptest::prelude::*;

use super::*;
use crate::limits::EncodingLimits;
use crate::zset::Zset;

/// Name, position, then score and geohash that Redis 7.0.15 answered.
#[rustfmt::skip]
const PLACES: &[(&str, f64, f64, f64, &[u8; 11])] = &[
    ("Palermo", 13.361389, 38.115556, 3479099956230698.0, b"sqc8b49rny0"),
    ("Catania", 15.087269, 37.502669, 3479447370796909.0, b"sqdtr74hyu0"),
    ("origin", 0.0, 0.0, 3377699720527872.0, b"s0000000000"),
    ("corner", 180.0, 85.05112878, 13510798882111488.0, b"bp05b5048p0"),
    ("low", -180.0, -85.05112878, 0.0, b"00bh0hbj200"),
    ("Sydney", 151.2093, -33.8688, 3252046221964352.0, b"r3gx2f77bj0"),
    ("Fiji", 179.9, -17.8, 3355412521426413.0, b"ruzftxx5mz0"),
    ("Samoa", -179.9, -13.8, 356587324633942.0, b"2j816rbc4j0"),
    ("Svalbard", 16.0, 78.2, 3757816406468565.0, b"umgku5fu500"),
    ("Paris", 2.3522, 48.8566, 3663832779122514.0, b"u09tvw0f640"),
];

fn place(name: &str) -> Position {
    let &(_, longitude, latitude, ..) =
        PLACES.iter().find(|place| place.0 == name).expect("a place of the table");
    Position::of_score(Position::new(longitude, latitude).expect("within the limits").score())
}

#[test]
fn scores_and_geohashes_equal_those_of_the_real_server() {
    for &(name, longitude, latitude, score, text) in PLACES {
        let position = Position::new(longitude, latitude).expect("within the limits");
        assert_eq!(position.score(), score, "{name}");
        assert_eq!(&geohash(score), text, "{name}");
    }
    for (longitude, latitude) in
        [(180.1, 0.0), (0.0, 85.06), (0.0, -85.06), (f64::NAN, 0.0), (0.0, f64::INFINITY)]
    {
        assert_eq!(Position::new(longitude, latitude), None);
    }
}

/// `GEODIST` of Redis 7.0.15, in metres and miles.
#[test]
fn distances_equal_those_of_the_real_server() {
    for (from, to, metres, miles) in [
        ("Palermo", "Catania", "166274.1516", "103.3182"),
        ("Paris", "Sydney", "16965282.9466", "10541.7643"),
        ("Fiji", "Samoa", "445419.5945", "276.7716"),
        ("low", "corner", "18919844.5891", "11756.2756"),
        ("origin", "origin", "0.0000", "0.0000"),
    ] {
        let distance_m = place(from).distance_m(place(to));
        assert_eq!(distance_text(distance_m), metres, "{from} to {to}");
        assert_eq!(distance_text(distance_m / Unit::Mile.metres()), miles, "{from} to {to}");
    }
    assert_eq!(Unit::parse(b"KM"), Some(Unit::Kilometre));
    assert_eq!(Unit::parse(b"ft"), Some(Unit::Foot));
    assert_eq!(Unit::parse(b"yd"), None);
}

/// What `GEOSEARCH` answers without an order.
fn found<'a>(set: &'a Zset, search: &Search) -> Vec<&'a [u8]> {
    let ranges = search.score_ranges();
    let entries = ranges.iter().flat_map(|range| set.range(set.ranks_by_score(range)));
    entries
        .filter(|(_, score)| search.distance_m(Position::of_score(*score)).is_some())
        .map(|(member, _)| member)
        .collect()
}

/// Members and their order as Redis 7.0.15 answered.
#[test]
fn searches_equal_those_of_the_real_server() {
    let mut grid = Zset::new();
    for column in -9..10 {
        for row in -8..9 {
            let position =
                Position::new(f64::from(column) * 20.0, f64::from(row) * 10.0).expect("within the limits");
            grid.insert(format!("{column}/{row}").as_bytes(), position.score(), &EncodingLimits::default());
        }
    }
    let radius = |radius_km: f64| Shape::Radius(radius_km * 1000.0);
    let rectangle =
        |width_km: f64, height_km: f64| Shape::Box { width_m: width_km * 1e3, height_m: height_km * 1e3 };
    for (longitude, latitude, shape, expected) in [
        (5.0, 5.0, radius(3000.0), "0/0 0/1 1/0 1/1 0/2 1/2 0/3 0/-2 0/-1 1/-1 -1/0 -1/1"),
        (175.0, -35.0, radius(2500.0), "8/-4 8/-3 8/-2 8/-5 -9/-4 -8/-4 -9/-3 -8/-3 -9/-2 -9/-5"),
        (5.0, 5.0, rectangle(4000.0, 2000.0), "0/0 0/1 1/0 1/1"),
        (
            -60.0,
            79.0,
            rectangle(3000.0, 3000.0),
            "-7/8 -6/8 -5/7 -5/8 -4/7 -4/8 -3/7 -3/8 -2/7 -2/8 -1/7 -1/8 0/8 1/8",
        ),
        (5.0, 5.0, radius(0.0), ""),
    ] {
        let search = Search { centre: Position::new(longitude, latitude).expect("within the limits"), shape };
        assert_eq!(String::from_utf8_lossy(&found(&grid, &search).join(b" ".as_slice())), expected);
    }
    // The whole earth: what lies on the limit of the map is behind the last cell and not found, as in Redis.
    let everything =
        Search { centre: Position::new(0.0, 0.0).expect("within the limits"), shape: radius(30_000.0) };
    assert_eq!(found(&grid, &everything).len(), 306);
}

#[test]
fn a_polygon_holds_what_lies_between_its_lines() {
    let at = |longitude, latitude| Position::new(longitude, latitude).expect("within the limits");
    let polygon = |corners: &[(f64, f64)]| {
        Search::of_polygon(corners.iter().map(|&(longitude, latitude)| at(longitude, latitude)).collect())
    };
    let square = polygon(&[(12.0, 37.0), (16.0, 37.0), (16.0, 39.0), (12.0, 39.0)]);
    // The mean of the corners on a sphere lies farther from the equator than that of their degrees.
    assert!((square.centre.longitude() - 14.0).abs() < 1e-9);
    assert!((square.centre.latitude() - 38.016_94).abs() < 1e-5, "{}", square.centre.latitude());
    let distance = |search: &Search, longitude, latitude| search.distance_m(at(longitude, latitude));
    assert!(distance(&square, 14.0, 38.0).is_some_and(|metres| (metres - 1884.0).abs() < 1.0));
    assert_eq!(distance(&square, 16.1, 38.0), None);
    // Two triangles that touch: the lines cross.
    let bow = polygon(&[(0.0, 0.0), (2.0, 0.0), (0.0, 2.0), (2.0, 2.0)]);
    for (longitude, latitude, is_within) in
        [(1.0, 0.5, true), (1.0, 1.5, true), (0.2, 1.0, false), (1.8, 1.0, false)]
    {
        assert_eq!(distance(&bow, longitude, latitude).is_some(), is_within, "{longitude} {latitude}");
    }
    // A line, and a point.
    for flat in [&[(0.0, 0.0), (1.0, 1.0), (2.0, 2.0)], &[(5.0, 5.0); 3]] {
        let search = polygon(flat);
        assert_eq!(distance(&search, 1.0, 1.5), None);
        assert!((1..=9).contains(&search.score_ranges().len()));
    }
    let whole = polygon(&[(-180.0, -85.0), (180.0, -85.0), (180.0, 85.0), (-180.0, 85.0)]);
    assert!((1..=9).contains(&whole.score_ranges().len()));
}

#[test]
fn extreme_searches_end() {
    for metres in [0.0, 5e-324, f64::MAX, f64::INFINITY] {
        for latitude in [0.0, LATITUDE_MAX, -LATITUDE_MAX] {
            let centre = Position::new(LONGITUDE_MAX, latitude).expect("within the limits");
            for shape in [Shape::Radius(metres), Shape::Box { width_m: metres, height_m: 1.0 }] {
                assert!((1..=9).contains(&Search { centre, shape }.score_ranges().len()));
            }
        }
    }
    for score in [f64::NEG_INFINITY, -1.0, f64::MAX, f64::INFINITY, f64::NAN] {
        let position = Position::of_score(score);
        assert!(Position::new(position.longitude(), position.latitude()).is_some());
        let _ = geohash(score);
    }
}

proptest! {
    #[test]
    fn a_score_stands_for_a_position_within_its_cell(longitude in -180.0..180.0, latitude in -85.05..85.05) {
        let position = Position::new(longitude, latitude).expect("within the limits");
        let decoded = Position::of_score(position.score());
        prop_assert!((decoded.longitude() - longitude).abs() <= 360.0 / f64::from(1 << 26));
        prop_assert!((decoded.latitude() - latitude).abs() <= 171.0 / f64::from(1 << 26));
        prop_assert_eq!(decoded.score(), position.score());
    }

    #[test]
    fn spreading_is_undone_by_gathering(word: u32, other: u32) {
        prop_assert_eq!(gather(spread(word) | spread(other) << 1), word);
        prop_assert_eq!(gather((spread(word) | spread(other) << 1) >> 1), other);
    }

    /// Away from the edges of the map the ranges miss nothing.
    #[test]
    fn a_search_finds_what_testing_all_finds(
        (longitude, latitude) in (-120.0..120.0, -60.0..60.0),
        size_exponent in 0.0..6.0_f64,
        ratio in 0.01..1.0_f64,
        is_box: bool,
        offsets in proptest::collection::vec((-2.0..2.0_f64, -2.0..2.0_f64), 1..60),
    ) {
        let size_m = 10_f64.powf(size_exponent);
        let shape = if is_box {
            Shape::Box { width_m: size_m * 2.0, height_m: size_m * 2.0 * ratio }
        } else {
            Shape::Radius(size_m)
        };
        let search = Search { centre: Position::new(longitude, latitude).expect("within the limits"), shape };
        let degree_m = 111_000.0;
        let mut set = Zset::new();
        for (index, (east, north)) in offsets.iter().enumerate() {
            let position = Position::new(longitude + east * size_m / degree_m, latitude + north * size_m / degree_m);
            let score = position.expect("within the limits").score();
            set.insert(index.to_string().as_bytes(), score, &EncodingLimits::default());
        }
        let is_inside = |score: f64| search.distance_m(Position::of_score(score)).is_some();
        let mut expected: Vec<_> = set.iter().filter(|entry| is_inside(entry.1)).map(|entry| entry.0).collect();
        let mut found = found(&set, &search);
        expected.sort_unstable();
        found.sort_unstable();
        prop_assert_eq!(found, expected);
    }
}
