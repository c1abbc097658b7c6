//! Indexes over hashes and documents: the query engine of Redis, ValkeySearch.
//!
//! The name of an index is no key: every node of a cluster takes these commands. Suggestions are keys.

use crate::table::prelude::*;

const RESULTS: &str = "O(N), N is the number of matches";
const TERMS: &str = "O(N), N is the number of terms";
const SCAN: &str = "O(N), N is the number of keys, in the background";

pub(super) const ROWS: &[Row] = &[
    cmd("ft._list", 1, READONLY).doc("2.0.0", "Lists the indexes."),
    cmd("ft.aggregate", -3, READONLY)
        .args(
            "index query [VERBATIM] [LOAD count field [field ...]] [TIMEOUT timeout] \
             [GROUPBY nargs property [property ...]] [REDUCE function nargs arg [arg ...]] \
             [SORTBY nargs property [property ...]] [APPLY expression] [LIMIT offset num] [FILTER filter] \
             [WITHCURSOR] [PARAMS nargs name value [name value ...]] [DIALECT dialect]",
        )
        .doc("1.1.0", "Searches an index, and groups and computes what it finds.")
        .cost(RESULTS),
    cmd("ft.aliasadd", 3, WRITE)
        .args("alias index")
        .doc("1.0.0", "Gives an index another name.")
        .effect(Convergent),
    cmd("ft.aliasdel", 2, WRITE).args("alias").doc("1.0.0", "Takes a name from an index.").effect(Convergent),
    cmd("ft.aliasupdate", 3, WRITE)
        .args("alias index")
        .doc("1.0.0", "Gives an index a name that another may have.")
        .effect(Idempotent),
    cmd("ft.alter", -6, WRITE)
        .args("index [SKIPINITIALSCAN] SCHEMA ADD attribute definition [definition ...]")
        .doc("1.0.0", "Adds an attribute to an index.")
        .cost(SCAN)
        .effect(Convergent),
    cmd("ft.config|get", 3, READONLY | ADMIN).args("option").doc("1.0.0", "Returns options of the module."),
    cmd("ft.config|set", 4, ADMIN)
        .args("option value")
        .doc("1.0.0", "Sets an option of the module.")
        .effect(Admin),
    cmd("ft.create", -4, WRITE)
        .args(
            "index [ON <HASH | JSON>] [PREFIX count prefix [prefix ...]] [FILTER filter] [LANGUAGE language] \
             [SCORE score] [NOOFFSETS] [NOHL] [NOFIELDS] [NOFREQS] [STOPWORDS count stopword [stopword ...]] \
             [SKIPINITIALSCAN] SCHEMA attribute [attribute ...]",
        )
        .doc("1.0.0", "Creates an index.")
        .cost(SCAN)
        .effect(Convergent),
    cmd("ft.cursor|del", 4, NONE).args("index cursor-id").doc("1.1.0", "Ends a cursor.").effect(Convergent),
    cmd("ft.cursor|read", -4, NONE)
        .args("index cursor-id [COUNT read-size]")
        .doc("1.1.0", "Returns the next part of what an aggregation found.")
        .cost(RESULTS)
        .effect(NonIdempotent),
    cmd("ft.dictadd", -3, WRITE)
        .args("dict term [term ...]")
        .doc("1.4.0", "Adds terms to a dictionary.")
        .cost(TERMS)
        .effect(Convergent),
    cmd("ft.dictdel", -3, WRITE)
        .args("dict term [term ...]")
        .doc("1.4.0", "Deletes terms from a dictionary.")
        .cost(TERMS)
        .effect(Convergent),
    cmd("ft.dictdump", 2, READONLY)
        .args("dict")
        .doc("1.4.0", "Returns the terms of a dictionary.")
        .cost(TERMS),
    cmd("ft.dropindex", -2, WRITE)
        .args("index [DD]")
        .doc("2.0.0", "Deletes an index; with DD, what it indexes as well.")
        .cost(SCAN)
        .effect(Convergent),
    cmd("ft.explain", -3, READONLY)
        .args("index query [DIALECT dialect]")
        .doc("1.0.0", "Shows how a query is carried out."),
    cmd("ft.explaincli", -3, READONLY)
        .args("index query [DIALECT dialect]")
        .doc("1.0.0", "Shows how a query is carried out, line by line."),
    cmd("ft.info", 2, READONLY).args("index").doc("1.0.0", "Describes an index."),
    cmd("ft.profile", -5, READONLY)
        .args("index <SEARCH | AGGREGATE> [LIMITED] QUERY query [query ...]")
        .doc("2.2.0", "Runs a query and tells where its time went.")
        .cost(RESULTS),
    cmd("ft.search", -3, READONLY)
        .args(
            "index query [NOCONTENT] [VERBATIM] [NOSTOPWORDS] [WITHSCORES] [WITHPAYLOADS] [WITHSORTKEYS] \
             [INKEYS count key [key ...]] [INFIELDS count field [field ...]] \
             [RETURN count identifier [identifier ...]] [SLOP slop] [TIMEOUT timeout] [INORDER] \
             [LANGUAGE language] [EXPANDER expander] [SCORER scorer] [SORTBY sortby [ASC | DESC]] \
             [LIMIT offset num] [PARAMS nargs name value [name value ...]] [DIALECT dialect]",
        )
        .doc("1.0.0", "Searches an index.")
        .cost(RESULTS),
    cmd("ft.spellcheck", -3, READONLY)
        .args("index query [DISTANCE distance] [TERMS <INCLUDE | EXCLUDE> dictionary] [DIALECT dialect]")
        .doc("1.4.0", "Suggests other spellings for the terms of a query.")
        .cost(TERMS),
    cmd("ft.sugadd", -4, WRITE | DENYOOM)
        .args("key string score [INCR] [PAYLOAD payload]")
        .doc("1.0.0", "Adds a suggestion.")
        .keys(CHANGE_1)
        .effect(NonIdempotent),
    cmd("ft.sugdel", 3, WRITE)
        .args("key string")
        .doc("1.0.0", "Deletes a suggestion.")
        .keys(REMOVE_1)
        .effect(Convergent),
    cmd("ft.sugget", -3, READONLY)
        .args("key prefix [FUZZY] [WITHSCORES] [WITHPAYLOADS] [MAX max]")
        .doc("1.0.0", "Returns suggestions for a prefix.")
        .cost(TERMS)
        .keys(READ_1),
    cmd("ft.suglen", 2, READONLY).args("key").doc("1.0.0", "Counts the suggestions.").keys(META_1),
    cmd("ft.syndump", 2, READONLY).args("index").doc("1.2.0", "Returns the synonyms.").cost(TERMS),
    cmd("ft.synupdate", -4, WRITE)
        .args("index group-id [SKIPINITIALSCAN] term [term ...]")
        .doc("1.2.0", "Adds terms to a group of synonyms.")
        .cost(TERMS)
        .effect(Idempotent),
    cmd("ft.tagvals", 3, READONLY)
        .args("index field")
        .doc("1.0.0", "Returns the values of a tag.")
        .cost(TERMS),
];
