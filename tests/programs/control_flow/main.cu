// Control flow in which the threads of a warp part and meet again, compared with the same function on the host.

#include <vector>

#include "example.h"

#define BOTH __host__ __device__

BOTH unsigned mix(unsigned x) {
    x ^= x >> 16;
    x *= 0x7feb352d;
    x ^= x >> 15;
    x *= 0x846ca68b;
    return x ^ x >> 16;
}

BOTH unsigned nested(unsigned i) {
    unsigned value = mix(i), sum = 0;
    if (value & 1) {
        if (value & 2) sum += 3;
        else if (value & 4) return sum + 11;
        sum += value >> 20;
    } else {
        for (unsigned k = 0; k < (value >> 4 & 15); k++) {
            if (mix(value + k) & 8) continue;
            sum += k * i;
            if (sum > 1000) break;
        }
    }
    return sum * 3 + 1;
}

// Loops in loops with different numbers of turns, and a way out of both.
BOTH unsigned loops(unsigned i) {
    unsigned state = mix(i + 77), found = 0;
    for (unsigned a = 0; a < state % 7 + 1; a++) {
        for (unsigned b = a; b < (state >> 8) % 9; b++) {
            state = mix(state + b);
            if (state % 31 == 0) goto done;
            if (state % 5 == 0) break;
            found += state & 0xff;
        }
        do {
            found = found * 33 + a;
            state >>= 1;
        } while (state & 1);
    }
done:
    return found ^ state;
}

BOTH unsigned choose(unsigned i) {
    switch (mix(i) % 12) {
        case 0: return 1;
        case 1: return i * 2;
        case 2: i += 5;  // falls through
        case 3: return i * 3;
        case 4: return mix(i);
        case 5:
        case 6: return i / 7;
        case 7: return i % 13;
        case 9: return ~i;
        case 11: return i << (i & 31);
        default: return 0xdead;
    }
}

// Calls: recursion, and functions chosen by number.
__host__ __device__ __noinline__ unsigned ackermann(unsigned m, unsigned n) {
    return m == 0 ? n + 1 : ackermann(m - 1, n == 0 ? 1 : ackermann(m, n - 1));
}
__host__ __device__ __noinline__ unsigned fibonacci(unsigned n) {
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

typedef unsigned (*Operation)(unsigned, unsigned);
BOTH unsigned op_add(unsigned a, unsigned b) { return a + b; }
BOTH unsigned op_mul(unsigned a, unsigned b) { return a * b; }
BOTH unsigned op_rot(unsigned a, unsigned b) { return a << (b & 31) | a >> (-b & 31); }

BOTH unsigned indirect(unsigned i) {
    const Operation operations[] = {op_add, op_mul, op_rot};
    unsigned value = i;
    for (unsigned k = 0; k < 4; k++) value = operations[mix(value + k) % 3](value, i + k);
    return value;
}

// An array of each thread's own, indexed by numbers that differ.
BOTH unsigned sort_locally(unsigned i) {
    unsigned values[16];
    for (unsigned k = 0; k < 16; k++) values[k] = mix(i * 16 + k) % 1000;
    for (unsigned k = 1; k < 16; k++)
        for (unsigned j = k; j > 0 && values[j - 1] > values[j]; j--) {
            unsigned swap = values[j];
            values[j] = values[j - 1];
            values[j - 1] = swap;
        }
    unsigned hash = 0;
    for (unsigned k = 0; k < 16; k++) hash = hash * 31 + values[(k + i) % 16] * (values[k] >= values[k ? k - 1 : 0]);
    return hash;
}

BOTH unsigned recursive(unsigned i) { return ackermann(i % 3, i % 4) + fibonacci(i % 11); }

template <unsigned (*function)(unsigned)>
__global__ void apply(unsigned *out, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    out[i] = function(i);
}

// Barriers inside a loop whose length is the same for all threads, with work between them that is not.
__global__ void scan(unsigned *values) {
    extern __shared__ unsigned shared[];
    unsigned t = threadIdx.x, n = blockDim.x;
    shared[t] = values[blockIdx.x * n + t];
    for (unsigned distance = 1; distance < n; distance *= 2) {
        __syncthreads();
        unsigned other = 0;
        if (t >= distance) other = shared[t - distance];
        __syncthreads();
        shared[t] += other;
    }
    values[blockIdx.x * n + t] = shared[t];
}

// Some threads leave early; the barrier counts the others.
__global__ void leave_early(unsigned *values, unsigned keep) {
    __shared__ unsigned shared[256];
    unsigned t = threadIdx.x;
    if (t >= keep) return;
    shared[t] = values[t] * 2;
    __syncthreads();
    values[t] = shared[keep - 1 - t];
}

template <unsigned (*function)(unsigned)>
void compare(const char *name, unsigned n, unsigned threads) {
    unsigned *device;
    CUDA_CHECK(cudaMalloc(&device, n * sizeof(unsigned)));
    apply<function><<<(n + threads - 1) / threads, threads>>>(device, n);
    CUDA_CHECK(cudaGetLastError());
    std::vector<unsigned> out(n);
    CUDA_CHECK(cudaMemcpy(out.data(), device, n * sizeof(unsigned), cudaMemcpyDeviceToHost));
    CUDA_CHECK(cudaFree(device));
    for (unsigned i = 0; i < n; i++)
        REQUIRE(out[i] == function(i), "%s(%u) in blocks of %u: %u, not %u", name, i, threads, out[i], function(i));
}

void check_barriers() {
    const unsigned n = 250, blocks = 3;
    std::vector<unsigned> values(n * blocks), result(n * blocks);
    for (unsigned i = 0; i < n * blocks; i++) values[i] = mix(i) % 100;
    unsigned *device;
    CUDA_CHECK(cudaMalloc(&device, values.size() * sizeof(unsigned)));
    CUDA_CHECK(cudaMemcpy(device, values.data(), values.size() * sizeof(unsigned), cudaMemcpyHostToDevice));
    scan<<<blocks, n, n * sizeof(unsigned)>>>(device);
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cudaMemcpy(result.data(), device, values.size() * sizeof(unsigned), cudaMemcpyDeviceToHost));
    for (unsigned block = 0; block < blocks; block++)
        for (unsigned i = 0, sum = 0; i < n; i++) {
            sum += values[block * n + i];
            REQUIRE(result[block * n + i] == sum, "scan, block %u, element %u", block, i);
        }
    const unsigned keep = 201;
    leave_early<<<1, 256>>>(device, keep);
    CUDA_CHECK(cudaGetLastError());
    std::vector<unsigned> after(n);
    CUDA_CHECK(cudaMemcpy(after.data(), device, n * sizeof(unsigned), cudaMemcpyDeviceToHost));
    for (unsigned i = 0; i < keep; i++) REQUIRE(after[i] == 2 * result[keep - 1 - i], "leave_early, element %u", i);
    CUDA_CHECK(cudaFree(device));
}

int main() {
    CUDA_CHECK(cudaDeviceSetLimit(cudaLimitStackSize, 16384));
    for (unsigned threads : {32u, 48u, 256u}) {
        compare<nested>("nested", 3000, threads);
        compare<loops>("loops", 3000, threads);
        compare<choose>("choose", 3000, threads);
        compare<recursive>("recursive", 600, threads);
        compare<indirect>("indirect", 1000, threads);
        compare<sort_locally>("sort_locally", 500, threads);
    }
    check_barriers();
    succeed("six functions in three block sizes, and two with barriers");
}
