//! Occupancy.

use super::common::*;

/// A kernel with 32 KiB of shared memory.
const SHARED: &str = ".version 8.0
.target sm_80
.address_size 64
.visible .entry shared() {
    .shared .align 4 .b8 buffer[32768];
    .reg .b32 %r<2>;
    mov.u32 %r1, buffer;
    st.shared.u32 [%r1], %r1;
    ret;
}
.visible .entry bounded() .maxntid 64, 1, 1 { ret; }
.visible .entry exact() .reqntid 64, 1, 1 { ret; }
.visible .entry plain() { ret; }
";

fn active(kernel: CUfunction, threads: i32, shared: usize) -> i32 {
    let (mut blocks, mut with_flags) = (-1, -1);
    cu!(
        cuOccupancyMaxActiveBlocksPerMultiprocessor(&mut blocks, kernel, threads, shared);
        cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&mut with_flags, kernel, threads, shared, CU_OCCUPANCY_DEFAULT);
    );
    assert_eq!(blocks, with_flags);
    blocks
}

pub fn threads_blocks_and_shared_memory_limit() {
    new_context();
    let module = load(SHARED);
    let (plain, shared) = (function(module, c"plain"), function(module, c"shared"));
    let threads = attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
    let blocks = attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR);
    assert_eq!(active(plain, 1024, 0), threads / 1024);
    assert_eq!(active(plain, 256, 0), threads / 256);
    // A warp is not divided.
    assert_eq!(active(plain, 1, 0), blocks);
    assert_eq!(active(plain, 129, 0), (threads / 160).min(blocks));
    // A block has a kilobyte more than it asks for.
    let memory = attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
    let reserved = attribute(CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK);
    assert_eq!(active(shared, 128, 0), memory / (32768 + reserved));
    assert_eq!(active(shared, 128, 8192), memory / (32768 + 8192 + reserved));
    // What would be refused runs not at all.
    assert_eq!(active(plain, 1025, 0), 0);
    assert_eq!(active(plain, 32, 48 * 1024 + 1), 0);
    let of_gigabytes = differs("NVIDIA's driver looks at 32 bits of the size", 0, active(plain, 32, 0));
    assert_eq!(active(plain, 32, 1 << 32), of_gigabytes);
    // Nor would what exceeds a limit that is set below the usual; but that does not count.
    cu!(cuFuncSetAttribute(plain, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 100));
    assert_eq!(active(plain, 64, 1000), blocks);
    // And what the kernel itself demands is not asked for.
    for kernel in [c"bounded", c"exact"] {
        assert_eq!(active(function(module, kernel), 65, 0), (threads / 96).min(blocks));
    }
}

pub fn a_kernel_that_prefers_cache_has_fewer_blocks() {
    new_context();
    if attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR) != 228 << 10 {
        skip("the numbers are those of multiprocessors with 228 KiB");
    }
    let plain = function(load(SHARED), c"plain");
    let blocks = || [0, 8000, 40000].map(|shared| active(plain, 128, shared));
    let left = || {
        [1, 2, 8].map(|blocks| {
            let mut bytes = 0;
            cu!(cuOccupancyAvailableDynamicSMemPerBlock(&mut bytes, plain, blocks, 128));
            bytes
        })
    };
    let none = ([16, 16, 5], [49152, 49152, 29184]);
    for (percent, expected) in [
        (-1, none),
        (0, ([8, 1, 1], [49152, 4096, 1024])),
        (10, ([16, 3, 1], [49152, 16384, 4096])),
        (25, ([16, 7, 1], [49152, 32768, 8192])),
        (50, ([16, 14, 3], [49152, 49152, 16896])),
        (75, ([16, 16, 4], [49152, 49152, 25088])),
        (100, none),
    ] {
        cu!(cuFuncSetAttribute(plain, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, percent));
        assert_eq!((blocks(), left()), expected, "{percent}");
    }
    // More blocks than fit are refused.
    cu!(cuFuncSetAttribute(plain, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 0));
    fails!(CUDA_ERROR_INVALID_VALUE, cuOccupancyAvailableDynamicSMemPerBlock(&mut 0, plain, 16, 128));
    cu!(cuFuncSetAttribute(plain, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, -1));
    for (config, most) in [
        (CU_FUNC_CACHE_PREFER_L1, 1),
        (CU_FUNC_CACHE_PREFER_EQUAL, 3),
        (CU_FUNC_CACHE_PREFER_SHARED, 5),
        (CU_FUNC_CACHE_PREFER_NONE, 5),
    ] {
        cu!(cuFuncSetCacheConfig(plain, config));
        assert_eq!(active(plain, 128, 40000), most, "{config:?}");
    }
}

