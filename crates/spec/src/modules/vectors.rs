//! Vector sets, which Redis has had since 8.0.

use crate::table::prelude::*;

const FLAGS: u32 = WRITE | DENYOOM;
const LOG_N: &str = "O(log(N)), N is the number of elements";

pub(super) const ROWS: &[Row] = &[
    cmd("vadd", -5, FLAGS)
        .args(
            "key vector element [CAS] [NOQUANT | Q8 | BIN] [EF build-exploration-factor] \
             [SETATTR attributes] [M links]",
        )
        .doc("8.0.0", "Adds an element with its vector (FP32, VALUES), before which REDUCE may stand.")
        .cost(LOG_N)
        .keys(ADD_1)
        .effect(Convergent),
    cmd("vcard", 2, READONLY | FAST).args("key").doc("8.0.0", "Counts the elements.").keys(META_1),
    cmd("vdim", 2, READONLY | FAST).args("key").doc("8.0.0", "Returns the vectors' dimension.").keys(META_1),
    cmd("vemb", -3, READONLY)
        .args("key element [RAW]")
        .doc("8.0.0", "Returns an element's vector, as precisely as it is kept.")
        .keys(READ_1),
    cmd("vgetattr", 3, READONLY | FAST)
        .args("key element")
        .doc("8.0.0", "Returns an element's attributes as JSON text.")
        .keys(READ_1),
    cmd("vinfo", 2, READONLY | FAST).args("key").doc("8.0.0", "Describes a vector set.").keys(META_1),
    cmd("vismember", 3, READONLY | FAST)
        .args("key element")
        .doc("8.2.0", "Tells whether an element exists.")
        .keys(READ_1),
    cmd("vlinks", -3, READONLY)
        .args("key element [WITHSCORES]")
        .doc("8.0.0", "Returns an element's neighbours in each layer of the graph.")
        .keys(READ_1),
    cmd("vrandmember", -2, READONLY)
        .args("key [count]")
        .doc("8.0.0", "Returns random elements.")
        .cost("O(N), N is the count")
        .keys(READ_1),
    cmd("vrange", -4, READONLY)
        .args("key start end [count]")
        .doc("8.4.0", "Returns elements in the order of their names.")
        .cost("O(log(K)+M), K elements in the set, M returned")
        .keys(READ_1),
    cmd("vrem", 3, WRITE)
        .args("key element")
        .doc("8.0.0", "Removes an element.")
        .cost(LOG_N)
        .keys(REMOVE_1)
        .effect(Convergent),
    cmd("vsetattr", 4, WRITE | FAST)
        .args("key element attributes")
        .doc("8.0.0", "Sets an element's attributes, JSON text; an empty one removes them.")
        .keys(CHANGE_1)
        .effect(Idempotent),
    cmd("vsim", -4, READONLY)
        .args(
            "key query [WITHSCORES] [WITHATTRIBS] [COUNT count] [EPSILON delta] \
             [EF search-exploration-factor] [FILTER expression] [FILTER-EF filter-effort] [TRUTH] [NOTHREAD]",
        )
        .doc("8.0.0", "Finds the nearest elements to a vector (FP32, VALUES), or to an element (ELE).")
        .cost(LOG_N)
        .keys(READ_1),
];
