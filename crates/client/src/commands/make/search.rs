//! Commands of the group `search`.
//!
//! Written by `cargo xtask fix` from the command table; change crates/spec/src or xtask/src/commands.

use crate::args::ToArgs;
use crate::cmd::{Cmd, cmd};

/// Lists the indexes.
///
/// `FT._LIST`: O(1), since 2.0.0 of its module.
pub fn ft_list() -> Cmd {
    cmd("FT._LIST")
}

/// Searches an index, and groups and computes what it finds.
///
/// `FT.AGGREGATE index query [VERBATIM] [LOAD count field [field ...]] [TIMEOUT timeout] [GROUPBY nargs
/// property [property ...]] [REDUCE function nargs arg [arg ...]] [SORTBY nargs property [property ...]]
/// [APPLY expression] [LIMIT offset num] [FILTER filter] [WITHCURSOR] [PARAMS nargs name value [name value
/// ...]] [DIALECT dialect]`: O(N), N is the number of matches, since 1.1.0 of its module.
pub fn ft_aggregate(index: impl ToArgs, query: impl ToArgs) -> Cmd {
    cmd("FT.AGGREGATE").arg(index).arg(query)
}

/// Searches an index, and groups and computes what it finds. With options.
///
/// `FT.AGGREGATE index query [VERBATIM] [LOAD count field [field ...]] [TIMEOUT timeout] [GROUPBY nargs
/// property [property ...]] [REDUCE function nargs arg [arg ...]] [SORTBY nargs property [property ...]]
/// [APPLY expression] [LIMIT offset num] [FILTER filter] [WITHCURSOR] [PARAMS nargs name value [name value
/// ...]] [DIALECT dialect]`: O(N), N is the number of matches, since 1.1.0 of its module.
pub fn ft_aggregate_with(index: impl ToArgs, query: impl ToArgs, options: impl ToArgs) -> Cmd {
    cmd("FT.AGGREGATE").arg(index).arg(query).arg(options)
}

/// Gives an index another name.
///
/// `FT.ALIASADD alias index`: O(1), since 1.0.0 of its module.
pub fn ft_aliasadd(alias: impl ToArgs, index: impl ToArgs) -> Cmd {
    cmd("FT.ALIASADD").arg(alias).arg(index)
}

/// Takes a name from an index.
///
/// `FT.ALIASDEL alias`: O(1), since 1.0.0 of its module.
pub fn ft_aliasdel(alias: impl ToArgs) -> Cmd {
    cmd("FT.ALIASDEL").arg(alias)
}

/// Gives an index a name that another may have.
///
/// `FT.ALIASUPDATE alias index`: O(1), since 1.0.0 of its module.
pub fn ft_aliasupdate(alias: impl ToArgs, index: impl ToArgs) -> Cmd {
    cmd("FT.ALIASUPDATE").arg(alias).arg(index)
}

/// Adds an attribute to an index.
///
/// `FT.ALTER index [SKIPINITIALSCAN] SCHEMA ADD attribute definition [definition ...]`: O(N), N is the
/// number of keys, in the background, since 1.0.0 of its module.
pub fn ft_alter(index: impl ToArgs, attribute: impl ToArgs, definitions: impl ToArgs) -> Cmd {
    cmd("FT.ALTER").arg(index).arg("SCHEMA").arg("ADD").arg(attribute).arg(definitions)
}

/// Adds an attribute to an index. With options.
///
/// `FT.ALTER index [SKIPINITIALSCAN] SCHEMA ADD attribute definition [definition ...]`: O(N), N is the
/// number of keys, in the background, since 1.0.0 of its module.
pub fn ft_alter_with(
    index: impl ToArgs,
    options: impl ToArgs,
    attribute: impl ToArgs,
    definitions: impl ToArgs,
) -> Cmd {
    cmd("FT.ALTER").arg(index).arg(options).arg("SCHEMA").arg("ADD").arg(attribute).arg(definitions)
}

/// Returns options of the module.
///
/// `FT.CONFIG GET option`: O(1), since 1.0.0 of its module.
pub fn ft_config_get(option: impl ToArgs) -> Cmd {
    cmd("FT.CONFIG").arg("GET").arg(option)
}

/// Sets an option of the module.
///
/// `FT.CONFIG SET option value`: O(1), since 1.0.0 of its module.
pub fn ft_config_set(option: impl ToArgs, value: impl ToArgs) -> Cmd {
    cmd("FT.CONFIG").arg("SET").arg(option).arg(value)
}

