//! Resources of a device, and contexts that are limited to some of them.
#![allow(missing_docs, reason = "fields are the manual's; the structures say what they are for")]

c_enum! {
    /// Sorts of resources.
    CUdevResourceType {
        CU_DEV_RESOURCE_TYPE_INVALID = 0,
        CU_DEV_RESOURCE_TYPE_SM = 1,
    }
}

/// Multiprocessors.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CUdevSmResource {
    pub smCount: u32,
    pub minSmPartitionSize: u32,
    pub smCoscheduledAlignment: u32,
}

/// A resource of the sort that `type` names. What is in between belongs to the driver.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CUdevResource {
    pub r#type: CUdevResourceType,
    pub internal: [u8; 92],
    pub sm: CUdevSmResource,
    pub oversize: [u8; 36],
}

c_consts! {
    CU_GREEN_CTX_DEFAULT_STREAM: u32 = 1;
    CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING: u32 = 1;
    CU_DEV_SM_RESOURCE_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE: u32 = 2;
}
