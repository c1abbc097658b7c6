//! What `#[towline(...)]` says on a type, a field or a variant.

use proc_macro2::Span;
use syn::meta::ParseNestedMeta;
use syn::{Attribute, LitStr, Path};

use crate::names::Style;

/// Of a type.
pub(crate) struct Container {
    pub(crate) style: Option<Style>,
    /// Where `towline_client` is.
    pub(crate) root: Path,
}

/// Of a field or variant.
#[derive(Default)]
pub(crate) struct Item {
    pub(crate) rename: Option<LitStr>,
    pub(crate) default: Option<Fallback>,
    /// Where `skip` stands.
    pub(crate) skip: Option<Span>,
}

/// What a field without a value becomes.
pub(crate) enum Fallback {
    /// `Default::default()`.
    Standard(Span),
    /// What this function gives.
    Function(Path),
}

impl Container {
    pub(crate) fn parse(attributes: &[Attribute]) -> syn::Result<Self> {
        let (mut style, mut root) = (None, syn::parse_str("::towline_client")?);
        each(attributes, |meta| {
            if meta.path.is_ident("rename_all") {
                style = Some(Style::parse(&meta.value()?.parse()?)?);
            } else if meta.path.is_ident("crate") {
                root = meta.value()?.parse::<LitStr>()?.parse()?;
            } else {
                return Err(
                    meta.error("unknown attribute; a type has `rename_all = \"...\"` and `crate = \"...\"`")
                );
            }
            Ok(())
        })?;
        Ok(Self { style, root })
    }
}

impl Item {
    pub(crate) fn parse(attributes: &[Attribute]) -> syn::Result<Self> {
        let mut item = Self::default();
        each(attributes, |meta| {
            if meta.path.is_ident("rename") {
                item.rename = Some(meta.value()?.parse()?);
            } else if meta.path.is_ident("default") {
                item.default = Some(if meta.input.peek(syn::Token![=]) {
                    Fallback::Function(meta.value()?.parse::<LitStr>()?.parse()?)
                } else {
                    Fallback::Standard(span(meta))
                });
            } else if meta.path.is_ident("skip") {
                item.skip = Some(span(meta));
            } else {
                return Err(meta.error(
                    "unknown attribute; there are `rename = \"...\"`, `default`, `default = \"...\"` and `skip`",
                ));
            }
            Ok(())
        })?;
        if let (Some(span), Some(_)) = (item.skip, &item.default) {
            return Err(syn::Error::new(span, "a field that is skipped is `Default::default()` already"));
        }
        Ok(item)
    }

    /// Refuses what only fields with a name can have.
    pub(crate) fn nothing_but_rename(&self, what: &str) -> syn::Result<()> {
        let span = match &self.default {
            Some(Fallback::Standard(span)) => Some(*span),
            Some(Fallback::Function(path)) => path.segments.first().map(|segment| segment.ident.span()),
            None => self.skip,
        };
        match span {
            Some(span) => Err(syn::Error::new(span, format!("{what} cannot have this attribute"))),
            None => Ok(()),
        }
    }
}

fn span(meta: &ParseNestedMeta<'_>) -> Span {
    meta.path.get_ident().map_or_else(Span::call_site, syn::Ident::span)
}

/// Calls `read` for each entry of each `#[towline(...)]`.
fn each(
    attributes: &[Attribute],
    mut read: impl FnMut(&ParseNestedMeta<'_>) -> syn::Result<()>,
) -> syn::Result<()> {
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("towline")) {
        attribute.parse_nested_meta(|meta| read(&meta))?;
    }
    Ok(())
}
