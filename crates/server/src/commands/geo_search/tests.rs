//! Tests of searching positions.
//!
//! The replies are those of Redis 7.2.

use crate::testing::Server;

#[test]
fn areas_are_circles_and_boxes() {
    let mut server = Server::new();
    for (line, reply) in [
        (
            "GEOADD g 13.361389 38.115556 Palermo 15.087269 37.502669 Catania 12.758489 38.788135 west 17.241510 38.788135 east",
            ":4",
        ),
        ("GEOSEARCH g FROMLONLAT 15 37 BYRADIUS 200 km ASC", "*2 $7 Catania $7 Palermo"),
        ("GEOSEARCH g FROMLONLAT 15 37 BYRADIUS 200 km DESC", "*2 $7 Palermo $7 Catania"),
        (
            "GEOSEARCH g FROMLONLAT 15 37 BYBOX 400 400 km ASC WITHDIST",
            "*4 *2 $7 Catania $7 56.4413 *2 $7 Palermo $8 190.4424 *2 $4 east $8 279.7403 *2 $4 west $8 279.7405",
        ),
        (
            "GEOSEARCH g FROMMEMBER Palermo BYRADIUS 200 km ASC WITHDIST",
            "*3 *2 $7 Palermo $6 0.0000 *2 $4 west $7 91.4007 *2 $7 Catania $8 166.2742",
        ),
        (
            "GEOSEARCH g FROMMEMBER Palermo BYBOX 400 400 mi ASC WITHDIST",
            "*3 *2 $7 Palermo $6 0.0000 *2 $4 west $7 56.7939 *2 $7 Catania $8 103.3182",
        ),
        (
            "GEOSEARCH g FROMLONLAT 15 37 BYRADIUS 200 km WITHHASH WITHCOORD WITHDIST ASC",
            "*2 *4 $7 Catania $7 56.4413 :3479447370796909 *2 $20 15.08726745843887329 $20 37.50266842333162032 *4 $7 Palermo $8 190.4424 :3479099956230698 *2 $20 13.36138933897018433 $20 38.11555639549629859",
        ),
        ("GEOSEARCH g FROMLONLAT 15 37 BYRADIUS 0 km", "*0"),
        ("GEOSEARCH g FROMLONLAT 15 37 BYRADIUS 30000 km ASC", "*4 $7 Catania $7 Palermo $4 east $4 west"),
        ("GEOSEARCH nokey FROMMEMBER nope BYBOX 400 400 mi ASC", "*0"),
    ] {
        assert_eq!(server.line(line), reply, "{line}");
    }
}

#[test]
fn a_count_takes_the_nearest_unless_any_will_do() {
    let mut server = Server::new();
    for (line, reply) in [
        (
            "GEOADD g 13.361389 38.115556 Palermo 15.087269 37.502669 Catania 13.583333 37.316667 Agrigento",
            ":3",
        ),
        ("GEOSEARCH g FROMLONLAT 15 37 BYRADIUS 200 km COUNT 1", "*1 $7 Catania"),
        ("GEOSEARCH g FROMLONLAT 15 37 BYRADIUS 200 km COUNT 2 DESC", "*2 $7 Palermo $9 Agrigento"),
        ("GEOSEARCH g FROMLONLAT 15 37 BYRADIUS 200 km COUNT 1 ANY", "*1 $9 Agrigento"),
        ("GEOSEARCH g FROMLONLAT 15 37 BYRADIUS 200 km COUNT 2 ANY ASC", "*2 $9 Agrigento $7 Palermo"),
        ("GEORADIUSBYMEMBER g Palermo 200 km COUNT 2", "*2 $7 Palermo $9 Agrigento"),
    ] {
        assert_eq!(server.line(line), reply, "{line}");
    }
}

