//! What gives arrays without memory of their own memory.
#![allow(missing_docs, reason = "fields are the manual's; the structures say what they are for")]

use super::*;
use core::fmt;

/// A part of an array, and the memory that it gets: `resource`, `subresource` and `memHandle` are told by the types before them.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUarrayMapInfo {
    pub resourceType: CUresourcetype,
    pub resource: CUarrayMapInfo_resource,
    pub subresourceType: CUarraySparseSubresourceType,
    pub subresource: CUarrayMapInfo_subresource,
    pub memOperationType: CUmemOperationType,
    pub memHandleType: CUmemHandleType,
    pub memHandle: CUmemGenericAllocationHandle,
    /// In the memory.
    pub offset: u64,
    pub deviceBitMask: u32,
    pub flags: u32,
    pub reserved: [u32; 2],
}

/// The array of a [`CUarrayMapInfo`].
#[repr(C)]
#[derive(Clone, Copy)]
pub union CUarrayMapInfo_resource {
    pub mipmap: CUmipmappedArray,
    pub array: CUarray,
}

/// The part of a [`CUarrayMapInfo`].
#[repr(C)]
#[derive(Clone, Copy)]
pub union CUarrayMapInfo_subresource {
    pub sparseLevel: CUarrayMapInfo_sparseLevel,
    pub miptail: CUarrayMapInfo_miptail,
}

/// A box of texels of a level.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUarrayMapInfo_sparseLevel {
    pub level: u32,
    pub layer: u32,
    pub offsetX: u32,
    pub offsetY: u32,
    pub offsetZ: u32,
    pub extentWidth: u32,
    pub extentHeight: u32,
    pub extentDepth: u32,
}

/// Bytes of a mip tail.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUarrayMapInfo_miptail {
    pub layer: u32,
    pub offset: u64,
    pub size: u64,
}

impl fmt::Debug for CUarrayMapInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Which members of the unions count is the types' business, so only those are shown.
        f.debug_struct("CUarrayMapInfo")
            .field("resourceType", &self.resourceType)
            .field("subresourceType", &self.subresourceType)
            .field("memOperationType", &self.memOperationType)
            .finish_non_exhaustive()
    }
}

c_enum! {
    /// What part of an array without memory of its own is meant.
    CUarraySparseSubresourceType {
        CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_SPARSE_LEVEL = 0,
        CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_MIPTAIL = 1,
    }
}

c_enum! {
    /// What becomes of it.
    CUmemOperationType {
        CU_MEM_OPERATION_TYPE_MAP = 1,
        CU_MEM_OPERATION_TYPE_UNMAP = 2,
    }
}

c_enum! {
    /// What handle the memory is named by.
    CUmemHandleType {
        CU_MEM_HANDLE_TYPE_GENERIC = 0,
    }
}

c_consts! {
    CU_ARRAY_SPARSE_PROPERTIES_SINGLE_MIPTAIL: u32 = 1;
    CU_MEM_CREATE_USAGE_TILE_POOL: u16 = 1;
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::mem::{offset_of, size_of};

    #[test]
    fn fields_lie_where_c_has_them() {
        assert_eq!(size_of::<CUarrayMapInfo>(), 96);
        assert_eq!(offset_of!(CUarrayMapInfo, subresource), 24);
        assert_eq!(offset_of!(CUarrayMapInfo, memOperationType), 56);
        assert_eq!(offset_of!(CUarrayMapInfo, offset), 72);
    }
}
