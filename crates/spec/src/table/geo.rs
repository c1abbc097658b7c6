//! Geospatial indexes.

use super::prelude::*;

pub(super) const ROWS: &[Row] = &[
    cmd("geoadd", -5, WRITE | DENYOOM)
        .args("key [NX | XX] [CH] longitude latitude member [longitude latitude member ...]")
        .doc("3.2.0", "Adds or moves members of a geospatial index.")
        .cost("O(M*log(N)), N is the number of members, M of those added")
        .keys(CHANGE_1)
        .effect(Convergent),
    cmd("geodist", -4, READONLY)
        .args("key member1 member2 [M | KM | FT | MI]")
        .doc("3.2.0", "Returns the distance between two members.")
        .keys(READ_1),
    cmd("geohash", -2, READONLY)
        .args("key [member [member ...]]")
        .doc("3.2.0", "Returns members' positions as geohash strings.")
        .cost("O(N), N is the number of members given")
        .keys(READ_1),
    cmd("geopos", -2, READONLY)
        .args("key [member [member ...]]")
        .doc("3.2.0", "Returns members' longitudes and latitudes.")
        .cost("O(N), N is the number of members given")
        .keys(READ_1),
    cmd("georadius", -6, WRITE | DENYOOM)
        .args(
            "key longitude latitude radius <M | KM | FT | MI> [WITHCOORD] [WITHDIST] [WITHHASH] \
             [COUNT count [ANY]] [ASC | DESC] [STORE key | STOREDIST key]",
        )
        .doc("3.2.0", "Finds the members within a circle, and can store them.")
        .cost("O(N+log(M)), N is the number of members in the searched area, M of all members")
        .keys(&[
            key(1, RO | ACCESS),
            after("STORE", 6, 0, 0, OW | UPDATE),
            after("STOREDIST", 6, 0, 0, OW | UPDATE),
        ])
        .effect(NonIdempotent)
        .deprecated("6.2.0", "`GEOSEARCH` and `GEOSEARCHSTORE` with the `BYRADIUS` argument"),
    cmd("georadius_ro", -6, READONLY)
        .args(
            "key longitude latitude radius <M | KM | FT | MI> [WITHCOORD] [WITHDIST] [WITHHASH] \
             [COUNT count [ANY]] [ASC | DESC]",
        )
        .doc("3.2.10", "Finds the members within a circle.")
        .cost("O(N+log(M)), N is the number of members in the searched area, M of all members")
        .keys(READ_1)
        .deprecated("6.2.0", "`GEOSEARCH` with the `BYRADIUS` argument"),
    cmd("georadiusbymember", -5, WRITE | DENYOOM)
        .args(
            "key member radius <M | KM | FT | MI> [WITHCOORD] [WITHDIST] [WITHHASH] [COUNT count \
             [ANY]] [ASC | DESC] [STORE key | STOREDIST key]",
        )
        .doc("3.2.0", "Finds the members within a circle around another member, and can store them.")
        .cost("O(N+log(M)), N is the number of members in the searched area, M of all members")
        .keys(&[
            key(1, RO | ACCESS),
            after("STORE", 5, 0, 0, OW | UPDATE),
            after("STOREDIST", 5, 0, 0, OW | UPDATE),
        ])
        .effect(NonIdempotent)
        .deprecated(
            "6.2.0",
            "`GEOSEARCH` and `GEOSEARCHSTORE` with the `BYRADIUS` and `FROMMEMBER` arguments",
        ),
    cmd("georadiusbymember_ro", -5, READONLY)
        .args(
            "key member radius <M | KM | FT | MI> [WITHCOORD] [WITHDIST] [WITHHASH] [COUNT count \
             [ANY]] [ASC | DESC]",
        )
        .doc("3.2.10", "Finds the members within a circle around another member.")
        .cost("O(N+log(M)), N is the number of members in the searched area, M of all members")
        .keys(READ_1)
        .deprecated("6.2.0", "`GEOSEARCH` with the `BYRADIUS` and `FROMMEMBER` arguments"),
    cmd("geosearch", -7, READONLY)
        .args(
            "key [FROMMEMBER member | FROMLONLAT longitude latitude] <BYRADIUS radius <M | KM | FT \
             | MI> | BYBOX width height <M | KM | FT | MI> | BYPOLYGON count longitude latitude \
             [longitude latitude ...]> [ASC | DESC] [COUNT count [ANY]] \
             [WITHCOORD] [WITHDIST] [WITHHASH]",
        )
        .doc("6.2.0", "Finds the members within a circle, a box or a polygon.")
        .cost("O(N+log(M)), N is the number of members in the searched area, M of all members")
        .keys(READ_1),
    cmd("geosearchstore", -8, WRITE | DENYOOM)
        .args(
            "destination source [FROMMEMBER member | FROMLONLAT longitude latitude] <BYRADIUS radius \
             <M | KM | FT | MI> | BYBOX width height <M | KM | FT | MI> | BYPOLYGON count longitude \
             latitude [longitude latitude ...]> [ASC | DESC] [COUNT count \
             [ANY]] [STOREDIST]",
        )
        .doc("6.2.0", "Stores the members within a circle, a box or a polygon in another key.")
        .cost("O(N+log(M)), N is the number of members in the searched area, M of all members")
        .keys(&[key(1, OW | UPDATE), key(2, RO | ACCESS)])
        .effect(NonIdempotent),
];