#[test]
fn coordinates_are_doubles_in_resp3() {
    let mut server = Server::new().resp3();
    for (line, reply) in [
        ("GEOADD g 13.361389 38.115556 Palermo", ":1"),
        (
            "GEOSEARCH g FROMLONLAT 15 37 BYRADIUS 200 km WITHHASH WITHCOORD WITHDIST",
            "*1 *4 $7 Palermo $8 190.4424 :3479099956230698 *2 ,13.36138933897018433 ,38.11555639549629859",
        ),
        ("GEOSEARCH nokey FROMLONLAT 15 37 BYRADIUS 200 km WITHHASH WITHCOORD WITHDIST", "*0"),
    ] {
        assert_eq!(server.line(line), reply, "{line}");
    }
}

#[test]
fn wrong_arguments_of_searches() {
    let mut server = Server::new();
    for (line, reply) in [
        ("GEOADD g 13.361389 38.115556 Palermo", ":1"),
        ("GEOSEARCH g FROMLONLAT 15 37 BYRADIUS 200 km ANY", "-ERR the ANY argument requires COUNT argument"),
        ("GEOSEARCH g FROMLONLAT 15 37 BYRADIUS 200 km COUNT 0", "-ERR COUNT must be > 0"),
        (
            "GEOSEARCH g FROMLONLAT 15 37 BYRADIUS 200 km COUNT x",
            "-ERR value is not an integer or out of range",
        ),
        ("GEOSEARCH g FROMLONLAT 15 37 BYRADIUS 200 km COUNT", "-ERR syntax error"),
        ("GEOSEARCH g FROMMEMBER nope BYBOX 400 400 mi", "-ERR could not decode requested zset member"),
        (
            "GEOSEARCH nokey FROMMEMBER nope BYBOX 400 400 foo",
            "-ERR unsupported unit provided. please use M, KM, FT, MI",
        ),
        ("GEOSEARCH g FROMMEMBER Palermo FROMLONLAT 15 37 BYRADIUS 200 km", "-ERR syntax error"),
        ("GEOSEARCH g FROMLONLAT 15 37 FROMMEMBER Palermo BYRADIUS 200 km", "-ERR syntax error"),
        ("GEOSEARCH g FROMLONLAT 15 37 BYRADIUS 200 km BYBOX 1 1 km", "-ERR syntax error"),
        (
            "GEOSEARCH g FROMLONLAT 15 37 WITHDIST WITHHASH ASC",
            "-ERR exactly one of BYRADIUS and BYBOX can be specified for GEOSEARCH",
        ),
        (
            "geosearch g BYRADIUS 1 m WITHDIST WITHHASH ASC",
            "-ERR exactly one of FROMMEMBER or FROMLONLAT can be specified for geosearch",
        ),
        ("GEOSEARCH g FROMLONLAT 15 37 BYRADIUS x km", "-ERR need numeric radius"),
        ("GEOSEARCH g FROMLONLAT 15 37 BYRADIUS -1 foo", "-ERR radius cannot be negative"),
        (
            "GEOSEARCH g FROMLONLAT 15 37 BYRADIUS 1 foo",
            "-ERR unsupported unit provided. please use M, KM, FT, MI",
        ),
        ("GEOSEARCH g FROMLONLAT 15 37 BYBOX x 1 km", "-ERR need numeric width"),
        ("GEOSEARCH g FROMLONLAT 15 37 BYBOX 1 x km", "-ERR need numeric height"),
        ("GEOSEARCH g FROMLONLAT 15 37 BYBOX 1 -1 km", "-ERR height or width cannot be negative"),
        (
            "GEOSEARCH g FROMLONLAT 15 37 BYBOX 1 1 foo",
            "-ERR unsupported unit provided. please use M, KM, FT, MI",
        ),
        (
            "GEOSEARCH g FROMLONLAT 15 97 BYBOX 1 1 foo",
            "-ERR invalid longitude,latitude pair 15.000000,97.000000",
        ),
        ("GEOSEARCH g FROMLONLAT 15 37 BYRADIUS 200 km STORE d", "-ERR syntax error"),
        ("GEOSEARCH g FROMLONLAT 15 37 BYRADIUS 200 km STOREDIST", "-ERR syntax error"),
        (
            "GEOSEARCHSTORE d g FROMLONLAT 15 37 BYRADIUS 200 km WITHDIST",
            "-ERR GEOSEARCHSTORE is not compatible with WITHDIST, WITHHASH and WITHCOORD options",
        ),
        (
            "GEORADIUS g 15 37 200 km STORE d WITHDIST",
            "-ERR STORE option in GEORADIUS is not compatible with WITHDIST, WITHHASH and WITHCOORD options",
        ),
        ("GEORADIUS g 15 37 200 foo", "-ERR unsupported unit provided. please use M, KM, FT, MI"),
        ("GEORADIUS g 15 97 200 km", "-ERR invalid longitude,latitude pair 15.000000,97.000000"),
        ("GEORADIUS g 15 37 200 km FROMMEMBER Palermo", "-ERR syntax error"),
        ("GEORADIUS_RO g 15 37 200 km STORE d", "-ERR syntax error"),
        ("GEORADIUSBYMEMBER g nope 200 km", "-ERR could not decode requested zset member"),
        ("GEORADIUSBYMEMBER_RO g Palermo 200 km STORE d", "-ERR syntax error"),
        ("SET s x", "+OK"),
        (
            "GEOSEARCH s FROMLONLAT 15 37 BYRADIUS 200 km FOO",
            "-WRONGTYPE Operation against a key holding the wrong kind of value",
        ),
        (
            "GEORADIUSBYMEMBER s Palermo x km",
            "-WRONGTYPE Operation against a key holding the wrong kind of value",
        ),
    ] {
        assert_eq!(server.line(line), reply, "{line}");
    }
}

