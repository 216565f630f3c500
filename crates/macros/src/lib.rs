//! `#[derive(Module)]`: the walk over a module's parts, written from its fields.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Error, Field, Fields, Ident, Index, LitStr, Result, Type};

/// Implements `cupola::nn::Parts` and `cupola::tree::Tree`, and with them `cupola::nn::Module`.
///
/// Every field's type must implement `Parts`: parameters, buffers, modules, containers of them, and
/// plain values such as numbers and strings, which hold nothing. `#[module(skip)]` leaves a field
/// of any other type out, and `#[module(name = "…")]` names its parts differently. Fields are named
/// as in the code, or by their number; an enum stands for what the variant holds, and a variant with
/// one unnamed field adds no name.
#[proc_macro_derive(Module, attributes(module))]
pub fn derive_module(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let input = syn::parse_macro_input!(input as DeriveInput);
    expand(&input).unwrap_or_else(Error::into_compile_error).into()
}

/// What `#[module(…)]` says of a field.
#[derive(Default)]
struct Options {
    skip: bool,
    name: Option<String>,
}

impl Options {
    fn of(field: &Field) -> Result<Self> {
        let mut options = Self::default();
        for attribute in field.attrs.iter().filter(|a| a.path().is_ident("module")) {
            attribute.parse_nested_meta(|meta| {
                if meta.path.is_ident("skip") {
                    options.skip = true;
                } else if meta.path.is_ident("name") {
                    let name: LitStr = meta.value()?.parse()?;
                    if name.value().is_empty() || name.value().contains('.') {
                        return Err(Error::new(name.span(), "a name is not empty and has no dot"));
                    }
                    options.name = Some(name.value());
                } else {
                    return Err(meta.error("expected `skip` or `name = \"…\"`"));
                }
                Ok(())
            })?;
        }
        Ok(options)
    }
}

fn expand(input: &DeriveInput) -> Result<TokenStream> {
    let mut types = Vec::new();
    let body = match &input.data {
        Data::Struct(data) => {
            let mut visits = Vec::new();
            for (index, field) in data.fields.iter().enumerate() {
                let member = match &field.ident {
                    Some(name) => name.to_token_stream(),
                    None => Index::from(index).to_token_stream(),
                };
                visits.extend(visit(field, index, &quote!(&self.#member), true, &mut types)?);
            }
            quote!(#(#visits)*)
        }
        Data::Enum(data) => {
            let mut arms = Vec::new();
            for variant in &data.variants {
                arms.push(arm(&variant.ident, &variant.fields, &mut types)?);
            }
            if arms.is_empty() { quote!(match *self {}) } else { quote!(match self { #(#arms)* }) }
        }
        Data::Union(data) => {
            return Err(Error::new(data.union_token.span(), "a union cannot be a module"));
        }
    };
    let name = &input.ident;
    let mut generics = input.generics.clone();
    let parameters: Vec<Ident> = generics.type_params().map(|p| p.ident.clone()).collect();
    let bounded = parameters.iter().filter(|p| types.iter().any(|t| mentions(t, p)));
    let clause = generics.make_where_clause();
    for parameter in bounded {
        clause.predicates.push(syn::parse_quote!(#parameter: ::cupola::nn::Parts));
    }
    let (params, arguments, clause) = generics.split_for_impl();
    Ok(quote! {
        #[automatically_derived]
        impl #params ::cupola::nn::Parts for #name #arguments #clause {
            #[allow(unused_variables)]
            fn parts(
                &self,
                path: &mut ::cupola::tree::Path,
                f: &mut dyn ::core::ops::FnMut(&str, ::cupola::nn::Part<'_>),
            ) {
                #body
            }
        }

        #[automatically_derived]
        impl #params ::cupola::tree::Tree for #name #arguments #clause {
            fn visit(
                &self,
                path: &mut ::cupola::tree::Path,
                f: &mut dyn ::core::ops::FnMut(::cupola::tree::Leaf<'_>, &::cupola::Array),
            ) {
                ::cupola::nn::visit_leaves(self, path, f);
            }

            fn visit_mut(
                &mut self,
                path: &mut ::cupola::tree::Path,
                f: &mut dyn ::core::ops::FnMut(::cupola::tree::Leaf<'_>, &mut ::cupola::Array),
            ) {
                ::cupola::nn::visit_leaves_mut(self, path, f);
            }

            fn visit_settings(&self, f: &mut dyn ::core::ops::FnMut(u64)) {
                ::cupola::nn::visit_settings(self, f);
            }
        }
    })
}

/// The visit of one field, and none where it is skipped.
fn visit(
    field: &Field,
    index: usize,
    value: &TokenStream,
    named: bool,
    types: &mut Vec<Type>,
) -> Result<Option<TokenStream>> {
    let options = Options::of(field)?;
    if options.skip {
        return Ok(None);
    }
    types.push(field.ty.clone());
    let own = match &field.ident {
        Some(name) => name.to_string().trim_start_matches("r#").to_owned(),
        None => index.to_string(),
    };
    // The span is the field's, so that a type that is no part is reported there.
    let call = quote::quote_spanned!(field.ty.span()=> ::cupola::nn::Parts::parts);
    Ok(Some(match options.name {
        None if !named => quote!(#call(#value, path, f);),
        name => {
            let name = name.unwrap_or(own);
            quote!(path.with(#name, |path| #call(#value, path, f));)
        }
    }))
}

/// The arm of one variant.
fn arm(name: &Ident, fields: &Fields, types: &mut Vec<Type>) -> Result<TokenStream> {
    let named = !matches!(fields, Fields::Unnamed(f) if f.unnamed.len() == 1);
    let mut visits = Vec::new();
    let mut bindings = Vec::new();
    for (index, field) in fields.iter().enumerate() {
        let binding = quote::format_ident!("field{index}");
        if let Some(visit) = visit(field, index, &quote!(#binding), named, types)? {
            visits.push(visit);
            let member = match &field.ident {
                Some(name) => name.to_token_stream(),
                None => Index::from(index).to_token_stream(),
            };
            bindings.push(quote!(#member: #binding));
        }
    }
    Ok(quote!(Self::#name { #(#bindings,)* .. } => { #(#visits)* }))
}

/// Whether a type mentions a type parameter.
fn mentions(ty: &Type, parameter: &Ident) -> bool {
    fn within(tokens: TokenStream, parameter: &Ident) -> bool {
        tokens.into_iter().any(|token| match token {
            proc_macro2::TokenTree::Ident(ident) => ident == *parameter,
            proc_macro2::TokenTree::Group(group) => within(group.stream(), parameter),
            _ => false,
        })
    }
    within(ty.to_token_stream(), parameter)
}
