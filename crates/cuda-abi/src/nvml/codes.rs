//! Result codes of the management library, with the texts that `nvmlErrorString` gives.

c_codes! {
    /// What a function of the management library answers.
    nvmlReturn_t {
        NVML_SUCCESS = 0, "Success";
        NVML_ERROR_UNINITIALIZED = 1, "Uninitialized";
        NVML_ERROR_INVALID_ARGUMENT = 2, "Invalid Argument";
        NVML_ERROR_NOT_SUPPORTED = 3, "Not Supported";
        NVML_ERROR_NO_PERMISSION = 4, "Insufficient Permissions";
        NVML_ERROR_ALREADY_INITIALIZED = 5, "Already Initialized";
        NVML_ERROR_NOT_FOUND = 6, "Not Found";
        NVML_ERROR_INSUFFICIENT_SIZE = 7, "Insufficient Size";
        NVML_ERROR_INSUFFICIENT_POWER = 8, "Insufficient External Power";
        NVML_ERROR_DRIVER_NOT_LOADED = 9, "Driver Not Loaded";
        NVML_ERROR_TIMEOUT = 10, "Timeout";
        NVML_ERROR_IRQ_ISSUE = 11, "Interrupt Request Issue";
        NVML_ERROR_LIBRARY_NOT_FOUND = 12, "NVML Shared Library Not Found";
        NVML_ERROR_FUNCTION_NOT_FOUND = 13, "Function Not Found";
        NVML_ERROR_CORRUPTED_INFOROM = 14, "Corrupted infoROM";
        NVML_ERROR_GPU_IS_LOST = 15, "GPU is lost";
        NVML_ERROR_RESET_REQUIRED = 16, "GPU requires reset";
        NVML_ERROR_OPERATING_SYSTEM = 17, "GPU access blocked by the operating system";
        NVML_ERROR_LIB_RM_VERSION_MISMATCH = 18, "Driver/library version mismatch";
        NVML_ERROR_IN_USE = 19, "In use by another client";
        NVML_ERROR_MEMORY = 20, "Insufficient Memory";
        NVML_ERROR_NO_DATA = 21, "No data";
        NVML_ERROR_VGPU_ECC_NOT_SUPPORTED = 22, "vGPU ECC not supported";
        NVML_ERROR_INSUFFICIENT_RESOURCES = 23, "Insufficient Resources";
        NVML_ERROR_FREQ_NOT_SUPPORTED = 24, "Invalid Frequency";
        NVML_ERROR_ARGUMENT_VERSION_MISMATCH = 25, "Argument version mismatch";
        NVML_ERROR_DEPRECATED = 26, "Requested functionality has been deprecated";
        NVML_ERROR_NOT_READY = 27, "System is not in ready state";
        NVML_ERROR_GPU_NOT_FOUND = 28, "No supported GPUs were found";
        NVML_ERROR_INVALID_STATE = 29, "Resource not in correct state to perform requested operation";
        NVML_ERROR_RESET_TYPE_NOT_SUPPORTED = 30, "Reset type is not supported for given device";
        NVML_ERROR_UNKNOWN = 999, "Unknown Error";
    }
}