#[test]
fn older_commands_find_the_same() {
    let mut server = Server::new();
    for (line, reply) in [
        ("GEOADD g 13.361389 38.115556 Palermo 15.087269 37.502669 Catania", ":2"),
        ("GEORADIUS g 15 37 200 km WITHDIST ASC", "*2 *2 $7 Catania $7 56.4413 *2 $7 Palermo $8 190.4424"),
        ("GEORADIUS_RO g 15 37 200 km DESC", "*2 $7 Palermo $7 Catania"),
        (
            "GEORADIUSBYMEMBER g Palermo 200 km WITHDIST ASC",
            "*2 *2 $7 Palermo $6 0.0000 *2 $7 Catania $8 166.2742",
        ),
        ("GEORADIUSBYMEMBER_RO g Palermo 200 km ASC", "*2 $7 Palermo $7 Catania"),
        ("GEORADIUSBYMEMBER nokey nope 200 km", "*0"),
        ("GEORADIUSBYMEMBER nokey nope x foo", "*0"),
        ("GEORADIUS nokey 15 37 200 km", "*0"),
    ] {
        assert_eq!(server.line(line), reply, "{line}");
    }
}

#[test]
fn results_are_stored_as_positions_or_distances() {
    let mut server = Server::new();
    for (line, reply) in [
        ("GEOADD g 13.361389 38.115556 Palermo 15.087269 37.502669 Catania", ":2"),
        ("GEOSEARCHSTORE d g FROMLONLAT 15 37 BYRADIUS 200 km", ":2"),
        ("ZRANGE d 0 -1 WITHSCORES", "*4 $7 Palermo $16 3479099956230698 $7 Catania $16 3479447370796909"),
        ("GEOSEARCHSTORE d g FROMLONLAT 15 37 BYRADIUS 200 km STOREDIST COUNT 1", ":1"),
        ("ZRANGE d 0 -1", "*1 $7 Catania"),
        ("GEORADIUS g 15 37 200 km STORE d", ":2"),
        ("ZRANGE d 0 -1 WITHSCORES", "*4 $7 Palermo $16 3479099956230698 $7 Catania $16 3479447370796909"),
        ("GEORADIUSBYMEMBER g Palermo 1 km STOREDIST d", ":1"),
        ("ZRANGE d 0 -1 WITHSCORES", "*2 $7 Palermo $1 0"),
        ("GEOSEARCHSTORE d nokey FROMLONLAT 15 37 BYRADIUS 200 km", ":0"),
        ("EXISTS d", ":0"),
        ("SET s x", "+OK"),
        ("GEORADIUS nokey 15 37 200 km STORE s", ":0"),
        ("EXISTS s", ":0"),
    ] {
        assert_eq!(server.line(line), reply, "{line}");
    }
}

