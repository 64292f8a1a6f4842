//! `#[entry_point]`: the C side of an exported function.

mod signature;

use cuda_abi::functions::{self, Function};
use proc_macro::TokenStream;
use proc_macro2::TokenStream as Tokens;
use quote::{format_ident, quote};
use syn::ext::IdentExt;
use syn::punctuated::Punctuated;
use syn::{Error, FnArg, Ident, ItemFn, Pat, Result, ReturnType, Token, Type, parse_macro_input};

/// Makes a function the body of the exported C function of the same name.
///
/// ```ignore
/// /// Allocates device memory.
/// #[entry_point]
/// fn cuMemAlloc_v2(dptr: Out<CUdeviceptr>, bytesize: usize) -> CuResult {
///     dptr.check()?.set(current()?.allocate(bytesize)?)?;
///     Ok(())
/// }
/// ```
///
/// The name's line in `cuda-abi/functions.in` must say `done` and have the same parameter types, where `Out<T>`, `In<T>`,
/// `Array<T>` and `Text` of `cuda_abi::args` stand for the pointers they are made of. What is exported hands an
/// `Entry`, a writer of the arguments and the body to `crate::shim::call`, which decides what must hold before the body
/// runs, keeps panics in, traces, and turns the body's `CuResult`, `CudaResult` or `NvmlResult` into a code. A body may be an
/// `unsafe fn`, whose contract is the C caller's. Functions that return something else than a code are called as they
/// are; a panic in them ends the process.
///
/// Options, separated by commas:
/// * `before_init`: works before the API is initialised;
/// * `while_locked`: works while the process is locked by `cuCheckpointProcessLock` (Driver API);
/// * `keeps_last_error`: a failure does not become the thread's last error (Runtime API);
/// * `ptds` or `ptsz`: also exports the variant with this suffix. The body's first parameter, which the C function does
///   not have, then says which variant was called: a `cuda_abi::shim::DefaultStream`.
#[proc_macro_attribute]
pub fn entry_point(options: TokenStream, item: TokenStream) -> TokenStream {
    let options = parse_macro_input!(options with Punctuated::<Ident, Token![,]>::parse_terminated);
    let item = parse_macro_input!(item as ItemFn);
    expand(options, item).unwrap_or_else(Error::into_compile_error).into()
}

#[derive(Default)]
struct Options {
    before_init: bool,
    while_locked: bool,
    keeps_last_error: bool,
    variant: Option<Ident>,
}

impl Options {
    fn parse(words: Punctuated<Ident, Token![,]>) -> Result<Self> {
        let mut options = Self::default();
        for word in words {
            match word.to_string().as_str() {
                "before_init" => options.before_init = true,
                "while_locked" => options.while_locked = true,
                "keeps_last_error" => options.keeps_last_error = true,
                "ptds" | "ptsz" => options.variant = Some(word),
                _ => return Err(Error::new(word.span(), "unknown option of #[entry_point]")),
            }
        }
        Ok(options)
    }
}

