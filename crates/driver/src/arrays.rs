//! Arrays and mipmapped arrays behind their handles.

use crate::array_shapes::{Shape, shape};
use crate::contexts::{self, Context};
use crate::error::CuResult;
use crate::handle::{Kind, Table};
use crate::platform::platform;
use cuda_abi::driver::*;
use device::memory::{ArrayLayout, ArrayMemory, ContextId, Level};
use std::sync::Arc;

static ARRAYS: Table<Array> = Table::new(Kind::Array);
static MIPMAPPED: Table<MipmappedArray> = Table::new(Kind::MipmappedArray);

/// An array, or one level of a mipmapped array, which goes with it.
pub struct Array {
    /// As it was asked for; a level's as it would be asked for.
    pub descriptor: CUDA_ARRAY3D_DESCRIPTOR,
    /// What it is.
    pub shape: Shape,
    /// Where its texels are.
    pub level: Level,
    owner: ContextId,
    /// What is freed with it; a level has no memory of its own.
    memory: Option<ArrayMemory>,
}

/// An array with mipmap levels.
pub struct MipmappedArray {
    /// What it is.
    pub shape: Shape,
    memory: ArrayMemory,
    levels: Vec<CUarray>,
}

impl Array {
    /// Its memory; `None` for a level.
    pub fn memory(&self) -> Option<&ArrayMemory> {
        self.memory.as_ref()
    }
}

impl MipmappedArray {
    /// The context that it goes with.
    pub fn owner(&self) -> ContextId {
        self.memory.owner()
    }

    /// Where its levels' texels are, the largest level first.
    pub fn levels(&self) -> &[Level] {
        self.memory.levels()
    }

    /// Where its texels are.
    pub fn memory(&self) -> &ArrayMemory {
        &self.memory
    }

    /// The array of a level.
    pub fn level(&self, level: u32) -> CuResult<CUarray> {
        Ok(*self.levels.get(level as usize).ok_or(CUDA_ERROR_INVALID_VALUE)?)
    }
}

/// The array of a handle.
pub fn find(handle: CUarray) -> CuResult<Arc<Array>> {
    ARRAYS.get(handle.0).map_err(|_| CUDA_ERROR_INVALID_HANDLE.into())
}

/// Where the texels of an array are that a copy names.
pub fn level(handle: CUarray) -> CuResult<Level> {
    Ok(ARRAYS.get(handle.0).map_err(|_| CUDA_ERROR_INVALID_VALUE)?.level)
}

/// The mipmapped array of a handle.
pub fn find_mipmapped(handle: CUmipmappedArray) -> CuResult<Arc<MipmappedArray>> {
    MIPMAPPED.get(handle.0).map_err(|_| CUDA_ERROR_INVALID_HANDLE.into())
}

/// The array that has a texel at an address.
pub fn at(address: u64) -> Option<(CUarray, Arc<Array>)> {
    let found = ARRAYS.find_all(|array| array.level.contains(address)).pop();
    found.map(|(handle, array)| (CUarray(handle), array))
}

/// Makes an array in the current context.
pub fn create(descriptor: CUDA_ARRAY3D_DESCRIPTOR) -> CuResult<CUarray> {
    let context = contexts::usable()?;
    let shape = shape(&descriptor, None, context.attributes())?;
    let memory = context.allocate_array(&shape.layout)?;
    let (level, owner) = (memory.levels()[0], context.id());
    insert(Array { descriptor, shape, level, owner, memory: Some(memory) })
}

/// Makes a mipmapped array in the current context.
pub fn create_mipmapped(descriptor: CUDA_ARRAY3D_DESCRIPTOR, levels: u32) -> CuResult<CUmipmappedArray> {
    create_mipmapped_in(descriptor, levels, |context, layout| Ok(context.allocate_array(layout)?))
}

/// Makes a mipmapped array in the current context, in memory that `place` finds for it.
pub fn create_mipmapped_in(
    descriptor: CUDA_ARRAY3D_DESCRIPTOR,
    levels: u32,
    place: impl FnOnce(&Context, &ArrayLayout) -> CuResult<ArrayMemory>,
) -> CuResult<CUmipmappedArray> {
    let context = contexts::usable()?;
    let shape = shape(&descriptor, Some(levels), context.attributes())?;
    let memory = place(&context, &shape.layout)?;
    let of_level = |level: &Level| {
        // Dimensions that there are not stay 0.
        let count = |of_all: usize, of_level: u64| if of_all == 0 { 0 } else { of_level as usize };
        let descriptor = CUDA_ARRAY3D_DESCRIPTOR {
            Width: level.width as usize,
            Height: count(descriptor.Height, level.height),
            Depth: count(descriptor.Depth, level.depth),
            ..descriptor
        };
        insert(Array { descriptor, shape, level: *level, owner: context.id(), memory: None })
    };
    let levels = memory.levels().iter().map(of_level).collect::<CuResult<_>>()?;
    let array = Arc::new(MipmappedArray { shape, memory, levels });
    MIPMAPPED.insert(array).map(CUmipmappedArray).ok_or(CUDA_ERROR_OUT_OF_MEMORY.into())
}

fn insert(array: Array) -> CuResult<CUarray> {
    ARRAYS.insert(Arc::new(array)).map(CUarray).ok_or(CUDA_ERROR_OUT_OF_MEMORY.into())
}

/// Destroys an array, once the work of its context is done. A level stays until the array goes that it is of.
pub fn destroy(handle: CUarray) -> CuResult {
    let array = find(handle)?;
    let Some(memory) = &array.memory else { return Ok(()) };
    platform()?.free_array(memory)?;
    let _ = ARRAYS.remove(handle.0);
    Ok(())
}

/// Destroys a mipmapped array with its levels.
pub fn destroy_mipmapped(handle: CUmipmappedArray) -> CuResult {
    let array = find_mipmapped(handle)?;
    platform()?.free_array(&array.memory)?;
    let _ = MIPMAPPED.remove(handle.0);
    for level in &array.levels {
        let _ = ARRAYS.remove(level.0);
    }
    Ok(())
}

/// Makes the handles of a context's arrays stale.
pub fn forget(owner: ContextId) {
    ARRAYS.remove_all(|array| array.owner == owner);
    MIPMAPPED.remove_all(|array| array.owner() == owner);
}
