// The sum of many numbers, three ways: atomics, shared memory, and shuffles between the threads of a warp.
//
//     reduction [COUNT]

#include <algorithm>
#include <vector>

#include "example.h"

constexpr unsigned threads = 256, max_blocks = 128;

// Every thread adds up elements a whole grid apart, so neighbours read neighbours.
__device__ unsigned sum_of_thread(const unsigned *values, size_t n) {
    unsigned sum = 0;
    for (size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += size_t(gridDim.x) * blockDim.x)
        sum += values[i];
    return sum;
}

// One atomic addition for each thread.
__global__ void with_atomics(const unsigned *values, size_t n, unsigned *total) {
    atomicAdd(total, sum_of_thread(values, n));
}

// The threads of a block halve their number of sums until one is left.
__global__ void with_shared_memory(const unsigned *values, size_t n, unsigned *total) {
    __shared__ unsigned sums[threads];
    sums[threadIdx.x] = sum_of_thread(values, n);
    for (unsigned half = threads / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    }
    if (threadIdx.x == 0) atomicAdd(total, sums[0]);
}

// Afterwards lane 0 has the sum over its warp.
__device__ unsigned sum_of_warp(unsigned value) {
    for (int distance = 16; distance > 0; distance /= 2) value += __shfl_down_sync(0xffffffff, value, distance);
    return value;
}

// Within a warp the values move without memory; the warps then meet in shared memory once.
__global__ void with_shuffles(const unsigned *values, size_t n, unsigned *total) {
    __shared__ unsigned sums[threads / 32];
    unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    unsigned sum = sum_of_warp(sum_of_thread(values, n));
    if (lane == 0) sums[warp] = sum;
    __syncthreads();
    if (warp == 0) {
        sum = sum_of_warp(lane < threads / 32 ? sums[lane] : 0);
        if (lane == 0) atomicAdd(total, sum);
    }
}

int main(int argc, char **argv) {
    const size_t n = argc > 1 ? strtoull(argv[1], nullptr, 10) : (1 << 18) + 77;
    REQUIRE(n > 0 && n <= size_t(1) << 30, "the count must be from 1 to 2^30");
    std::vector<unsigned> values(n);
    unsigned expected = 0, random = 1;
    for (unsigned &value : values) {
        random = random * 1664525 + 1013904223;
        value = random >> 8;
        expected += value;  // modulo 2^32, as on the device: the order of the additions does not matter
    }
    unsigned *device_values, *device_total;
    CUDA_CHECK(cudaMalloc(&device_values, n * sizeof(unsigned)));
    CUDA_CHECK(cudaMalloc(&device_total, sizeof(unsigned)));
    CUDA_CHECK(cudaMemcpy(device_values, values.data(), n * sizeof(unsigned), cudaMemcpyHostToDevice));

    const unsigned blocks = unsigned(std::min(size_t(max_blocks), (n + threads - 1) / threads));
    auto run = [&](const char *name, void (*kernel)(const unsigned *, size_t, unsigned *)) {
        auto once = [&] {
            CUDA_CHECK(cudaMemset(device_total, 0, sizeof(unsigned)));
            kernel<<<blocks, threads>>>(device_values, n, device_total);
            CUDA_CHECK(cudaGetLastError());
            CUDA_CHECK(cudaDeviceSynchronize());
        };
        once();  // the first launch compiles
        double time = milliseconds(once);
        unsigned total;
        CUDA_CHECK(cudaMemcpy(&total, device_total, sizeof total, cudaMemcpyDeviceToHost));
        REQUIRE(total == expected, "%s: %u, not %u", name, total, expected);
        printf("%-13s %8.3f ms %7.1f GB/s\n", name, time, double(n) * sizeof(unsigned) / time / 1e6);
    };
    run("atomics", with_atomics);
    run("shared memory", with_shared_memory);
    run("shuffles", with_shuffles);
    CUDA_CHECK(cudaFree(device_values));
    CUDA_CHECK(cudaFree(device_total));
    succeed("%zu numbers, three equal sums", n);
}