fn expand(options: Punctuated<Ident, Token![,]>, item: ItemFn) -> Result<Tokens> {
    let options = Options::parse(options)?;
    let parameters = parameters(&item)?;
    let functions = functions::all();
    let body_name = format_ident!("{}_body", item.sig.ident);
    let (exports, body_parameters) = match &options.variant {
        None => {
            let export = export(&functions, &item.sig.ident, &item, &options, &parameters, None, &body_name)?;
            (export, parameters.clone())
        }
        Some(suffix) => {
            let [default_stream, rest @ ..] = parameters.as_slice() else {
                return Err(Error::new(suffix.span(), "the first parameter is the DefaultStream"));
            };
            let _ = default_stream;
            let variant = format_ident!("{}_{}", item.sig.ident, suffix);
            let legacy = quote!(::cuda_abi::shim::DefaultStream::Legacy);
            let per_thread = quote!(::cuda_abi::shim::DefaultStream::PerThread);
            let first = export(&functions, &item.sig.ident, &item, &options, rest, Some(legacy), &body_name)?;
            let second = export(&functions, &variant, &item, &options, rest, Some(per_thread), &body_name)?;
            (quote!(#first #second), parameters.clone())
        }
    };
    let ItemFn { block, sig, .. } = &item;
    let (unsafety, output) = (&sig.unsafety, &sig.output);
    let (names, types) = (body_parameters.iter().map(|p| &p.name), body_parameters.iter().map(|p| &p.ty));
    Ok(quote! {
        #exports
        #[allow(non_snake_case, reason = "named after the exported function")]
        #[allow(clippy::too_many_arguments, reason = "the API's")]
        #[inline]
        #unsafety fn #body_name(#(#names: #types),*) #output #block
    })
}

#[derive(Clone)]
struct Parameter {
    name: Ident,
    ty: Type,
}

fn parameters(item: &ItemFn) -> Result<Vec<Parameter>> {
    item.sig
        .inputs
        .iter()
        .map(|input| match input {
            FnArg::Typed(typed) => match &*typed.pat {
                Pat::Ident(pat) => Ok(Parameter { name: pat.ident.clone(), ty: (*typed.ty).clone() }),
                other => Err(Error::new_spanned(other, "parameters of entry points are plain names")),
            },
            FnArg::Receiver(receiver) => Err(Error::new_spanned(receiver, "entry points are functions")),
        })
        .collect()
}

/// One exported function, checked against its line in `functions.in`.
fn export(
    functions: &[Function],
    name: &Ident,
    item: &ItemFn,
    options: &Options,
    parameters: &[Parameter],
    default_stream: Option<Tokens>,
    body: &Ident,
) -> Result<Tokens> {
    let text = name.to_string();
    let function = functions
        .iter()
        .find(|function| function.name == text)
        .ok_or_else(|| Error::new(name.span(), format!("functions.in has no {text}")))?;
    if !function.done {
        return Err(Error::new(
            name.span(),
            format!("functions.in says that {text} is missing: make it done"),
        ));
    }
    let result = signature::check(function, name, parameters.iter().map(|p| &p.ty), &item.sig.output)?;

    let (names, types): (Vec<_>, Vec<_>) = parameters.iter().map(|p| (&p.name, &p.ty)).unzip();
    let arguments = default_stream.into_iter().chain(names.iter().map(|name| quote!(#name)));
    let call = match item.sig.unsafety {
        Some(_) => quote!(unsafe { #body(#(#arguments),*) }),
        None => quote!(#body(#(#arguments),*)),
    };
    let (docs, call, output) = match result {
        signature::Returned::Code(code) => {
            let Options { before_init, while_locked, .. } = *options;
            let sets_last_error = !options.keeps_last_error;
            let format =
                names.iter().map(|name| format!("{}={{:?}}", name.unraw())).collect::<Vec<_>>().join(", ");
            // Not to be confused with a parameter of the same name.
            let formatter = Ident::new("formatter", proc_macro2::Span::mixed_site());
            let call = quote! {
                const ENTRY: ::cuda_abi::shim::Entry = ::cuda_abi::shim::Entry {
                    name: #text,
                    before_init: #before_init,
                    while_locked: #while_locked,
                    sets_last_error: #sets_last_error,
                };
                crate::shim::call(&ENTRY, &|#formatter| ::core::write!(#formatter, #format, #(#names),*), move || #call)
            };
            (&item.attrs, call, quote!(-> #code))
        }
        signature::Returned::AsIs => {
            let output = match &item.sig.output {
                ReturnType::Default => quote!(),
                ReturnType::Type(_, ty) => quote!(-> #ty),
            };
            (&item.attrs, call, output)
        }
    };
    Ok(quote! {
        #(#docs)*
        ///
        /// # Safety
        /// Pointers are what the manual asks for.
        #[allow(non_snake_case, reason = "the exported name")]
        #[allow(clippy::too_many_arguments, reason = "the API's")]
        #[allow(clippy::undocumented_unsafe_blocks, reason = "the body's contract is the exported function's")]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn #name(#(#names: #types),*) #output {
            #call
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use syn::parse_quote;

    /// The expansion, or why there is none.
    fn try_expand(options: &[&str], item: ItemFn) -> std::result::Result<String, String> {
        let options = options.iter().map(|option| format_ident!("{option}")).collect();
        expand(options, item).map(|tokens| tokens.to_string()).map_err(|error| error.to_string())
    }

    #[test]
    fn pointers_may_be_spelt_as_what_they_are_for() {
        for item in [
            parse_quote!(
                fn cuDeviceGetCount(count: Out<i32>) -> CuResult {}
            ),
            parse_quote!(
                fn cuDeviceGetCount(count: *mut i32) -> crate::CuResult {}
            ),
            parse_quote!(
                unsafe fn cuDeviceGetCount(count: cuda_abi::args::Array<i32>) -> CuResult {}
            ),
        ] {
            let expanded = try_expand(&[], item).unwrap();
            assert!(expanded.contains("extern \"C\" fn cuDeviceGetCount"), "{expanded}");
        }
    }

    #[test]
    fn a_variant_is_exported_too() {
        let item = parse_quote!(
            fn cuStreamQuery(default: DefaultStream, hStream: CUstream) -> CuResult {}
        );
        let expanded = try_expand(&["ptsz"], item).unwrap();
        for name in ["cuStreamQuery", "cuStreamQuery_ptsz"] {
            assert!(expanded.contains(&format!("fn {name} (hStream : CUstream)")), "{expanded}");
        }
    }

    #[test]
    fn what_differs_from_the_table_is_refused() {
        let refusals: [(ItemFn, &str); 5] = [
            (
                parse_quote!(
                    fn cuNoSuchFunction() -> CuResult {}
                ),
                "functions.in has no cuNoSuchFunction",
            ),
            (
                parse_quote!(
                    fn cuDeviceGetCount(count: Out<u32>) -> CuResult {}
                ),
                "functions.in has *mut i32 here",
            ),
            (
                parse_quote!(
                    fn cuDeviceGetCount() -> CuResult {}
                ),
                "functions.in gives cuDeviceGetCount 1 parameters",
            ),
            (
                parse_quote!(
                    fn cuDeviceGetCount(count: Out<i32>) -> CudaResult {}
                ),
                "functions.in says that cuDeviceGetCount returns CUresult",
            ),
            (
                parse_quote!(
                    fn cuEGLApiInit() -> CuResult {}
                ),
                "functions.in says that cuEGLApiInit is missing: make it done",
            ),
        ];
        for (item, refusal) in refusals {
            assert_eq!(try_expand(&[], item), Err(refusal.to_owned()));
        }
        let item: ItemFn = parse_quote!(
            fn cuDeviceGetCount(count: Out<i32>) -> CuResult {}
        );
        assert_eq!(try_expand(&["quickly"], item), Err("unknown option of #[entry_point]".to_owned()));
    }
}
