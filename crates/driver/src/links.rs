//! Pending invocations of the linker behind handles.

use crate::error::CuResult;
use crate::handle::{Kind, Table};
use crate::images::{logged, of_bytes, sm};
use crate::jit::JitOptions;
use cuda_abi::args::Text;
use cuda_abi::driver::*;
use device::Error;
use device::module::{Code, Input, texts_of_objects};
use std::ffi::CString;
use std::sync::{Arc, Mutex, PoisonError};

static LINKS: Table<Mutex<Link>> = Table::new(Kind::Link);

/// What has been added so far.
struct Link {
    options: JitOptions,
    pieces: Vec<Piece>,
    image: Option<CString>,
}

struct Piece {
    name: String,
    text: String,
}

/// Begins a link.
pub fn create(options: JitOptions) -> CuResult<CUlinkState> {
    let link = Mutex::new(Link { options, pieces: Vec::new(), image: None });
    Ok(CUlinkState(LINKS.insert(Arc::new(link)).ok_or(CUDA_ERROR_OUT_OF_MEMORY)?))
}

/// Adds a piece.
pub fn add(state: CUlinkState, kind: CUjitInputType, bytes: &[u8], name: Text) -> CuResult {
    let name = name.get().map_or("piece".into(), |name| name.to_string_lossy().into_owned());
    let link = find(state)?;
    let mut link = link.lock().unwrap_or_else(PoisonError::into_inner);
    let sm = sm()?;
    let texts = match kind {
        // An image of an earlier link is PTX too.
        CU_JIT_INPUT_PTX | CU_JIT_INPUT_FATBINARY | CU_JIT_INPUT_CUBIN => {
            of_bytes(bytes)?.map(|image| image.texts)
        }
        CU_JIT_INPUT_OBJECT | CU_JIT_INPUT_LIBRARY => texts_of_objects(bytes, sm),
        CU_JIT_INPUT_NVVM => {
            Err(Error::NotSupported(format!("{name}: the compiler's own code cannot be read")))
        }
        _ => return Err(CUDA_ERROR_INVALID_VALUE.into()),
    };
    let checked = texts.and_then(|texts| {
        for text in &texts {
            Code::check_piece(Input { name: &name, text }, sm)?;
        }
        Ok(texts)
    });
    match checked {
        Ok(texts) => {
            link.pieces.extend(texts.into_iter().map(|text| Piece { name: name.clone(), text }));
            Ok(())
        }
        Err(error) => Err(logged(error, &mut link.options)),
    }
}

/// Links the pieces; answers the image, which lives as long as the link, and its size.
pub fn complete(state: CUlinkState) -> CuResult<(*const u8, usize)> {
    let link = find(state)?;
    let mut link = link.lock().unwrap_or_else(PoisonError::into_inner);
    let sm = sm()?;
    let Link { options, pieces, image } = &mut *link;
    let inputs: Vec<Input<'_>> =
        pieces.iter().map(|piece| Input { name: &piece.name, text: &piece.text }).collect();
    let linked = match inputs.as_slice() {
        [] => Ok(format!(".version 8.0\n.target sm_{sm}\n.address_size 64\n")),
        inputs => Code::link(inputs, sm),
    };
    let checked = linked.and_then(|text| Code::from_ptx(&text, sm).map(|_| text));
    options.finish();
    let text = checked.map_err(|error| logged(error, options))?;
    let text = image.insert(CString::new(text).map_err(|_| CUDA_ERROR_INVALID_IMAGE)?);
    Ok((text.as_ptr().cast(), text.as_bytes_with_nul().len()))
}

/// Ends a link.
pub fn destroy(state: CUlinkState) -> CuResult {
    LINKS.remove(state.0).map(drop).map_err(|_| CUDA_ERROR_INVALID_HANDLE.into())
}

fn find(state: CUlinkState) -> CuResult<Arc<Mutex<Link>>> {
    LINKS.get(state.0).map_err(|_| CUDA_ERROR_INVALID_HANDLE.into())
}