#[test]
fn the_last_destination_counts() {
    let mut server = Server::new();
    for (line, reply) in [
        ("GEOADD g 13.361389 38.115556 Palermo", ":1"),
        ("GEORADIUS g 15 37 200 km STORE", "-ERR syntax error"),
        ("GEORADIUS g 15 37 200 km STORE d1 STORE d2", ":1"),
        ("EXISTS d1", ":0"),
        ("EXISTS d2", ":1"),
        ("GEORADIUS g 15 37 200 km STOREDIST STORE", ":1"),
        ("EXISTS STORE", ":1"),
        ("GEORADIUS g 15 37 200 km COUNT STORE", "-ERR value is not an integer or out of range"),
        ("GEORADIUSBYMEMBER g STORE 200 km", "-ERR could not decode requested zset member"),
    ] {
        assert_eq!(server.line(line), reply, "{line}");
    }
}

#[test]
fn storing_is_notified() {
    let mut server = Server::new();
    for (line, events) in [
        ("GEOADD g 13.361389 38.115556 Palermo", "zadd g"),
        ("GEOSEARCHSTORE d g FROMLONLAT 15 37 BYRADIUS 200 km", "geosearchstore d"),
        ("GEOSEARCHSTORE d g FROMLONLAT 0 0 BYRADIUS 1 m", "del d"),
        ("GEOSEARCHSTORE d g FROMLONLAT 0 0 BYRADIUS 1 m", ""),
        ("GEORADIUS g 15 37 200 km STORE d", "georadiusstore d"),
        ("GEORADIUS nokey 15 37 200 km STORE d", "del d"),
    ] {
        assert_eq!(server.events(line).join(", "), events, "{line}");
    }
}

#[test]
fn polygons_have_their_own_centre() {
    let mut server = Server::new();
    server.line(
        "GEOADD g 13.361389 38.115556 Palermo 15.087269 37.502669 Catania 17.241510 38.788135 edge 14 38 mid",
    );
    let square = "BYPOLYGON 4 12 37 16 37 16 39 12 39";
    assert_eq!(server.line(&format!("GEOSEARCH g {square} ASC")), "*3 $3 mid $7 Palermo $7 Catania");
    assert_eq!(
        server.line(&format!("GEOSEARCH g {square} COUNT 1 DESC WITHDIST")),
        "*1 *2 $7 Catania $11 111411.0839"
    );
    assert_eq!(server.line(&format!("GEOSEARCHSTORE d g {square}")), ":3");
    assert_eq!(server.line(&format!("GEOSEARCH none {square}")), "*0");
    let too_few = "-ERR GEOSEARCH BYPOLYGON must have at least 3 vertices";
    for (area, reply) in [
        ("BYPOLYGON 2 13 37 16 37", too_few),
        ("BYPOLYGON 3 13 37 16 37 14.5", too_few),
        ("BYPOLYGON -1 13 37 16 37", too_few),
        ("BYPOLYGON x 13 37 16 37", "-ERR invalid number of vertices"),
        ("BYPOLYGON 4294967299 13 37 16 37 1 1", "-ERR invalid number of vertices"),
        ("BYPOLYGON 3 13 37 16 37 a 1", "-ERR value is not a valid float"),
        ("BYPOLYGON 3 13 37 16 37 14 90", "-ERR invalid longitude,latitude pair 14.000000,90.000000"),
        ("BYPOLYGON 3 13 37 16 37 14 40 BYRADIUS 1 km", "-ERR syntax error"),
        ("BYPOLYGON 3 13 37 16 37 14 40 FROMLONLAT 1 1", "-ERR syntax error"),
        ("FROMMEMBER mid BYPOLYGON 3 13 37 16 37 14 40", "-ERR syntax error"),
        ("BYBOX 1 1 km BYPOLYGON 3 13 37 16 37 14 40", "-ERR syntax error"),
    ] {
        assert_eq!(server.line(&format!("GEOSEARCH g {area}")), reply, "{area}");
    }
}