/// Creates an index.
///
/// `FT.CREATE index [ON <HASH | JSON>] [PREFIX count prefix [prefix ...]] [FILTER filter] [LANGUAGE
/// language] [SCORE score] [NOOFFSETS] [NOHL] [NOFIELDS] [NOFREQS] [STOPWORDS count stopword [stopword
/// ...]] [SKIPINITIALSCAN] SCHEMA attribute [attribute ...]`: O(N), N is the number of keys, in the
/// background, since 1.0.0 of its module.
pub fn ft_create(index: impl ToArgs, attributes: impl ToArgs) -> Cmd {
    cmd("FT.CREATE").arg(index).arg("SCHEMA").arg(attributes)
}

/// Creates an index. With options.
///
/// `FT.CREATE index [ON <HASH | JSON>] [PREFIX count prefix [prefix ...]] [FILTER filter] [LANGUAGE
/// language] [SCORE score] [NOOFFSETS] [NOHL] [NOFIELDS] [NOFREQS] [STOPWORDS count stopword [stopword
/// ...]] [SKIPINITIALSCAN] SCHEMA attribute [attribute ...]`: O(N), N is the number of keys, in the
/// background, since 1.0.0 of its module.
pub fn ft_create_with(index: impl ToArgs, options: impl ToArgs, attributes: impl ToArgs) -> Cmd {
    cmd("FT.CREATE").arg(index).arg(options).arg("SCHEMA").arg(attributes)
}

/// Ends a cursor.
///
/// `FT.CURSOR DEL index cursor-id`: O(1), since 1.1.0 of its module.
pub fn ft_cursor_del(index: impl ToArgs, cursor_id: impl ToArgs) -> Cmd {
    cmd("FT.CURSOR").arg("DEL").arg(index).arg(cursor_id)
}

/// Returns the next part of what an aggregation found.
///
/// `FT.CURSOR READ index cursor-id [COUNT read-size]`: O(N), N is the number of matches, since 1.1.0 of its
/// module.
pub fn ft_cursor_read(index: impl ToArgs, cursor_id: impl ToArgs) -> Cmd {
    cmd("FT.CURSOR").arg("READ").arg(index).arg(cursor_id)
}

/// Returns the next part of what an aggregation found. With options.
///
/// `FT.CURSOR READ index cursor-id [COUNT read-size]`: O(N), N is the number of matches, since 1.1.0 of its
/// module.
pub fn ft_cursor_read_with(index: impl ToArgs, cursor_id: impl ToArgs, options: impl ToArgs) -> Cmd {
    cmd("FT.CURSOR").arg("READ").arg(index).arg(cursor_id).arg(options)
}

/// Adds terms to a dictionary.
///
/// `FT.DICTADD dict term [term ...]`: O(N), N is the number of terms, since 1.4.0 of its module.
pub fn ft_dictadd(dict: impl ToArgs, terms: impl ToArgs) -> Cmd {
    cmd("FT.DICTADD").arg(dict).arg(terms)
}

/// Deletes terms from a dictionary.
///
/// `FT.DICTDEL dict term [term ...]`: O(N), N is the number of terms, since 1.4.0 of its module.
pub fn ft_dictdel(dict: impl ToArgs, terms: impl ToArgs) -> Cmd {
    cmd("FT.DICTDEL").arg(dict).arg(terms)
}

/// Returns the terms of a dictionary.
///
/// `FT.DICTDUMP dict`: O(N), N is the number of terms, since 1.4.0 of its module.
pub fn ft_dictdump(dict: impl ToArgs) -> Cmd {
    cmd("FT.DICTDUMP").arg(dict)
}

/// Deletes an index; with DD, what it indexes as well.
///
/// `FT.DROPINDEX index [DD]`: O(N), N is the number of keys, in the background, since 2.0.0 of its module.
pub fn ft_dropindex(index: impl ToArgs) -> Cmd {
    cmd("FT.DROPINDEX").arg(index)
}

/// Deletes an index; with DD, what it indexes as well. With options.
///
/// `FT.DROPINDEX index [DD]`: O(N), N is the number of keys, in the background, since 2.0.0 of its module.
pub fn ft_dropindex_with(index: impl ToArgs, options: impl ToArgs) -> Cmd {
    cmd("FT.DROPINDEX").arg(index).arg(options)
}

/// Shows how a query is carried out.
///
/// `FT.EXPLAIN index query [DIALECT dialect]`: O(1), since 1.0.0 of its module.
pub fn ft_explain(index: impl ToArgs, query: impl ToArgs) -> Cmd {
    cmd("FT.EXPLAIN").arg(index).arg(query)
}

