//! What can be asked about arrays and atomic operations.
#![allow(missing_docs, reason = "fields are the manual's; the structures say what they are for")]

c_enum! {
    /// An atomic operation.
    CUatomicOperation {
        CU_ATOMIC_OPERATION_INTEGER_ADD = 0,
        CU_ATOMIC_OPERATION_INTEGER_MIN = 1,
        CU_ATOMIC_OPERATION_INTEGER_MAX = 2,
        CU_ATOMIC_OPERATION_INTEGER_INCREMENT = 3,
        CU_ATOMIC_OPERATION_INTEGER_DECREMENT = 4,
        CU_ATOMIC_OPERATION_AND = 5,
        CU_ATOMIC_OPERATION_OR = 6,
        CU_ATOMIC_OPERATION_XOR = 7,
        CU_ATOMIC_OPERATION_EXCHANGE = 8,
        CU_ATOMIC_OPERATION_CAS = 9,
        CU_ATOMIC_OPERATION_FLOAT_ADD = 10,
        CU_ATOMIC_OPERATION_FLOAT_MIN = 11,
        CU_ATOMIC_OPERATION_FLOAT_MAX = 12,
    }
}

c_consts! {
    CU_ATOMIC_CAPABILITY_SIGNED: u32 = 1;
    CU_ATOMIC_CAPABILITY_UNSIGNED: u32 = 2;
    CU_ATOMIC_CAPABILITY_REDUCTION: u32 = 4;
    CU_ATOMIC_CAPABILITY_SCALAR_32: u32 = 8;
    CU_ATOMIC_CAPABILITY_SCALAR_64: u32 = 16;
    CU_ATOMIC_CAPABILITY_SCALAR_128: u32 = 32;
    CU_ATOMIC_CAPABILITY_VECTOR_32x4: u32 = 64;
}

/// The memory that an array needs.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUDA_ARRAY_MEMORY_REQUIREMENTS {
    pub size: usize,
    pub alignment: usize,
    pub reserved: [u32; 4],
}

/// How a sparse array is divided into tiles.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUDA_ARRAY_SPARSE_PROPERTIES {
    /// Width, height and depth in elements.
    pub tileExtent: [u32; 3],
    pub miptailFirstLevel: u32,
    pub miptailSize: u64,
    pub flags: u32,
    pub reserved: [u32; 4],
}

/// What another process needs to reach an allocation of a shared memory pool.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUmemPoolPtrExportData {
    pub reserved: [u8; 64],
}
