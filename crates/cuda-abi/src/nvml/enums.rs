//! Enumerations of the management library.

c_enum! {
    /// Whether something is on.
    nvmlEnableState_t {
        NVML_FEATURE_DISABLED = 0,
        NVML_FEATURE_ENABLED = 1,
    }
}

c_enum! {
    /// Who may have contexts on a device.
    nvmlComputeMode_t {
        NVML_COMPUTEMODE_DEFAULT = 0,
        NVML_COMPUTEMODE_EXCLUSIVE_THREAD = 1,
        NVML_COMPUTEMODE_PROHIBITED = 2,
        NVML_COMPUTEMODE_EXCLUSIVE_PROCESS = 3,
    }
}

c_enum! {
    /// Clocks of a device.
    nvmlClockType_t {
        NVML_CLOCK_GRAPHICS = 0,
        NVML_CLOCK_SM = 1,
        NVML_CLOCK_MEM = 2,
        NVML_CLOCK_VIDEO = 3,
    }
}

c_enum! {
    /// Where a temperature is measured.
    nvmlTemperatureSensors_t {
        NVML_TEMPERATURE_GPU = 0,
    }
}

c_enum! {
    /// Under which name a board is sold.
    nvmlBrandType_t {
        NVML_BRAND_UNKNOWN = 0,
    }
}

c_enum! {
    /// How far apart two devices are.
    nvmlGpuTopologyLevel_t {
        NVML_TOPOLOGY_INTERNAL = 0,
        NVML_TOPOLOGY_SINGLE = 10,
        NVML_TOPOLOGY_MULTIPLE = 20,
        NVML_TOPOLOGY_HOSTBRIDGE = 30,
        NVML_TOPOLOGY_NODE = 40,
        NVML_TOPOLOGY_SYSTEM = 50,
    }
}

c_enum! {
    /// What two devices may do with each other's memory.
    nvmlGpuP2PCapsIndex_t {
        NVML_P2P_CAPS_INDEX_READ = 0,
        NVML_P2P_CAPS_INDEX_WRITE = 1,
        NVML_P2P_CAPS_INDEX_NVLINK = 2,
        NVML_P2P_CAPS_INDEX_ATOMICS = 3,
        NVML_P2P_CAPS_INDEX_PCI = 4,
    }
}

c_enum! {
    /// Whether they can.
    nvmlGpuP2PStatus_t {
        NVML_P2P_STATUS_OK = 0,
        NVML_P2P_STATUS_CHIPSET_NOT_SUPPORTED = 1,
        NVML_P2P_STATUS_GPU_NOT_SUPPORTED = 2,
        NVML_P2P_STATUS_IOH_TOPOLOGY_NOT_SUPPORTED = 3,
        NVML_P2P_STATUS_DISABLED_BY_REGKEY = 4,
        NVML_P2P_STATUS_NOT_SUPPORTED = 5,
        NVML_P2P_STATUS_UNKNOWN = 6,
    }
}

c_consts! {
    NVML_DEVICE_ARCH_KEPLER: u32 = 2;
    NVML_DEVICE_ARCH_MAXWELL: u32 = 3;
    NVML_DEVICE_ARCH_PASCAL: u32 = 4;
    NVML_DEVICE_ARCH_VOLTA: u32 = 5;
    NVML_DEVICE_ARCH_TURING: u32 = 6;
    NVML_DEVICE_ARCH_AMPERE: u32 = 7;
    NVML_DEVICE_ARCH_ADA: u32 = 8;
    NVML_DEVICE_ARCH_HOPPER: u32 = 9;
    NVML_DEVICE_ARCH_BLACKWELL: u32 = 10;
    NVML_DEVICE_ARCH_UNKNOWN: u32 = 0xffff_ffff;
    NVML_AFFINITY_SCOPE_NODE: u32 = 0;
    NVML_AFFINITY_SCOPE_SOCKET: u32 = 1;
}
