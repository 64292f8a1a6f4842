//! Batches of copies.
#![allow(missing_docs, reason = "fields are the manual's; the structures say what they are for")]

use super::*;
use core::fmt;

c_enum! {
    /// When the source of a copy is read.
    CUmemcpySrcAccessOrder {
        CU_MEMCPY_SRC_ACCESS_ORDER_INVALID = 0,
        CU_MEMCPY_SRC_ACCESS_ORDER_STREAM = 1,
        CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL = 2,
        CU_MEMCPY_SRC_ACCESS_ORDER_ANY = 3,
    }
}

c_enum! {
    /// What one end of a copy of a box is.
    CUmemcpy3DOperandType {
        CU_MEMCPY_OPERAND_TYPE_POINTER = 1,
        CU_MEMCPY_OPERAND_TYPE_ARRAY = 2,
    }
}

c_consts! {
    CU_MEMCPY_FLAG_DEFAULT: u32 = 0;
    CU_MEMCPY_FLAG_PREFER_OVERLAP_WITH_COMPUTE: u32 = 1;
}

/// How copies of a batch are made.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUmemcpyAttributes {
    pub srcAccessOrder: CUmemcpySrcAccessOrder,
    pub srcLocHint: CUmemLocation,
    pub dstLocHint: CUmemLocation,
    pub flags: u32,
}

/// A place in an array; `x` in elements.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CUoffset3D {
    pub x: usize,
    pub y: usize,
    pub z: usize,
}

/// The size of a box; `width` in elements.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CUextent3D {
    pub width: usize,
    pub height: usize,
    pub depth: usize,
}

/// One end of a copy of a box: `op` is told by `type`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUmemcpy3DOperand {
    pub r#type: CUmemcpy3DOperandType,
    pub op: CUmemcpy3DPlace,
}

/// The place of a [`CUmemcpy3DOperand`].
#[repr(C)]
#[derive(Clone, Copy)]
pub union CUmemcpy3DPlace {
    pub ptr: CUmemcpy3DMemory,
    pub array: CUmemcpy3DArray,
}

/// Rows of `rowLength` elements in layers of `layerHeight` rows; zero stands for the extent's.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUmemcpy3DMemory {
    pub ptr: CUdeviceptr,
    pub rowLength: usize,
    pub layerHeight: usize,
    pub locHint: CUmemLocation,
}

/// A place in an array.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUmemcpy3DArray {
    pub array: CUarray,
    pub offset: CUoffset3D,
}

impl fmt::Debug for CUmemcpy3DOperand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Which member of the union counts is the type's business, so only that is shown.
        f.debug_struct("CUmemcpy3DOperand").field("type", &self.r#type).finish_non_exhaustive()
    }
}

/// One copy of a batch of boxes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUDA_MEMCPY3D_BATCH_OP {
    pub src: CUmemcpy3DOperand,
    pub dst: CUmemcpy3DOperand,
    pub extent: CUextent3D,
    pub srcAccessOrder: CUmemcpySrcAccessOrder,
    pub flags: u32,
}
