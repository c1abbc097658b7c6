//! `#[derive(FromReply)]` and `#[derive(ToArgs)]` of `towline-client`, which re-exports them.
//!
//! Owns the reading of a type's definition and its attributes, and the code that is written for it. Does **not** own
//! what a reply or an argument is: the code calls `towline_client::FromReply`, `ToArgs` and its module `derive`, and
//! depends on nothing else of a user's crate.
//!
//! | type | reply | arguments |
//! |---|---|---|
//! | struct with fields | a map, or a flat array: `HGETALL` | name and value of each field: `HSET` |
//! | tuple struct | an array of exactly so many elements | those of each field in turn |
//! | newtype (one field without a name) | that of the field | those of the field |
//! | enum of plain variants | a word | the word |
//!
//! # Attributes
//!
//! All are written `#[towline(...)]`.
//!
//! | where | attribute | what it does |
//! |---|---|---|
//! | type | `rename_all = "camelCase"` | how names are written: `lowercase`, `UPPERCASE`, `PascalCase`, `camelCase`, `snake_case`, `SCREAMING_SNAKE_CASE`, `kebab-case`, `SCREAMING-KEBAB-CASE` |
//! | type | `crate = "path"` | where `towline_client` is, if not under that name |
//! | field, variant | `rename = "name"` | this name, whatever `rename_all` says |
//! | field | `default`, `default = "path"` | what it is without a value in the reply: `Default::default()`, or what the function gives |
//! | field | `skip` | neither sent nor read; read as `Default::default()` |
//!
//! A field that is absent from a reply, and has no default, counts as null: an `Option` is `None`, a number or a string
//! is an error that names the field. A field that is `None` is not sent. Fields of a reply that the struct does not
//! have are passed over.
#![warn(missing_docs)]
#![forbid(unsafe_code)]

mod attributes;
mod expand;
mod names;

use proc_macro::TokenStream;

/// Implements `FromReply`: a hash becomes a struct, a word becomes an enum. See the [crate] for attributes.
///
/// Every field's type must be `FromReply`. `Option<T>` of a derived struct with fields is `None` for an empty reply,
/// which is what `HGETALL` answers for a key that does not exist.
#[proc_macro_derive(FromReply, attributes(towline))]
pub fn from_reply(input: TokenStream) -> TokenStream {
    written(input, expand::from_reply)
}

/// Implements `ToArgs`, and `ToArg` for newtypes and enums: a struct becomes the fields and values of `HSET`, an enum
/// becomes a word. See the [crate] for attributes.
///
/// Every value of a struct with names must be one argument (`ToArg`): a list would shift the names after it.
#[proc_macro_derive(ToArgs, attributes(towline))]
pub fn to_args(input: TokenStream) -> TokenStream {
    written(input, expand::to_args)
}

fn written(
    input: TokenStream,
    expand: fn(&syn::DeriveInput) -> syn::Result<proc_macro2::TokenStream>,
) -> TokenStream {
    let expanded = syn::parse(input).and_then(|input| expand(&input));
    expanded.unwrap_or_else(|error| error.into_compile_error()).into()
}
