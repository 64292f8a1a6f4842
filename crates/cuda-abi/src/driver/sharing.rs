//! Memory that devices share, and memory as other subsystems of the machine see it.
#![allow(missing_docs, reason = "fields are the manual's; the structures say what they are for")]

c_enum! {
    /// As what a range of addresses is handed out.
    CUmemRangeHandleType {
        CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD = 1,
    }
}

c_enum! {
    /// Which granularity of multicast objects is asked for.
    CUmulticastGranularity_flags {
        CU_MULTICAST_GRANULARITY_MINIMUM = 0,
        CU_MULTICAST_GRANULARITY_RECOMMENDED = 1,
    }
}

c_consts! {
    CU_MEM_RANGE_FLAG_DMA_BUF_MAPPING_TYPE_PCIE: u64 = 1;
}

/// What a multicast object is to be.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUmulticastObjectProp {
    pub numDevices: u32,
    pub size: usize,
    pub handleTypes: u64,
    pub flags: u64,
}
