//! The code that is written for a type.

use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident, quote, quote_spanned};
use std::collections::BTreeSet;
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{
    Data, DataEnum, DeriveInput, Field, Fields, Generics, Ident, LitByteStr, Path, Type, WherePredicate,
    parse_quote,
};

use crate::attributes::{Container, Fallback, Item};
use crate::names::Style;

/// A type that can be derived.
enum Shape<'a> {
    Named(Vec<Named<'a>>),
    Tuple(Vec<&'a Type>),
    Words(Vec<(&'a Ident, String)>),
}

/// A field with a name.
struct Named<'a> {
    ident: &'a Ident,
    of: &'a Type,
    name: String,
    item: Item,
}

/// The implementation of `FromReply`.
pub(crate) fn from_reply(input: &DeriveInput) -> syn::Result<TokenStream> {
    let container = Container::parse(&input.attrs)?;
    let root = &container.root;
    let shape = shape(input, &container)?;
    let mut generics = input.generics.clone();
    let (body, more) = match &shape {
        Shape::Named(fields) => {
            for field in fields.iter().filter(|field| field.item.skip.is_none()) {
                require(&mut generics, field.of, &quote!(#root::FromReply));
            }
            let body = read_named(fields, root);
            // What a key that does not exist is to `HGETALL`.
            let more = quote! {
                fn is_absent(frame: &#root::Frame) -> bool {
                    #root::derive::is_empty(frame)
                }
            };
            (body, more)
        }
        Shape::Tuple(types) => {
            types.iter().for_each(|of| require(&mut generics, of, &quote!(#root::FromReply)));
            read_tuple(types, root)
        }
        Shape::Words(words) => (read_word(words, root), TokenStream::new()),
    };
    let name = &input.ident;
    let (impls, types, wheres) = generics.split_for_impl();
    Ok(quote! {
        #[automatically_derived]
        impl #impls #root::FromReply for #name #types #wheres {
            fn from_reply(frame: #root::Frame) -> ::core::result::Result<Self, #root::ReplyError> {
                #body
            }
            #more
        }
    })
}

/// The implementation of `ToArgs`, and of `ToArg` for what is one argument.
pub(crate) fn to_args(input: &DeriveInput) -> syn::Result<TokenStream> {
    let container = Container::parse(&input.attrs)?;
    let root = &container.root;
    let shape = shape(input, &container)?;
    let mut generics = input.generics.clone();
    let (body, is_word) = match &shape {
        Shape::Named(fields) => {
            let sent: Vec<&Named<'_>> = fields.iter().filter(|field| field.item.skip.is_none()).collect();
            sent.iter().for_each(|field| require(&mut generics, field.of, &quote!(#root::ToArg)));
            let pairs = sent.iter().map(|field| {
                let (ident, name) = (field.ident, literal(&field.name));
                quote_spanned!(field.of.span()=> #root::derive::write_pair(args, #name, &self.#ident);)
            });
            (quote!(#(#pairs)*), false)
        }
        Shape::Tuple(types) => {
            types.iter().for_each(|of| require(&mut generics, of, &quote!(#root::ToArgs)));
            let fields = types.iter().enumerate().map(|(index, of)| {
                let index = syn::Index::from(index);
                quote_spanned!(of.span()=> #root::ToArgs::write_args(&self.#index, args);)
            });
            (quote!(#(#fields)*), false)
        }
        Shape::Words(words) => {
            let arms = words.iter().map(|(ident, word)| quote!(Self::#ident => #word));
            (quote!(args.push(match self { #(#arms,)* }.as_bytes());), true)
        }
    };
    let name = &input.ident;
    let (impls, types, wheres) = generics.split_for_impl();
    let to_arg = match &shape {
        Shape::Tuple(inner) => newtype_to_arg(input, inner, root),
        _ if is_word => quote!(#[automatically_derived] impl #impls #root::ToArg for #name #types #wheres {}),
        _ => TokenStream::new(),
    };
    Ok(quote! {
        #[automatically_derived]
        impl #impls #root::ToArgs for #name #types #wheres {
            fn write_args(&self, args: &mut #root::Args) {
                #body
            }
        }
        #to_arg
    })
}

/// A newtype is one argument where its field is one. The bound has a lifetime because the compiler refuses bounds without
/// parameters that do not hold, and here that is an answer.
fn newtype_to_arg(input: &DeriveInput, inner: &[&Type], root: &Path) -> TokenStream {
    let [of] = inner else { return TokenStream::new() };
    let mut generics = input.generics.clone();
    require(&mut generics, of, &quote!(#root::ToArgs));
    generics.make_where_clause().predicates.push(parse_quote!(for<'__any> &'__any #of: #root::ToArg));
    let name = &input.ident;
    let (impls, types, wheres) = generics.split_for_impl();
    quote!(#[automatically_derived] impl #impls #root::ToArg for #name #types #wheres {})
}

/// What the definition is, if it can be derived.
fn shape<'a>(input: &'a DeriveInput, container: &Container) -> syn::Result<Shape<'a>> {
    match &input.data {
        Data::Struct(data) => match &data.fields {
            Fields::Named(fields) => named(fields.named.iter(), container.style).map(Shape::Named),
            Fields::Unnamed(fields) => {
                for field in &fields.unnamed {
                    let item = Item::parse(&field.attrs)?;
                    item.nothing_but_rename("a field without a name")?;
                    if let Some(rename) = item.rename {
                        return Err(syn::Error::new(
                            rename.span(),
                            "a field without a name cannot be renamed",
                        ));
                    }
                }
                Ok(Shape::Tuple(fields.unnamed.iter().map(|field| &field.ty).collect()))
            }
            Fields::Unit => {
                Err(syn::Error::new(input.ident.span(), "a struct without fields stands for no value"))
            }
        },
        Data::Enum(data) => words(data, container.style).map(Shape::Words),
        Data::Union(data) => {
            Err(syn::Error::new(data.union_token.span, "a union cannot be derived: use a struct or an enum"))
        }
    }
}

fn named<'a>(fields: impl Iterator<Item = &'a Field>, style: Option<Style>) -> syn::Result<Vec<Named<'a>>> {
    let (mut out, mut seen) = (Vec::new(), BTreeSet::new());
    for field in fields {
        let item = Item::parse(&field.attrs)?;
        let Some(ident) = &field.ident else { continue };
        let name = name_of(ident, &item, style);
        if item.skip.is_none() && !seen.insert(name.clone()) {
            return Err(syn::Error::new(ident.span(), format!("two fields have the name `{name}`")));
        }
        out.push(Named { ident, of: &field.ty, name, item });
    }
    Ok(out)
}

fn words(data: &DataEnum, style: Option<Style>) -> syn::Result<Vec<(&Ident, String)>> {
    let (mut out, mut seen) = (Vec::new(), BTreeSet::new());
    for variant in &data.variants {
        if !matches!(variant.fields, Fields::Unit) {
            return Err(syn::Error::new(
                variant.fields.span(),
                "a variant with fields has no form that every reply agrees on: implement the trait by hand",
            ));
        }
        let item = Item::parse(&variant.attrs)?;
        item.nothing_but_rename("a variant")?;
        let word = name_of(&variant.ident, &item, style);
        if !seen.insert(word.clone()) {
            return Err(syn::Error::new(
                variant.ident.span(),
                format!("two variants have the name `{word}`"),
            ));
        }
        out.push((&variant.ident, word));
    }
    if out.is_empty() {
        return Err(syn::Error::new(data.enum_token.span, "an enum without variants has no values"));
    }
    Ok(out)
}

fn name_of(ident: &Ident, item: &Item, style: Option<Style>) -> String {
    let plain = ident.unraw().to_string();
    match (&item.rename, style) {
        (Some(name), _) => name.value(),
        (None, Some(style)) => style.apply(&plain),
        (None, None) => plain,
    }
}

/// Reads the pairs once and keeps what the struct has.
fn read_named(fields: &[Named<'_>], root: &Path) -> TokenStream {
    let read: Vec<&Named<'_>> = fields.iter().filter(|field| field.item.skip.is_none()).collect();
    let slots: Vec<Ident> = (0..read.len()).map(|index| format_ident!("field_{index}")).collect();
    let names = read.iter().map(|field| literal(&field.name));
    let mut next = slots.iter();
    let values = fields.iter().map(|field| {
        let (ident, name, span) = (field.ident, &field.name, field.of.span());
        if field.item.skip.is_some() {
            return quote_spanned!(span=> #ident: ::core::default::Default::default());
        }
        let slot = next.next();
        match &field.item.default {
            None => quote_spanned!(span=> #ident: #root::derive::field(#slot, #name)?),
            Some(Fallback::Standard(_)) => {
                quote_spanned!(span=> #ident: #root::derive::field_or(#slot, #name, ::core::default::Default::default)?)
            }
            Some(Fallback::Function(path)) => {
                quote_spanned!(span=> #ident: #root::derive::field_or(#slot, #name, #path)?)
            }
        }
    });
    let values: Vec<TokenStream> = values.collect();
    quote! {
        #(let mut #slots = ::core::option::Option::None;)*
        for (name, value) in #root::derive::pairs(frame)? {
            match &name[..] {
                #(#names => #slots = ::core::option::Option::Some(value),)*
                _ => {}
            }
        }
        ::core::result::Result::Ok(Self { #(#values,)* })
    }
}

/// A newtype is what its field is; longer tuples are an array.
fn read_tuple(types: &[&Type], root: &Path) -> (TokenStream, TokenStream) {
    if let [of] = types {
        let body = quote_spanned!(of.span()=> <#of as #root::FromReply>::from_reply(frame).map(Self));
        let more = quote! {
            fn is_absent(frame: &#root::Frame) -> bool {
                <#of as #root::FromReply>::is_absent(frame)
            }
        };
        return (body, more);
    }
    let count = types.len();
    let fields = types
        .iter()
        .enumerate()
        .map(|(index, of)| quote_spanned!(of.span()=> #root::derive::element(&mut elements, #index)?));
    let body = quote! {
        let mut elements = #root::derive::elements(frame, #count)?;
        ::core::result::Result::Ok(Self(#(#fields,)*))
    };
    (body, TokenStream::new())
}

fn read_word(words: &[(&Ident, String)], root: &Path) -> TokenStream {
    let arms = words.iter().map(|(ident, word)| {
        let word = literal(word);
        quote!(#word => ::core::result::Result::Ok(Self::#ident))
    });
    let known: Vec<String> = words.iter().map(|(_, word)| format!("`{word}`")).collect();
    let expected = format!("one of {}", known.join(", "));
    quote! {
        let text = #root::derive::word(frame, #expected)?;
        match &text[..] {
            #(#arms,)*
            other => ::core::result::Result::Err(#root::derive::unknown_word(other, #expected)),
        }
    }
}

fn literal(name: &str) -> LitByteStr {
    LitByteStr::new(name.as_bytes(), proc_macro2::Span::call_site())
}

/// Adds a bound on a field's type if that depends on the parameters; for others the compiler points at the field.
fn require(generics: &mut Generics, of: &Type, bound: &TokenStream) {
    let is_generic = generics.type_params().any(|param| mentions(of.to_token_stream(), &param.ident));
    if is_generic {
        let predicate: WherePredicate = parse_quote!(#of: #bound);
        generics.make_where_clause().predicates.push(predicate);
    }
}

fn mentions(tokens: TokenStream, name: &Ident) -> bool {
    tokens.into_iter().any(|token| match token {
        proc_macro2::TokenTree::Ident(ident) => ident == *name,
        proc_macro2::TokenTree::Group(group) => mentions(group.stream(), name),
        proc_macro2::TokenTree::Punct(_) | proc_macro2::TokenTree::Literal(_) => false,
    })
}

#[cfg(test)]
mod tests;
