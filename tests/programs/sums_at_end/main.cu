// Blocks that add to common places when they end: nobody asks what was there, so it does not matter when each is done, as long as all are
// when the kernel has ended, and whoever must see some of them before does.

#include <algorithm>
#include <vector>

#include "example.h"

// What all blocks add to.
struct Totals {
    unsigned counts[256];
    unsigned long long wide;
    unsigned least, most, bits;
    float sum, sums[64];
    double precise;
    unsigned ended, seen;
};

__global__ void count(Totals *to, int n, const unsigned char *values) {
    __shared__ unsigned own[256];
    own[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&own[values[i]], 1);
    __syncthreads();
    atomicAdd(&to->counts[threadIdx.x], own[threadIdx.x]);
}

// In quarters, so that floats have every sum, in whatever order.
__global__ void add(Totals *to) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (threadIdx.x < 64) atomicAdd(&to->sums[threadIdx.x], 0.25f * (blockIdx.x % 16));
    if (threadIdx.x % 3 == 0) atomicAdd(&to->sum, 0.25f);
    atomicAdd(&to->precise, 0.125 * i);
    atomicAdd(&to->wide, 1ull << 33);
    atomicMin(&to->least, i ^ 0x5555);
    atomicMax(&to->most, i ^ 0x5555);
    atomicOr(&to->bits, 1u << i % 27);
}

// The last block to come needs what all others have added.
__global__ void add_and_tell(Totals *to) {
    if (threadIdx.x < 64) atomicAdd(&to->sums[threadIdx.x], 0.5f);
    __threadfence();
    __shared__ bool last;
    __syncthreads();
    if (threadIdx.x == 0) last = atomicAdd(&to->ended, 1) == gridDim.x - 1;
    __syncthreads();
    __threadfence();
    if (last && threadIdx.x < 64) atomicAdd(&to->seen, (unsigned)(2 * *(volatile float *)&to->sums[threadIdx.x]));
}

// One block waits for all others to have added.
__global__ void wait_for_others(Totals *to) {
    if (blockIdx.x > 0) {
        if (threadIdx.x == 0) atomicAdd(&to->ended, 1);
        return;
    }
    while (*(volatile unsigned *)&to->ended < gridDim.x - 1) {}
    atomicAdd(&to->seen, 1);
}

__global__ void end(Totals *to) { atomicAdd(&to->ended, 1); }

// Until another grid's threads have ended.
__global__ void wait_for_end(Totals *to, unsigned threads) {
    while (*(volatile unsigned *)&to->ended < threads) {}
    to->seen = to->ended;
}

Totals *device;

template <class... Arguments>
Totals run(void (*kernel)(Totals *, Arguments...), unsigned blocks, unsigned threads, Arguments... arguments) {
    Totals totals{};
    totals.least = ~0u;
    CUDA_CHECK(cudaMemcpy(device, &totals, sizeof totals, cudaMemcpyHostToDevice));
    kernel<<<blocks, threads>>>(device, arguments...);
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cudaMemcpy(&totals, device, sizeof totals, cudaMemcpyDeviceToHost));
    return totals;
}

int main() {
    CUDA_CHECK(cudaMalloc(&device, sizeof(Totals)));
    const int n = 1 << 20;
    std::vector<unsigned char> values(n);
    std::vector<unsigned> counts(256);
    unsigned state = 1;
    for (auto &value : values) counts[value = (state = state * 1664525 + 1013904223) >> 24 & state >> 16]++;
    unsigned char *in;
    CUDA_CHECK(cudaMalloc(&in, n));
    CUDA_CHECK(cudaMemcpy(in, values.data(), n, cudaMemcpyHostToDevice));
    for (unsigned blocks : {1u, 7u, 300u}) {
        const Totals totals = run<int, const unsigned char *>(count, blocks, 256, n, in);
        for (int i = 0; i < 256; i++) REQUIRE(totals.counts[i] == counts[i], "%d: %u, not %u", i, totals.counts[i], counts[i]);
    }

    for (unsigned blocks : {1u, 40u, 1000u}) {
        const unsigned threads = 96, all = blocks * threads;
        const Totals totals = run(add, blocks, threads);
        unsigned quarters = 0, least = ~0u, most = 0;
        for (unsigned block = 0; block < blocks; block++) quarters += block % 16;
        for (unsigned i = 0; i < all; i++) least = std::min(least, i ^ 0x5555), most = std::max(most, i ^ 0x5555);
        for (float sum : totals.sums) REQUIRE(sum == 0.25f * quarters, "%g, not %g", sum, 0.25f * quarters);
        REQUIRE(totals.sum == 0.25f * blocks * 32, "%g", totals.sum);
        REQUIRE(totals.precise == 0.125 * all * (all - 1.) / 2, "%g", totals.precise);
        REQUIRE(totals.wide == (unsigned long long)all << 33, "%llx", totals.wide);
        REQUIRE(totals.least == least && totals.most == most, "from %u to %u, not %u to %u", totals.least, totals.most, least, most);
        REQUIRE(totals.bits == (all < 27 ? (1u << all) - 1 : (1u << 27) - 1), "%x", totals.bits);
    }

    for (int round = 0; round < 20; round++) {
        const Totals totals = run(add_and_tell, 200, 64);
        REQUIRE(totals.seen == 64 * 200, "the last block sees %u of %u", totals.seen, 64 * 200);
    }
    REQUIRE(run(wait_for_others, 100, 32).seen == 32, "a block waits for others");

    // Two grids add to one place; a third waits for both.
    cudaStream_t streams[3];
    for (auto &stream : streams) CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CUDA_CHECK(cudaMemset(device, 0, sizeof(Totals)));
    CUDA_CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < 2; i++) end<<<500, 64, 0, streams[i]>>>(device);
    wait_for_end<<<1, 1, 0, streams[2]>>>(device, 2 * 500 * 64);
    CUDA_CHECK(cudaDeviceSynchronize());
    Totals totals;
    CUDA_CHECK(cudaMemcpy(&totals, device, sizeof totals, cudaMemcpyDeviceToHost));
    REQUIRE(totals.seen == 2 * 500 * 64 && totals.ended == totals.seen, "%u of %u", totals.seen, totals.ended);
    succeed("sums of blocks that end");
}
