//! Commands of the group `geo`.
//!
//! Written by `cargo xtask fix` from the command table; change crates/spec/src or xtask/src/commands.

use crate::args::ToArgs;
use crate::cmd::{Cmd, cmd};

/// Adds or moves members of a geospatial index.
///
/// `GEOADD key [NX | XX] [CH] longitude latitude member [longitude latitude member ...]`: O(M*log(N)), N is
/// the number of members, M of those added, since 3.2.0.
pub fn geoadd(key: impl ToArgs, longitude_latitude_members: impl ToArgs) -> Cmd {
    cmd("GEOADD").arg(key).arg(longitude_latitude_members)
}

/// Adds or moves members of a geospatial index. With options.
///
/// `GEOADD key [NX | XX] [CH] longitude latitude member [longitude latitude member ...]`: O(M*log(N)), N is
/// the number of members, M of those added, since 3.2.0.
pub fn geoadd_with(key: impl ToArgs, options: impl ToArgs, longitude_latitude_members: impl ToArgs) -> Cmd {
    cmd("GEOADD").arg(key).arg(options).arg(longitude_latitude_members)
}

/// Returns the distance between two members.
///
/// `GEODIST key member1 member2 [M | KM | FT | MI]`: O(1), since 3.2.0.
pub fn geodist(key: impl ToArgs, member1: impl ToArgs, member2: impl ToArgs) -> Cmd {
    cmd("GEODIST").arg(key).arg(member1).arg(member2)
}

/// Returns the distance between two members. With options.
///
/// `GEODIST key member1 member2 [M | KM | FT | MI]`: O(1), since 3.2.0.
pub fn geodist_with(
    key: impl ToArgs,
    member1: impl ToArgs,
    member2: impl ToArgs,
    options: impl ToArgs,
) -> Cmd {
    cmd("GEODIST").arg(key).arg(member1).arg(member2).arg(options)
}

/// Returns members' positions as geohash strings.
///
/// `GEOHASH key [member [member ...]]`: O(N), N is the number of members given, since 3.2.0.
pub fn geohash(key: impl ToArgs, members: impl ToArgs) -> Cmd {
    cmd("GEOHASH").arg(key).arg(members)
}

/// Returns members' longitudes and latitudes.
///
/// `GEOPOS key [member [member ...]]`: O(N), N is the number of members given, since 3.2.0.
pub fn geopos(key: impl ToArgs, members: impl ToArgs) -> Cmd {
    cmd("GEOPOS").arg(key).arg(members)
}

/// Finds the members within a circle, and can store them.
///
/// `GEORADIUS key longitude latitude radius <M | KM | FT | MI> [WITHCOORD] [WITHDIST] [WITHHASH] [COUNT
/// count [ANY]] [ASC | DESC] [STORE key | STOREDIST key]`: O(N+log(M)), N is the number of members in the
/// searched area, M of all members, since 3.2.0.
///
/// Old since 6.2.0: better `GEOSEARCH` and `GEOSEARCHSTORE` with the `BYRADIUS` argument.
pub fn georadius(
    key: impl ToArgs,
    longitude: impl ToArgs,
    latitude: impl ToArgs,
    radius: impl ToArgs,
    unit: impl ToArgs,
) -> Cmd {
    cmd("GEORADIUS").arg(key).arg(longitude).arg(latitude).arg(radius).arg(unit)
}

/// Finds the members within a circle, and can store them. With options.
///
/// `GEORADIUS key longitude latitude radius <M | KM | FT | MI> [WITHCOORD] [WITHDIST] [WITHHASH] [COUNT
/// count [ANY]] [ASC | DESC] [STORE key | STOREDIST key]`: O(N+log(M)), N is the number of members in the
/// searched area, M of all members, since 3.2.0.
///
/// Old since 6.2.0: better `GEOSEARCH` and `GEOSEARCHSTORE` with the `BYRADIUS` argument.
pub fn georadius_with(
    key: impl ToArgs,
    longitude: impl ToArgs,
    latitude: impl ToArgs,
    radius: impl ToArgs,
    unit: impl ToArgs,
    options: impl ToArgs,
) -> Cmd {
    cmd("GEORADIUS").arg(key).arg(longitude).arg(latitude).arg(radius).arg(unit).arg(options)
}

