//! Texture and surface references behind their handles. A reference keeps what was set, one thing at a time; whenever that
//! makes up a texture, kernels find it.

use crate::arrays;
use crate::contexts;
use crate::error::CuResult;
use crate::formats;
use crate::handle::{Kind, Table};
use crate::texture_views::{Image, of_array, of_linear, of_mipmapped, of_rows};
use cuda_abi::driver::*;
use cuda_abi::shim::locked;
use device::attributes::Attributes;
use device::memory::ContextId;
use device::texture::{Object, Reference};
use std::sync::{Arc, Mutex};

static TEXTURES: Table<TextureReference> = Table::new(Kind::TextureReference);
static SURFACES: Table<SurfaceReference> = Table::new(Kind::SurfaceReference);

/// What a texture reference is bound to.
#[derive(Clone, Copy, Debug, Default)]
pub enum Target {
    /// Nothing.
    #[default]
    Nothing,
    /// An array.
    Array(CUarray),
    /// A mipmapped array.
    Mipmapped(CUmipmappedArray),
    /// Memory in a row.
    Linear {
        /// As the program gave it.
        address: CUdeviceptr,
        /// By which it lies behind the aligned address that kernels read from.
        offset: u64,
        /// Behind the program's address.
        bytes: usize,
    },
    /// Memory in rows.
    Rows {
        /// The first row's.
        address: CUdeviceptr,
        /// Texels of a row.
        width: usize,
        /// Rows.
        height: usize,
        /// Bytes from one row to the next.
        pitch: usize,
    },
}

/// What has been set.
#[derive(Clone, Copy, Debug)]
pub struct State {
    /// What is read.
    pub target: Target,
    /// What its texels are; an array's own until it is set otherwise.
    pub format: (CUarray_format, u32),
    /// How it is read.
    pub texture: CUDA_TEXTURE_DESC,
}

/// A texture reference of a module, or of the program's own making.
pub struct TextureReference {
    owner: ContextId,
    /// The module that it goes with, and the variable that kernels read.
    variable: Option<(CUmodule, Arc<Reference>)>,
    state: Mutex<State>,
}

/// A surface reference of a module.
pub struct SurfaceReference {
    owner: ContextId,
    module: CUmodule,
    reference: Arc<Reference>,
    array: Mutex<CUarray>,
}

/// The texture reference of a handle.
pub fn find(handle: CUtexref) -> CuResult<Arc<TextureReference>> {
    TEXTURES.get(handle.0).map_err(|_| CUDA_ERROR_INVALID_HANDLE.into())
}

/// The surface reference of a handle.
pub fn find_surface(handle: CUsurfref) -> CuResult<Arc<SurfaceReference>> {
    SURFACES.get(handle.0).map_err(|_| CUDA_ERROR_INVALID_HANDLE.into())
}

/// Makes a texture reference that no kernel reads.
pub fn create() -> CuResult<CUtexref> {
    insert(contexts::usable()?.id(), None)
}

/// Gives a module's texture reference a handle.
pub fn insert(owner: ContextId, variable: Option<(CUmodule, Arc<Reference>)>) -> CuResult<CUtexref> {
    let reference = TextureReference { owner, variable, state: Mutex::default() };
    TEXTURES.insert(Arc::new(reference)).map(CUtexref).ok_or(CUDA_ERROR_OUT_OF_MEMORY.into())
}

/// Gives a module's surface reference a handle.
pub fn insert_surface(owner: ContextId, module: CUmodule, reference: Arc<Reference>) -> CuResult<CUsurfref> {
    let reference = SurfaceReference { owner, module, reference, array: Mutex::default() };
    SURFACES.insert(Arc::new(reference)).map(CUsurfref).ok_or(CUDA_ERROR_OUT_OF_MEMORY.into())
}

