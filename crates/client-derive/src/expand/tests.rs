//! What is refused, and with which words; what is accepted is tested in the client, where it can run.

use super::{from_reply, to_args};
use syn::DeriveInput;

fn refusal(definition: &str) -> String {
    let input: DeriveInput = syn::parse_str(definition).unwrap();
    let texts = [from_reply(&input), to_args(&input)].map(|outcome| outcome.unwrap_err().to_string());
    assert_eq!(texts[0], texts[1]);
    texts[0].clone()
}

#[test]
fn what_cannot_be_derived_is_refused_with_the_reason() {
    for (definition, reason) in [
        ("struct A;", "a struct without fields stands for no value"),
        ("union A { a: u8, b: i8 }", "a union cannot be derived"),
        ("enum A {}", "an enum without variants has no values"),
        ("enum A { B, C(u8) }", "implement the trait by hand"),
        ("struct A { #[towline(rename = \"b\")] a: u8, b: u8 }", "two fields have the name `b`"),
        ("#[towline(rename_all = \"lowercase\")] enum A { Ab, AB }", "two variants have the name `ab`"),
        ("struct A { #[towline(renam = \"b\")] a: u8 }", "unknown attribute; there are `rename"),
        ("#[towline(rename = \"b\")] struct A { a: u8 }", "unknown attribute; a type has"),
        ("#[towline(rename_all = \"Title\")] struct A { a: u8 }", "unknown style; there are `lowercase`"),
        ("struct A { #[towline(skip, default)] a: u8 }", "is `Default::default()` already"),
        ("struct A(#[towline(skip)] u8);", "a field without a name cannot have this attribute"),
        ("struct A(#[towline(rename = \"b\")] u8);", "a field without a name cannot be renamed"),
        ("enum A { #[towline(default = \"f\")] B }", "a variant cannot have this attribute"),
        ("struct A { #[towline(default = 3)] a: u8 }", "expected string literal"),
    ] {
        let found = refusal(definition);
        assert!(found.contains(reason), "{definition}: {found}");
    }
}

#[test]
fn only_types_that_depend_on_parameters_get_bounds() {
    let input: DeriveInput =
        syn::parse_str("struct A<T, U> { a: Vec<T>, b: String, #[towline(skip)] c: U }").unwrap();
    let code = from_reply(&input).unwrap().to_string();
    assert!(code.contains("where Vec < T > : :: towline_client :: FromReply {"), "{code}");
}