/// Shows how a query is carried out. With options.
///
/// `FT.EXPLAIN index query [DIALECT dialect]`: O(1), since 1.0.0 of its module.
pub fn ft_explain_with(index: impl ToArgs, query: impl ToArgs, options: impl ToArgs) -> Cmd {
    cmd("FT.EXPLAIN").arg(index).arg(query).arg(options)
}

/// Shows how a query is carried out, line by line.
///
/// `FT.EXPLAINCLI index query [DIALECT dialect]`: O(1), since 1.0.0 of its module.
pub fn ft_explaincli(index: impl ToArgs, query: impl ToArgs) -> Cmd {
    cmd("FT.EXPLAINCLI").arg(index).arg(query)
}

/// Shows how a query is carried out, line by line. With options.
///
/// `FT.EXPLAINCLI index query [DIALECT dialect]`: O(1), since 1.0.0 of its module.
pub fn ft_explaincli_with(index: impl ToArgs, query: impl ToArgs, options: impl ToArgs) -> Cmd {
    cmd("FT.EXPLAINCLI").arg(index).arg(query).arg(options)
}

/// Describes an index.
///
/// `FT.INFO index`: O(1), since 1.0.0 of its module.
pub fn ft_info(index: impl ToArgs) -> Cmd {
    cmd("FT.INFO").arg(index)
}

/// Runs a query and tells where its time went.
///
/// `FT.PROFILE index <SEARCH | AGGREGATE> [LIMITED] QUERY query [query ...]`: O(N), N is the number of
/// matches, since 2.2.0 of its module.
pub fn ft_profile(index: impl ToArgs, choice: impl ToArgs, queries: impl ToArgs) -> Cmd {
    cmd("FT.PROFILE").arg(index).arg(choice).arg("QUERY").arg(queries)
}

/// Runs a query and tells where its time went. With options.
///
/// `FT.PROFILE index <SEARCH | AGGREGATE> [LIMITED] QUERY query [query ...]`: O(N), N is the number of
/// matches, since 2.2.0 of its module.
pub fn ft_profile_with(
    index: impl ToArgs,
    choice: impl ToArgs,
    options: impl ToArgs,
    queries: impl ToArgs,
) -> Cmd {
    cmd("FT.PROFILE").arg(index).arg(choice).arg(options).arg("QUERY").arg(queries)
}

/// Searches an index.
///
/// `FT.SEARCH index query [NOCONTENT] [VERBATIM] [NOSTOPWORDS] [WITHSCORES] [WITHPAYLOADS] [WITHSORTKEYS]
/// [INKEYS count key [key ...]] [INFIELDS count field [field ...]] [RETURN count identifier [identifier
/// ...]] [SLOP slop] [TIMEOUT timeout] [INORDER] [LANGUAGE language] [EXPANDER expander] [SCORER scorer]
/// [SORTBY sortby [ASC | DESC]] [LIMIT offset num] [PARAMS nargs name value [name value ...]] [DIALECT
/// dialect]`: O(N), N is the number of matches, since 1.0.0 of its module.
pub fn ft_search(index: impl ToArgs, query: impl ToArgs) -> Cmd {
    cmd("FT.SEARCH").arg(index).arg(query)
}

/// Searches an index. With options.
///
/// `FT.SEARCH index query [NOCONTENT] [VERBATIM] [NOSTOPWORDS] [WITHSCORES] [WITHPAYLOADS] [WITHSORTKEYS]
/// [INKEYS count key [key ...]] [INFIELDS count field [field ...]] [RETURN count identifier [identifier
/// ...]] [SLOP slop] [TIMEOUT timeout] [INORDER] [LANGUAGE language] [EXPANDER expander] [SCORER scorer]
/// [SORTBY sortby [ASC | DESC]] [LIMIT offset num] [PARAMS nargs name value [name value ...]] [DIALECT
/// dialect]`: O(N), N is the number of matches, since 1.0.0 of its module.
pub fn ft_search_with(index: impl ToArgs, query: impl ToArgs, options: impl ToArgs) -> Cmd {
    cmd("FT.SEARCH").arg(index).arg(query).arg(options)
}

/// Suggests other spellings for the terms of a query.
///
/// `FT.SPELLCHECK index query [DISTANCE distance] [TERMS <INCLUDE | EXCLUDE> dictionary] [DIALECT
/// dialect]`: O(N), N is the number of terms, since 1.4.0 of its module.
pub fn ft_spellcheck(index: impl ToArgs, query: impl ToArgs) -> Cmd {
    cmd("FT.SPELLCHECK").arg(index).arg(query)
}

