//! Pending invocations of the linker behind handles.

use crate::error::{CuResult, Failure};
use crate::handle::{Kind, Table};
use crate::images::{self, logged, of_bytes};
use crate::jit::JitOptions;
use cuda_abi::args::Text;
use cuda_abi::driver::*;
use cuda_abi::shim::locked;
use device::Error;
use device::module::{Code, Input, texts_of_objects};
use fatbin::writer::{ContainerWriter, EntryWriter};
use std::collections::HashSet;
use std::sync::{Arc, Mutex};

static LINKS: Table<Mutex<Link>> = Table::new(Kind::Link);

/// What images begin with that a link has made: they are PTX, and taken where machine code is.
const MARK: &str = "// linked\n";

/// What has been added so far.
struct Link {
    options: JitOptions,
    pieces: Vec<Piece>,
    /// What they define that nothing else may.
    names: HashSet<String>,
    /// A piece that was no code at all, or defined what another does: none can be added any more, and the link cannot be completed.
    broken: Option<Failure>,
    /// What has been made; nothing can be added any more.
    image: Option<Box<[u8]>>,
}

struct Piece {
    name: String,
    text: String,
}

/// Begins a link.
pub fn create(options: JitOptions) -> CuResult<CUlinkState> {
    let link =
        Mutex::new(Link { options, pieces: Vec::new(), names: HashSet::new(), broken: None, image: None });
    Ok(CUlinkState(LINKS.insert(Arc::new(link)).ok_or(CUDA_ERROR_OUT_OF_MEMORY)?))
}

/// Adds a piece, with options of its own.
pub fn add(
    state: CUlinkState,
    kind: CUjitInputType,
    bytes: &[u8],
    name: Text,
    mut options: JitOptions,
) -> CuResult {
    let name = name.get().map_or("piece".into(), |name| name.to_string_lossy().into_owned());
    let link = find(state)?;
    let mut link = locked(&link);
    let is_kind = kind != CU_JIT_NUM_INPUT_TYPES && kind.name().is_some();
    let is_compiled = kind == CU_JIT_INPUT_CUBIN;
    if link.image.is_some() || !is_kind || is_compiled && options.are_for_compiler() {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    if let Some(failure) = link.broken {
        return Err(failure);
    }
    let sm = link.options.sm_for_links()?;
    options.complete_with(&link.options);
    let mut remarks = Vec::new();
    let checked = texts_of(kind, bytes, sm).and_then(|texts| {
        options.check()?;
        let pieces = texts.into_iter().map(|text| {
            let text = options.tuned(text, sm, &mut remarks)?;
            Code::check_piece(Input { name: &name, text: &text }, sm)?;
            Ok(Piece { name: name.clone(), text })
        });
        pieces.collect::<device::Result<Vec<_>>>()
    });
    remarks.iter().for_each(|remark| link.options.inform(remark));
    match checked {
        Ok(pieces) => {
            let added = pieces.iter().map(|piece| Code::strong_names(&piece.text, sm));
            let added = added.collect::<device::Result<Vec<_>>>();
            link.pieces.extend(pieces);
            let Link { options, pieces, names, broken, .. } = &mut *link;
            // All is read again only where a name is there twice.
            let together = added.and_then(|added| {
                let added: Vec<String> = added.into_iter().flatten().collect();
                let all = names.len() + added.len();
                names.extend(added);
                if names.len() == all { Ok(()) } else { Code::check_together(&inputs(pieces), sm) }
            });
            together.map_err(|error| {
                let failure = logged(error, options);
                *broken = Some(failure);
                failure
            })
        }
        Err(error) => {
            let failure = match kind {
                CU_JIT_INPUT_NVVM => {
                    link.options
                        .complain(&format!("{name}: there is no compiler for the compiler's own code"));
                    CUDA_ERROR_JIT_COMPILER_NOT_FOUND.into()
                }
                _ => logged(error, &mut link.options),
            };
            if is_compiled || kind == CU_JIT_INPUT_NVVM {
                link.broken = Some(failure);
            }
            Err(failure)
        }
    }
}

fn inputs(pieces: &[Piece]) -> Vec<Input<'_>> {
    pieces.iter().map(|piece| Input { name: &piece.name, text: &piece.text }).collect()
}

/// The PTX in a piece.
fn texts_of(kind: CUjitInputType, bytes: &[u8], sm: u32) -> device::Result<Vec<String>> {
    match kind {
        CU_JIT_INPUT_CUBIN
            if !bytes.starts_with(MARK.as_bytes())
                && !is_fat_binary(bytes)
                && !bytes.starts_with(b"\x7fELF") =>
        {
            Err(Error::InvalidImage("no machine code that a link here has made".into()))
        }
        CU_JIT_INPUT_PTX | CU_JIT_INPUT_FATBINARY | CU_JIT_INPUT_CUBIN => {
            of_bytes(bytes, sm).map(|image| image.texts)
        }
        CU_JIT_INPUT_NVVM => Err(Error::NotSupported("the compiler's own code".into())),
        _ => texts_of_objects(bytes, sm),
    }
}

fn is_fat_binary(bytes: &[u8]) -> bool {
    bytes.starts_with(&fatbin::CONTAINER_MAGIC.to_le_bytes())
}

/// Links the pieces; answers the image, which lives as long as the link, and its size. A link is completed once.
pub fn complete(state: CUlinkState) -> CuResult<(*const u8, usize)> {
    let link = find(state)?;
    let mut link = locked(&link);
    if link.image.is_some() {
        return Err(CUDA_ERROR_INVALID_HANDLE.into());
    }
    if let Some(failure) = link.broken {
        return Err(failure);
    }
    let Link { options, pieces, image, .. } = &mut *link;
    let sm = options.sm()?;
    let linked = match inputs(pieces).as_slice() {
        [] => Ok(format!(".version 8.0\n.target sm_{sm}\n.address_size 64\n")),
        inputs => Code::link(inputs, sm),
    };
    let checked = linked.and_then(|text| Ok((Code::from_ptx(&text, sm)?, text)));
    options.finish();
    let (code, text) = checked.map_err(|error| logged(error, options))?;
    images::describe_all(&code, sm, options);
    let mut made = format!("{MARK}{text}").into_bytes();
    if sm == images::sm()? {
        made.push(0);
    } else {
        // For another device than this: a fat binary says so to whoever loads it.
        made = ContainerWriter::new().entry(EntryWriter::ptx(sm, made).arch_specific()).finish();
    }
    let image = image.insert(made.into());
    Ok((image.as_ptr(), image.len()))
}

/// Ends a link.
pub fn destroy(state: CUlinkState) -> CuResult {
    LINKS.remove(state.0).map(drop).map_err(|_| CUDA_ERROR_INVALID_HANDLE.into())
}

fn find(state: CUlinkState) -> CuResult<Arc<Mutex<Link>>> {
    LINKS.get(state.0).map_err(|_| CUDA_ERROR_INVALID_HANDLE.into())
}
