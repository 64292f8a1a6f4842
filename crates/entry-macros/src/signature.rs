//! The comparison of a body's signature with its line in `functions.in`.

use cuda_abi::functions::Function;
use proc_macro2::Ident;
use quote::{ToTokens, quote};
use syn::{Error, GenericArgument, PathArguments, Result, ReturnType, Type};

/// What the exported function returns.
pub enum Returned {
    /// A code of this type, made from the body's `Result`.
    Code(proc_macro2::TokenStream),
    /// What the body returns.
    AsIs,
}

/// Compares, and says how to return.
pub fn check<'a>(
    function: &Function,
    name: &Ident,
    types: impl ExactSizeIterator<Item = &'a Type>,
    output: &ReturnType,
) -> Result<Returned> {
    if let Some(expected) = &function.parameters {
        if types.len() != expected.len() {
            let message = format!("functions.in gives {name} {} parameters", expected.len());
            return Err(Error::new(name.span(), message));
        }
        for (ty, expected) in types.zip(expected) {
            if !spellings(ty).iter().any(|spelling| spelling == expected) {
                return Err(Error::new_spanned(ty, format!("functions.in has {expected} here")));
            }
        }
    }
    let result = match output {
        ReturnType::Default => "()".to_owned(),
        ReturnType::Type(_, ty) => spellings(ty).remove(0),
    };
    match (result.as_str(), function.result) {
        ("CuResult", "CUresult") => Ok(Returned::Code(quote!(::cuda_abi::driver::CUresult))),
        ("CudaResult", "cudaError_t") => Ok(Returned::Code(quote!(::cuda_abi::runtime::cudaError_t))),
        ("NvmlResult", "nvmlReturn_t") => Ok(Returned::Code(quote!(::cuda_abi::nvml::nvmlReturn_t))),
        (is, expected) if is == expected => Ok(Returned::AsIs),
        (_, expected) => {
            Err(Error::new(name.span(), format!("functions.in says that {name} returns {expected}")))
        }
    }
}

/// How `functions.in` may spell a type: by the last part of its path, and with the pointer types of
/// `cuda_abi::args` as what they are in C.
fn spellings(ty: &Type) -> Vec<String> {
    match ty {
        Type::Ptr(pointer) => {
            let prefix = if pointer.mutability.is_some() { "*mut " } else { "*const " };
            with_prefix(&[prefix], &spellings(&pointer.elem))
        }
        Type::Path(path) => {
            let Some(last) = path.path.segments.last() else { return vec![] };
            let inner = match &last.arguments {
                PathArguments::AngleBracketed(arguments) => match arguments.args.first() {
                    Some(GenericArgument::Type(inner)) => spellings(inner),
                    _ => vec![],
                },
                _ => vec![],
            };
            match last.ident.to_string().as_str() {
                "Out" => with_prefix(&["*mut "], &inner),
                "In" => with_prefix(&["*const "], &inner),
                "Array" => with_prefix(&["*mut ", "*const "], &inner),
                "Text" => vec!["*const c_char".to_owned()],
                name => vec![name.to_owned()],
            }
        }
        other => vec![other.to_token_stream().to_string()],
    }
}

fn with_prefix(prefixes: &[&str], inner: &[String]) -> Vec<String> {
    prefixes.iter().flat_map(|prefix| inner.iter().map(move |inner| format!("{prefix}{inner}"))).collect()
}
