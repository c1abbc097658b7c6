//! Tests of adding, reading and measuring positions.
//!
//! The replies are those of Redis 7.2.

use crate::testing::Server;

#[test]
fn positions_are_added_and_read() {
    let mut server = Server::new();
    for (line, reply) in [
        ("GEOADD g 13.361389 38.115556 Palermo 15.087269 37.502669 Catania", ":2"),
        ("GEOADD g 13.361389 38.115556 Palermo", ":0"),
        ("GEOADD g CH 13.361390 38.115557 Palermo", ":0"),
        ("GEOADD g NX 1 1 Palermo 2 2 two", ":1"),
        ("GEOADD g XX CH 2 3 two", ":1"),
        ("GEOADD g XX 1 1 nope", ":0"),
        (
            "GEOPOS g Palermo Catania nope two",
            "*4 *2 $20 13.36138933897018433 $20 38.11555639549629859 *2 $20 15.08726745843887329 $20 37.50266842333162032 *-1 *2 $19 2.00000256299972534 $19 3.00000091215010656",
        ),
        ("GEOPOS g", "*0"),
        ("GEOPOS nokey a b", "*2 *-1 *-1"),
        ("GEOHASH g Palermo nope Catania", "*3 $11 sqc8b49rny0 $-1 $11 sqdtr74hyu0"),
        ("GEOHASH g", "*0"),
        ("GEOHASH nokey a", "*1 $-1"),
    ] {
        assert_eq!(server.line(line), reply, "{line}");
    }
}

#[test]
fn distances_are_in_the_unit() {
    let mut server = Server::new();
    for (line, reply) in [
        ("GEOADD g 13.361389 38.115556 Palermo 15.087269 37.502669 Catania", ":2"),
        ("GEODIST g Palermo Catania", "$11 166274.1516"),
        ("GEODIST g Palermo Catania km", "$8 166.2742"),
        ("GEODIST g Palermo Catania MI", "$8 103.3182"),
        ("GEODIST g Palermo Catania ft", "$11 545518.8700"),
        ("GEODIST g Palermo Palermo", "$6 0.0000"),
        ("GEODIST g Palermo nope", "$-1"),
        ("GEODIST nokey a b", "$-1"),
        ("GEODIST g Palermo Catania foo", "-ERR unsupported unit provided. please use M, KM, FT, MI"),
        ("GEODIST g Palermo Catania m foo", "-ERR syntax error"),
        ("GEODIST nokey a b foo", "-ERR unsupported unit provided. please use M, KM, FT, MI"),
    ] {
        assert_eq!(server.line(line), reply, "{line}");
    }
}

#[test]
fn coordinates_are_doubles_in_resp3() {
    let mut server = Server::new().resp3();
    for (line, reply) in [
        ("GEOADD g 13.361389 38.115556 Palermo 15.087269 37.502669 Catania", ":2"),
        ("GEOPOS g Palermo nope", "*2 *2 ,13.36138933897018433 ,38.11555639549629859 _"),
        ("GEODIST g Palermo Catania", "$11 166274.1516"),
        ("GEODIST g Palermo nope", "_"),
        ("GEOHASH g Palermo nope", "*2 $11 sqc8b49rny0 _"),
    ] {
        assert_eq!(server.line(line), reply, "{line}");
    }
}

#[test]
fn wrong_positions_are_refused() {
    let mut server = Server::new();
    for (line, reply) in [
        ("GEOADD g NX XX 2 3 two", "-ERR syntax error"),
        ("GEOADD g NX XX CH", "-ERR syntax error"),
        ("GEOADD g NX CH NX", "-ERR syntax error"),
        ("GEOADD g 1 2 a 3", "-ERR syntax error"),
        ("GEOADD g x 2 a", "-ERR value is not a valid float"),
        ("GEOADD g 1 x a", "-ERR value is not a valid float"),
        ("GEOADD g 181 2 a", "-ERR invalid longitude,latitude pair 181.000000,2.000000"),
        ("GEOADD g 1 86 a", "-ERR invalid longitude,latitude pair 1.000000,86.000000"),
        ("GEOADD g inf 86.123456789 a", "-ERR invalid longitude,latitude pair inf,86.123457"),
        ("GEOADD g GT 1 1 a", "-ERR syntax error"),
        ("EXISTS g", ":0"),
        ("SET s x", "+OK"),
        ("GEOADD s 1 1 a", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("GEODIST s a b", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("GEOHASH s a", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("GEOPOS s a", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("GEOADD g 180 85.05112878 corner -180 -85.05112878 opposite", ":2"),
    ] {
        assert_eq!(server.line(line), reply, "{line}");
    }
}

#[test]
fn adding_is_notified() {
    let mut server = Server::new();
    for (line, events) in
        [("GEOADD g 13.361389 38.115556 Palermo", "zadd g"), ("GEOADD g 13.361389 38.115556 Palermo", "")]
    {
        assert_eq!(server.events(line).join(", "), events, "{line}");
    }
}