/// Destroys a texture reference of the program's making; a module's goes with the module.
pub fn destroy(handle: CUtexref) -> CuResult {
    if find(handle)?.variable.is_some() {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    TEXTURES.remove(handle.0).map(drop).map_err(|_| CUDA_ERROR_INVALID_HANDLE.into())
}

/// Makes the handles of a module's references stale.
pub fn forget_module(module: CUmodule) {
    TEXTURES.remove_all(|texture| texture.variable.as_ref().is_some_and(|(of, _)| *of == module));
    SURFACES.remove_all(|surface| surface.module == module);
}

/// Makes the handles of a context's references stale.
pub fn forget(owner: ContextId) {
    TEXTURES.remove_all(|texture| texture.owner == owner);
    SURFACES.remove_all(|surface| surface.owner == owner);
}

impl Default for State {
    fn default() -> State {
        let texture = CUDA_TEXTURE_DESC {
            addressMode: [CU_TR_ADDRESS_MODE_CLAMP; 3],
            filterMode: CU_TR_FILTER_MODE_POINT,
            flags: 0,
            maxAnisotropy: 0,
            mipmapFilterMode: CU_TR_FILTER_MODE_POINT,
            mipmapLevelBias: 0.0,
            minMipmapLevelClamp: 0.0,
            maxMipmapLevelClamp: 0.0,
            borderColor: [0.0; 4],
            reserved: [0; 12],
        };
        State { target: Target::Nothing, format: (CU_AD_FORMAT_FLOAT, 1), texture }
    }
}

impl TextureReference {
    /// What has been set.
    pub fn state(&self) -> State {
        *locked(&self.state)
    }

    /// Changes what is set. Kernels that are launched from now on see it, as far as it makes up a texture.
    pub fn change(&self, change: impl FnOnce(&mut State) -> CuResult) -> CuResult {
        let context = contexts::usable()?;
        let mut state = locked(&self.state);
        let mut changed = *state;
        change(&mut changed)?;
        *state = changed;
        if let Some((_, variable)) = &self.variable {
            variable.bind(changed.object(context.attributes()).ok());
        }
        Ok(())
    }
}

impl State {
    /// Reads something else from now on, which must make up a texture.
    pub fn bind(&mut self, target: Target) -> CuResult {
        self.target = target;
        self.image(contexts::usable()?.attributes()).map(drop)
    }

    fn image(&self, device: &Attributes) -> CuResult<Image> {
        let (format, channels) = self.format;
        match self.target {
            Target::Nothing => Err(CUDA_ERROR_INVALID_VALUE.into()),
            Target::Array(array) => of_array(&*arrays::find(array)?).read_as(self.texels()?),
            Target::Mipmapped(array) => {
                of_mipmapped(&*arrays::find_mipmapped(array)?)?.read_as(self.texels()?)
            }
            Target::Linear { address, offset, bytes } => {
                let linear = CUDA_RESOURCE_LINEAR {
                    devPtr: CUdeviceptr(address.0 - offset),
                    format,
                    numChannels: channels,
                    sizeInBytes: bytes.saturating_add(offset as usize),
                };
                of_linear(&linear, device)
            }
            Target::Rows { address, width, height, pitch } => {
                let rows = CUDA_RESOURCE_PITCH2D {
                    devPtr: address,
                    format,
                    numChannels: channels,
                    width,
                    height,
                    pitchInBytes: pitch,
                };
                of_rows(&rows, device)
            }
        }
    }

    fn texels(&self) -> CuResult<simt_ir::texture::Format> {
        formats::of_array(self.format.0, self.format.1)
    }

    fn object(&self, device: &Attributes) -> CuResult<Object> {
        let image = self.image(device)?;
        let sampler = image.sampler(&self.texture)?;
        Ok(Object::Texture(image.view, sampler))
    }
}

impl SurfaceReference {
    /// The array it is bound to; null if there is none.
    pub fn array(&self) -> CUarray {
        *locked(&self.array)
    }

    /// Binds it to an array made for surfaces. Kernels that are launched from now on see it.
    pub fn bind(&self, handle: CUarray) -> CuResult {
        let array = arrays::find(handle)?;
        if array.descriptor.Flags & CUDA_ARRAY3D_SURFACE_LDST == 0 {
            return Err(CUDA_ERROR_INVALID_VALUE.into());
        }
        let mut bound = locked(&self.array);
        *bound = handle;
        self.reference.bind(Some(Object::Surface(of_array(&array).surface()?)));
        Ok(())
    }
}