/// Finds the members within a circle.
///
/// `GEORADIUS_RO key longitude latitude radius <M | KM | FT | MI> [WITHCOORD] [WITHDIST] [WITHHASH] [COUNT
/// count [ANY]] [ASC | DESC]`: O(N+log(M)), N is the number of members in the searched area, M of all
/// members, since 3.2.10.
///
/// Old since 6.2.0: better `GEOSEARCH` with the `BYRADIUS` argument.
pub fn georadius_ro(
    key: impl ToArgs,
    longitude: impl ToArgs,
    latitude: impl ToArgs,
    radius: impl ToArgs,
    unit: impl ToArgs,
) -> Cmd {
    cmd("GEORADIUS_RO").arg(key).arg(longitude).arg(latitude).arg(radius).arg(unit)
}

/// Finds the members within a circle. With options.
///
/// `GEORADIUS_RO key longitude latitude radius <M | KM | FT | MI> [WITHCOORD] [WITHDIST] [WITHHASH] [COUNT
/// count [ANY]] [ASC | DESC]`: O(N+log(M)), N is the number of members in the searched area, M of all
/// members, since 3.2.10.
///
/// Old since 6.2.0: better `GEOSEARCH` with the `BYRADIUS` argument.
pub fn georadius_ro_with(
    key: impl ToArgs,
    longitude: impl ToArgs,
    latitude: impl ToArgs,
    radius: impl ToArgs,
    unit: impl ToArgs,
    options: impl ToArgs,
) -> Cmd {
    cmd("GEORADIUS_RO").arg(key).arg(longitude).arg(latitude).arg(radius).arg(unit).arg(options)
}

/// Finds the members within a circle around another member, and can store them.
///
/// `GEORADIUSBYMEMBER key member radius <M | KM | FT | MI> [WITHCOORD] [WITHDIST] [WITHHASH] [COUNT count
/// [ANY]] [ASC | DESC] [STORE key | STOREDIST key]`: O(N+log(M)), N is the number of members in the
/// searched area, M of all members, since 3.2.0.
///
/// Old since 6.2.0: better `GEOSEARCH` and `GEOSEARCHSTORE` with the `BYRADIUS` and `FROMMEMBER` arguments.
pub fn georadiusbymember(
    key: impl ToArgs,
    member: impl ToArgs,
    radius: impl ToArgs,
    unit: impl ToArgs,
) -> Cmd {
    cmd("GEORADIUSBYMEMBER").arg(key).arg(member).arg(radius).arg(unit)
}

/// Finds the members within a circle around another member, and can store them. With options.
///
/// `GEORADIUSBYMEMBER key member radius <M | KM | FT | MI> [WITHCOORD] [WITHDIST] [WITHHASH] [COUNT count
/// [ANY]] [ASC | DESC] [STORE key | STOREDIST key]`: O(N+log(M)), N is the number of members in the
/// searched area, M of all members, since 3.2.0.
///
/// Old since 6.2.0: better `GEOSEARCH` and `GEOSEARCHSTORE` with the `BYRADIUS` and `FROMMEMBER` arguments.
pub fn georadiusbymember_with(
    key: impl ToArgs,
    member: impl ToArgs,
    radius: impl ToArgs,
    unit: impl ToArgs,
    options: impl ToArgs,
) -> Cmd {
    cmd("GEORADIUSBYMEMBER").arg(key).arg(member).arg(radius).arg(unit).arg(options)
}

/// Finds the members within a circle around another member.
///
/// `GEORADIUSBYMEMBER_RO key member radius <M | KM | FT | MI> [WITHCOORD] [WITHDIST] [WITHHASH] [COUNT
/// count [ANY]] [ASC | DESC]`: O(N+log(M)), N is the number of members in the searched area, M of all
/// members, since 3.2.10.
///
/// Old since 6.2.0: better `GEOSEARCH` with the `BYRADIUS` and `FROMMEMBER` arguments.
pub fn georadiusbymember_ro(
    key: impl ToArgs,
    member: impl ToArgs,
    radius: impl ToArgs,
    unit: impl ToArgs,
) -> Cmd {
    cmd("GEORADIUSBYMEMBER_RO").arg(key).arg(member).arg(radius).arg(unit)
}