/// Suggests other spellings for the terms of a query. With options.
///
/// `FT.SPELLCHECK index query [DISTANCE distance] [TERMS <INCLUDE | EXCLUDE> dictionary] [DIALECT
/// dialect]`: O(N), N is the number of terms, since 1.4.0 of its module.
pub fn ft_spellcheck_with(index: impl ToArgs, query: impl ToArgs, options: impl ToArgs) -> Cmd {
    cmd("FT.SPELLCHECK").arg(index).arg(query).arg(options)
}

/// Adds a suggestion.
///
/// `FT.SUGADD key string score [INCR] [PAYLOAD payload]`: O(1), since 1.0.0 of its module.
pub fn ft_sugadd(key: impl ToArgs, string: impl ToArgs, score: impl ToArgs) -> Cmd {
    cmd("FT.SUGADD").arg(key).arg(string).arg(score)
}

/// Adds a suggestion. With options.
///
/// `FT.SUGADD key string score [INCR] [PAYLOAD payload]`: O(1), since 1.0.0 of its module.
pub fn ft_sugadd_with(
    key: impl ToArgs,
    string: impl ToArgs,
    score: impl ToArgs,
    options: impl ToArgs,
) -> Cmd {
    cmd("FT.SUGADD").arg(key).arg(string).arg(score).arg(options)
}

/// Deletes a suggestion.
///
/// `FT.SUGDEL key string`: O(1), since 1.0.0 of its module.
pub fn ft_sugdel(key: impl ToArgs, string: impl ToArgs) -> Cmd {
    cmd("FT.SUGDEL").arg(key).arg(string)
}

/// Returns suggestions for a prefix.
///
/// `FT.SUGGET key prefix [FUZZY] [WITHSCORES] [WITHPAYLOADS] [MAX max]`: O(N), N is the number of terms,
/// since 1.0.0 of its module.
pub fn ft_sugget(key: impl ToArgs, prefix: impl ToArgs) -> Cmd {
    cmd("FT.SUGGET").arg(key).arg(prefix)
}

/// Returns suggestions for a prefix. With options.
///
/// `FT.SUGGET key prefix [FUZZY] [WITHSCORES] [WITHPAYLOADS] [MAX max]`: O(N), N is the number of terms,
/// since 1.0.0 of its module.
pub fn ft_sugget_with(key: impl ToArgs, prefix: impl ToArgs, options: impl ToArgs) -> Cmd {
    cmd("FT.SUGGET").arg(key).arg(prefix).arg(options)
}

/// Counts the suggestions.
///
/// `FT.SUGLEN key`: O(1), since 1.0.0 of its module.
pub fn ft_suglen(key: impl ToArgs) -> Cmd {
    cmd("FT.SUGLEN").arg(key)
}

/// Returns the synonyms.
///
/// `FT.SYNDUMP index`: O(N), N is the number of terms, since 1.2.0 of its module.
pub fn ft_syndump(index: impl ToArgs) -> Cmd {
    cmd("FT.SYNDUMP").arg(index)
}

/// Adds terms to a group of synonyms.
///
/// `FT.SYNUPDATE index group-id [SKIPINITIALSCAN] term [term ...]`: O(N), N is the number of terms, since
/// 1.2.0 of its module.
pub fn ft_synupdate(index: impl ToArgs, group_id: impl ToArgs, terms: impl ToArgs) -> Cmd {
    cmd("FT.SYNUPDATE").arg(index).arg(group_id).arg(terms)
}

/// Adds terms to a group of synonyms. With options.
///
/// `FT.SYNUPDATE index group-id [SKIPINITIALSCAN] term [term ...]`: O(N), N is the number of terms, since
/// 1.2.0 of its module.
pub fn ft_synupdate_with(
    index: impl ToArgs,
    group_id: impl ToArgs,
    options: impl ToArgs,
    terms: impl ToArgs,
) -> Cmd {
    cmd("FT.SYNUPDATE").arg(index).arg(group_id).arg(options).arg(terms)
}

/// Returns the values of a tag.
///
/// `FT.TAGVALS index field`: O(N), N is the number of terms, since 1.0.0 of its module.
pub fn ft_tagvals(index: impl ToArgs, field: impl ToArgs) -> Cmd {
    cmd("FT.TAGVALS").arg(index).arg(field)
}
