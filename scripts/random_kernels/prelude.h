// What the kernels of a random program are written with, on a device and, for those that need no other threads, on the host.
#ifdef HOST
#include "host.h"
#else
#include <math_constants.h>
// Programs without groups, or halves, are compiled in half the time.
#ifdef GROUPS
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
namespace cg = cooperative_groups;
#endif
#ifdef HALVES
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#endif
#endif
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

struct Mixed {
    uint32_t word;
    uint8_t byte;
    uint8_t bytes[5];
    uint16_t half_;
    uint64_t long_;
};

struct Params {
    uint32_t some, n;
    uint64_t large;
    uint32_t w[8];
    uint8_t b[5];
    Mixed mixed;
    float f;
};

static __device__ inline uint64_t bits(double value) {
    return value != value ? 0x7ff8000000000000ull : (uint64_t)__double_as_longlong(value);
}

static __device__ inline uint32_t bits(float value) {
    return value != value ? 0x7fc00000u : (uint32_t)__float_as_int(value);
}

#ifdef HALVES
static __device__ inline uint32_t bits(__half value) {
    return __hisnan(value) ? 0x7e00u : __half_as_ushort(value);
}

static __device__ inline uint32_t bits(__nv_bfloat16 value) {
    return __hisnan(value) ? 0x7fc0u : __bfloat16_as_ushort(value);
}
#endif

#ifndef HOST
static __device__ inline void cas_add(unsigned* place, unsigned value) {
    unsigned old = *(volatile unsigned*)place, seen;
    while ((seen = atomicCAS(place, old, old + value)) != old) old = seen;
}

static __device__ inline void cas_max(unsigned long long* place, unsigned long long value) {
    unsigned long long old = 0;
    while (old < value) {
        const unsigned long long seen = atomicCAS(place, old, value);
        if (seen == old) break;
        old = seen;
    }
}

static __device__ inline unsigned lane_of(unsigned mask, unsigned which) {
    for (which %= __popc(mask); which != 0; --which) mask &= mask - 1;
    return __ffs((int)mask) - 1;
}

static __device__ inline unsigned source_idx(unsigned lane, unsigned of, unsigned width) {
    return (lane & ~(width - 1)) | (of & (width - 1));
}

static __device__ inline unsigned source_up(unsigned lane, unsigned by, unsigned width) {
    by &= 31;
    return (lane & (width - 1)) >= by ? lane - by : lane;
}

static __device__ inline unsigned source_down(unsigned lane, unsigned by, unsigned width) {
    by &= 31;
    return (lane & (width - 1)) + by < width ? lane + by : lane;
}

static __device__ inline unsigned source_xor(unsigned lane, unsigned by, unsigned width) {
    const unsigned other = lane ^ (by & 31);
    return other / width <= lane / width ? other : lane;
}

// A place's neighbour in the same warp, itself where there is none.
static __device__ inline unsigned same_warp(unsigned own, unsigned other, unsigned count) {
    return other < count ? other : own;
}
#endif

// A number that is neither huge nor tiny.
static __device__ inline float real_of(uint32_t word) {
    return __int_as_float((int)((word & 0x807fffffu) | (((word >> 23) % 24u + 116u) << 23)));
}

static __device__ inline uint32_t abs31(uint32_t word) {
    return word >> 31 ? 0u - word : word;
}

static __device__ inline Mixed mixed_of(uint32_t word) {
    Mixed result = {word * 3u, (uint8_t)word, {1, 2, (uint8_t)(word >> 8), 4, (uint8_t)(word >> 16)}, (uint16_t)(word >> 4), word * 0x100000001ull};
    return result;
}