/// Finds the members within a circle around another member. With options.
///
/// `GEORADIUSBYMEMBER_RO key member radius <M | KM | FT | MI> [WITHCOORD] [WITHDIST] [WITHHASH] [COUNT
/// count [ANY]] [ASC | DESC]`: O(N+log(M)), N is the number of members in the searched area, M of all
/// members, since 3.2.10.
///
/// Old since 6.2.0: better `GEOSEARCH` with the `BYRADIUS` and `FROMMEMBER` arguments.
pub fn georadiusbymember_ro_with(
    key: impl ToArgs,
    member: impl ToArgs,
    radius: impl ToArgs,
    unit: impl ToArgs,
    options: impl ToArgs,
) -> Cmd {
    cmd("GEORADIUSBYMEMBER_RO").arg(key).arg(member).arg(radius).arg(unit).arg(options)
}

/// Finds the members within a circle, a box or a polygon.
///
/// `GEOSEARCH key [FROMMEMBER member | FROMLONLAT longitude latitude] <BYRADIUS radius <M | KM | FT | MI> |
/// BYBOX width height <M | KM | FT | MI> | BYPOLYGON count longitude latitude [longitude latitude ...]>
/// [ASC | DESC] [COUNT count [ANY]] [WITHCOORD] [WITHDIST] [WITHHASH]`: O(N+log(M)), N is the number of
/// members in the searched area, M of all members, since 6.2.0.
pub fn geosearch(key: impl ToArgs, choice: impl ToArgs) -> Cmd {
    cmd("GEOSEARCH").arg(key).arg(choice)
}

/// Finds the members within a circle, a box or a polygon. With options.
///
/// `GEOSEARCH key [FROMMEMBER member | FROMLONLAT longitude latitude] <BYRADIUS radius <M | KM | FT | MI> |
/// BYBOX width height <M | KM | FT | MI> | BYPOLYGON count longitude latitude [longitude latitude ...]>
/// [ASC | DESC] [COUNT count [ANY]] [WITHCOORD] [WITHDIST] [WITHHASH]`: O(N+log(M)), N is the number of
/// members in the searched area, M of all members, since 6.2.0.
pub fn geosearch_with(
    key: impl ToArgs,
    options: impl ToArgs,
    choice: impl ToArgs,
    options_2: impl ToArgs,
) -> Cmd {
    cmd("GEOSEARCH").arg(key).arg(options).arg(choice).arg(options_2)
}

/// Stores the members within a circle, a box or a polygon in another key.
///
/// `GEOSEARCHSTORE destination source [FROMMEMBER member | FROMLONLAT longitude latitude] <BYRADIUS radius
/// <M | KM | FT | MI> | BYBOX width height <M | KM | FT | MI> | BYPOLYGON count longitude latitude
/// [longitude latitude ...]> [ASC | DESC] [COUNT count [ANY]] [STOREDIST]`: O(N+log(M)), N is the number of
/// members in the searched area, M of all members, since 6.2.0.
pub fn geosearchstore(destination: impl ToArgs, source: impl ToArgs, choice: impl ToArgs) -> Cmd {
    cmd("GEOSEARCHSTORE").arg(destination).arg(source).arg(choice)
}

/// Stores the members within a circle, a box or a polygon in another key. With options.
///
/// `GEOSEARCHSTORE destination source [FROMMEMBER member | FROMLONLAT longitude latitude] <BYRADIUS radius
/// <M | KM | FT | MI> | BYBOX width height <M | KM | FT | MI> | BYPOLYGON count longitude latitude
/// [longitude latitude ...]> [ASC | DESC] [COUNT count [ANY]] [STOREDIST]`: O(N+log(M)), N is the number of
/// members in the searched area, M of all members, since 6.2.0.
pub fn geosearchstore_with(
    destination: impl ToArgs,
    source: impl ToArgs,
    options: impl ToArgs,
    choice: impl ToArgs,
    options_2: impl ToArgs,
) -> Cmd {
    cmd("GEOSEARCHSTORE").arg(destination).arg(source).arg(options).arg(choice).arg(options_2)
}
