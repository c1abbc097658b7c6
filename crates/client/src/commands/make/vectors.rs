//! Commands of the group `vector_set`.
//!
//! Written by `cargo xtask fix` from the command table; change crates/spec/src or xtask/src/commands.

use crate::args::ToArgs;
use crate::cmd::{Cmd, cmd};

/// Adds an element with its vector (FP32, VALUES), before which REDUCE may stand.
///
/// `VADD key vector element [CAS] [NOQUANT | Q8 | BIN] [EF build-exploration-factor] [SETATTR attributes]
/// [M links]`: O(log(N)), N is the number of elements, since 8.0.0.
pub fn vadd(key: impl ToArgs, vector: impl ToArgs, element: impl ToArgs) -> Cmd {
    cmd("VADD").arg(key).arg(vector).arg(element)
}

/// Adds an element with its vector (FP32, VALUES), before which REDUCE may stand. With options.
///
/// `VADD key vector element [CAS] [NOQUANT | Q8 | BIN] [EF build-exploration-factor] [SETATTR attributes]
/// [M links]`: O(log(N)), N is the number of elements, since 8.0.0.
pub fn vadd_with(key: impl ToArgs, vector: impl ToArgs, element: impl ToArgs, options: impl ToArgs) -> Cmd {
    cmd("VADD").arg(key).arg(vector).arg(element).arg(options)
}

/// Counts the elements.
///
/// `VCARD key`: O(1), since 8.0.0.
pub fn vcard(key: impl ToArgs) -> Cmd {
    cmd("VCARD").arg(key)
}

/// Returns the vectors' dimension.
///
/// `VDIM key`: O(1), since 8.0.0.
pub fn vdim(key: impl ToArgs) -> Cmd {
    cmd("VDIM").arg(key)
}

/// Returns an element's vector, as precisely as it is kept.
///
/// `VEMB key element [RAW]`: O(1), since 8.0.0.
pub fn vemb(key: impl ToArgs, element: impl ToArgs) -> Cmd {
    cmd("VEMB").arg(key).arg(element)
}

/// Returns an element's vector, as precisely as it is kept. With options.
///
/// `VEMB key element [RAW]`: O(1), since 8.0.0.
pub fn vemb_with(key: impl ToArgs, element: impl ToArgs, options: impl ToArgs) -> Cmd {
    cmd("VEMB").arg(key).arg(element).arg(options)
}

/// Returns an element's attributes as JSON text.
///
/// `VGETATTR key element`: O(1), since 8.0.0.
pub fn vgetattr(key: impl ToArgs, element: impl ToArgs) -> Cmd {
    cmd("VGETATTR").arg(key).arg(element)
}

/// Describes a vector set.
///
/// `VINFO key`: O(1), since 8.0.0.
pub fn vinfo(key: impl ToArgs) -> Cmd {
    cmd("VINFO").arg(key)
}

/// Tells whether an element exists.
///
/// `VISMEMBER key element`: O(1), since 8.2.0.
pub fn vismember(key: impl ToArgs, element: impl ToArgs) -> Cmd {
    cmd("VISMEMBER").arg(key).arg(element)
}

/// Returns an element's neighbours in each layer of the graph.
///
/// `VLINKS key element [WITHSCORES]`: O(1), since 8.0.0.
pub fn vlinks(key: impl ToArgs, element: impl ToArgs) -> Cmd {
    cmd("VLINKS").arg(key).arg(element)
}

/// Returns an element's neighbours in each layer of the graph. With options.
///
/// `VLINKS key element [WITHSCORES]`: O(1), since 8.0.0.
pub fn vlinks_with(key: impl ToArgs, element: impl ToArgs, options: impl ToArgs) -> Cmd {
    cmd("VLINKS").arg(key).arg(element).arg(options)
}

/// Returns random elements.
///
/// `VRANDMEMBER key [count]`: O(N), N is the count, since 8.0.0.
pub fn vrandmember(key: impl ToArgs) -> Cmd {
    cmd("VRANDMEMBER").arg(key)
}

/// Returns random elements. With options.
///
/// `VRANDMEMBER key [count]`: O(N), N is the count, since 8.0.0.
pub fn vrandmember_with(key: impl ToArgs, count: impl ToArgs) -> Cmd {
    cmd("VRANDMEMBER").arg(key).arg(count)
}

/// Returns elements in the order of their names.
///
/// `VRANGE key start end [count]`: O(log(K)+M), K elements in the set, M returned, since 8.4.0.
pub fn vrange(key: impl ToArgs, start: impl ToArgs, end: impl ToArgs) -> Cmd {
    cmd("VRANGE").arg(key).arg(start).arg(end)
}

/// Returns elements in the order of their names. With options.
///
/// `VRANGE key start end [count]`: O(log(K)+M), K elements in the set, M returned, since 8.4.0.
pub fn vrange_with(key: impl ToArgs, start: impl ToArgs, end: impl ToArgs, count: impl ToArgs) -> Cmd {
    cmd("VRANGE").arg(key).arg(start).arg(end).arg(count)
}

/// Removes an element.
///
/// `VREM key element`: O(log(N)), N is the number of elements, since 8.0.0.
pub fn vrem(key: impl ToArgs, element: impl ToArgs) -> Cmd {
    cmd("VREM").arg(key).arg(element)
}

/// Sets an element's attributes, JSON text; an empty one removes them.
///
/// `VSETATTR key element attributes`: O(1), since 8.0.0.
pub fn vsetattr(key: impl ToArgs, element: impl ToArgs, attributes: impl ToArgs) -> Cmd {
    cmd("VSETATTR").arg(key).arg(element).arg(attributes)
}

/// Finds the nearest elements to a vector (FP32, VALUES), or to an element (ELE).
///
/// `VSIM key query [WITHSCORES] [WITHATTRIBS] [COUNT count] [EPSILON delta] [EF search-exploration-factor]
/// [FILTER expression] [FILTER-EF filter-effort] [TRUTH] [NOTHREAD]`: O(log(N)), N is the number of
/// elements, since 8.0.0.
pub fn vsim(key: impl ToArgs, query: impl ToArgs) -> Cmd {
    cmd("VSIM").arg(key).arg(query)
}

/// Finds the nearest elements to a vector (FP32, VALUES), or to an element (ELE). With options.
///
/// `VSIM key query [WITHSCORES] [WITHATTRIBS] [COUNT count] [EPSILON delta] [EF search-exploration-factor]
/// [FILTER expression] [FILTER-EF filter-effort] [TRUTH] [NOTHREAD]`: O(log(N)), N is the number of
/// elements, since 8.0.0.
pub fn vsim_with(key: impl ToArgs, query: impl ToArgs, options: impl ToArgs) -> Cmd {
    cmd("VSIM").arg(key).arg(query).arg(options)
}