pub fn a_multiprocessor_is_that_of_its_capability() {
    if is_ours() {
        set_env("ANYWARP_SM", "80");
    }
    new_context();
    let capability = (
        attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
        attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR),
    );
    let (threads, blocks, shared) = match capability {
        (7, 5) => (1024, 16, 64),
        (8, 0) => (2048, 32, 164),
        (8, 6) => (1536, 16, 100),
        (8, 9) | (12, _) => (1536, 24, 100),
        (9 | 10, _) => (2048, 32, 228),
        _ => skip("a device of a capability that this test does not know"),
    };
    let reserved = if capability.0 >= 8 { 1024 } else { 0 };
    let most = (shared << 10) - reserved;
    assert_eq!(attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR), threads);
    assert_eq!(attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR), blocks);
    assert_eq!(attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR), shared << 10);
    assert_eq!(attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN), most);
    assert_eq!(attribute(CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK), reserved);
    let mut limit = 0;
    cu!(cuCtxGetLimit(&mut limit, CU_LIMIT_SHMEM_SIZE));
    assert_eq!(limit, most as usize);
    // No kernel gets more, and one that gets it all has a multiprocessor for itself.
    let plain = function(load(SHARED), c"plain");
    let allow = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    fails!(CUDA_ERROR_INVALID_VALUE, cuFuncSetAttribute(plain, allow, most + 1));
    cu!(cuFuncSetAttribute(plain, allow, most));
    assert_eq!(active(plain, 32, most as usize), 1);
    assert_eq!(active(plain, 64, 0), (threads / 64).min(blocks));
    cu!(
        cuLaunchKernel(plain, 1, 1, 1, 32, 1, 1, most as u32, CUstream::NULL, null_mut(), null_mut());
        cuCtxSynchronize();
    );
}

pub fn the_best_block_fills_the_device() {
    new_context();
    let module = load(SHARED);
    let (plain, shared) = (function(module, c"plain"), function(module, c"shared"));
    let (mut grid, mut block) = (0, 0);
    let processors = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    let most = attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
    for kernel in [plain, shared] {
        cu!(cuOccupancyMaxPotentialBlockSize(&mut grid, &mut block, kernel, None, 0, 0));
        assert_eq!((block, grid), (1024, processors * (most / 1024)));
    }
    cu!(cuOccupancyMaxPotentialBlockSizeWithFlags(
        &mut grid,
        &mut block,
        plain,
        None,
        0,
        256,
        CU_OCCUPANCY_DEFAULT
    ));
    assert_eq!(block, 256);
    for (kernel, best) in [(c"bounded", 64), (c"exact", 1024)] {
        let kernel = function(module, kernel);
        cu!(cuOccupancyMaxPotentialBlockSize(&mut grid, &mut block, kernel, None, 0, 0));
        assert_eq!(block, best);
    }
    // A limit that is no multiple of the warp is tried itself.
    for (kernel, best) in [(plain, 64), (shared, 65)] {
        cu!(cuOccupancyMaxPotentialBlockSize(&mut grid, &mut block, kernel, None, 0, 65));
        assert_eq!(block, best);
    }
    unsafe extern "C" fn kilobyte_a_warp(threads: i32) -> usize {
        threads as usize / 32 * 1024
    }
    cu!(cuOccupancyMaxPotentialBlockSize(&mut grid, &mut block, plain, Some(kilobyte_a_warp), 0, 0));
    assert!(block > 0 && active(plain, block, block as usize / 32 * 1024) * block <= most);
}

pub fn shared_memory_left_for_a_block() {
    new_context();
    let module = load(SHARED);
    let (plain, shared) = (function(module, c"plain"), function(module, c"shared"));
    let memory = attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR) as usize;
    let optin = attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN) as usize;
    let left = |kernel, blocks, threads| {
        let mut left = 0;
        cu!(cuOccupancyAvailableDynamicSMemPerBlock(&mut left, kernel, blocks, threads));
        left
    };
    // An even share, as far as a launch may have it.
    let share = |blocks: usize| memory / blocks / 128 * 128;
    for blocks in [1, 2, 3, 4, 5, 8, 15, 16] {
        assert_eq!(left(plain, blocks as i32, 128), share(blocks).min(48 << 10), "{blocks} blocks");
    }
    for blocks in [1, 4, 5, 6] {
        assert_eq!(
            left(shared, blocks as i32, 64),
            share(blocks).min(48 << 10) - (32 << 10),
            "{blocks} blocks"
        );
    }
    cu!(cuFuncSetAttribute(plain, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, optin as i32));
    assert_eq!((left(plain, 1, 64), left(plain, 3, 64)), (optin, share(3)));
    // More blocks than run together.
    let mut unchanged = 77;
    for (kernel, blocks, threads) in [(plain, 17, 128), (plain, 33, 32), (plain, 1, 1025), (shared, 7, 64)] {
        fails!(
            CUDA_ERROR_INVALID_VALUE,
            cuOccupancyAvailableDynamicSMemPerBlock(&mut unchanged, kernel, blocks, threads)
        );
    }
    assert_eq!(unchanged, 77);
}

pub fn arguments_are_checked() {
    new_context();
    let plain = function(load(SHARED), c"plain");
    let (mut blocks, mut grid, mut block, mut left) = (0, 0, 0, 0);
    let value = CUDA_ERROR_INVALID_VALUE;
    if !ours_only("NVIDIA's driver crashes at null") {
        return;
    }
    fails!(value, cuOccupancyMaxActiveBlocksPerMultiprocessor(null_mut(), plain, 128, 0));
    for threads in [0, -1, i32::MIN] {
        fails!(value, cuOccupancyMaxActiveBlocksPerMultiprocessor(&mut blocks, plain, threads, 0));
        fails!(value, cuOccupancyAvailableDynamicSMemPerBlock(&mut left, plain, 1, threads));
        fails!(value, cuOccupancyAvailableDynamicSMemPerBlock(&mut left, plain, threads, 128));
    }
    fails!(value, cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&mut blocks, plain, 128, 0, 77));
    fails!(value, cuOccupancyMaxPotentialBlockSizeWithFlags(&mut grid, &mut block, plain, None, 0, 0, 77));
    fails!(value, cuOccupancyMaxPotentialBlockSize(null_mut(), &mut block, plain, None, 0, 0));
    fails!(value, cuOccupancyMaxPotentialBlockSize(&mut grid, null_mut(), plain, None, 0, 0));
    fails!(value, cuOccupancyAvailableDynamicSMemPerBlock(null_mut(), plain, 1, 128));
    let none = CUfunction::NULL;
    fails!(CUDA_ERROR_INVALID_HANDLE, cuOccupancyMaxActiveBlocksPerMultiprocessor(&mut blocks, none, 128, 0));
    fails!(
        CUDA_ERROR_INVALID_HANDLE,
        cuOccupancyMaxPotentialBlockSize(&mut grid, &mut block, none, None, 0, 0)
    );
    fails!(CUDA_ERROR_INVALID_HANDLE, cuOccupancyAvailableDynamicSMemPerBlock(&mut left, none, 1, 128));
}
