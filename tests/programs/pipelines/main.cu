// The CUDA C++ library in kernels: pipelines of asynchronous copies, barriers between warps that produce and warps that consume,
// atomics, semaphores and the clock, as programs for current GPUs use them.

#include <cooperative_groups.h>

#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <cuda/semaphore>
#include <cuda/std/chrono>
#include <ctime>
#include <new>
#include <vector>

#include "example.h"

namespace cg = cooperative_groups;

constexpr int width = 128, tiles = 50, n = width * tiles;

// Four stages of copies ahead of what is summed.
__global__ void staged(const int *in, int *out) {
    constexpr int stages = 4;
    __shared__ int buffers[stages][width];
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, stages> state;
    const auto block = cg::this_thread_block();
    auto pipeline = cuda::make_pipeline(block, &state);
    int ahead = 0, sum = 0;
    for (int tile = 0; tile < tiles; tile++) {
        for (; ahead < tiles && ahead < tile + stages; ahead++) {
            pipeline.producer_acquire();
            cuda::memcpy_async(block, buffers[ahead % stages], in + ahead * width, cuda::aligned_size_t<4>(sizeof(int) * width),
                               pipeline);
            pipeline.producer_commit();
        }
        pipeline.consumer_wait();
        sum += buffers[tile % stages][(threadIdx.x + tile) % width];
        pipeline.consumer_release();
    }
    out[threadIdx.x] = sum;
}

// One warp fetches, the others add up, two buffers between them.
__global__ void specialised(const int *in, int *total) {
    using barrier = cuda::barrier<cuda::thread_scope_block>;
    constexpr int part = 64;
    __shared__ barrier full[2], empty[2];
    __shared__ int buffers[2][part];
    if (threadIdx.x < 2) {
        init(&full[threadIdx.x], blockDim.x);
        init(&empty[threadIdx.x], blockDim.x);
    }
    __syncthreads();
    if (threadIdx.x < 32) {
        for (int i = 0; i < n / part; i++) {
            empty[i % 2].arrive_and_wait();
            for (int j = threadIdx.x; j < part; j += 32) buffers[i % 2][j] = in[i * part + j];
            (void)full[i % 2].arrive();
        }
    } else {
        for (auto &barrier : empty) (void)barrier.arrive();
        int sum = 0;
        for (int i = 0; i < n / part; i++) {
            full[i % 2].arrive_and_wait();
            for (int j = threadIdx.x - 32; j < part; j += blockDim.x - 32) sum += buffers[i % 2][j];
            (void)empty[i % 2].arrive();
        }
        atomicAdd(total, sum);
    }
}

using Counter = cuda::atomic<int, cuda::thread_scope_device>;
using Semaphore = cuda::counting_semaphore<cuda::thread_scope_device, 4>;
struct Shared {
    Counter counter;
    Semaphore places;
    int inside, most;
    double sum, largest;
};

// Exchanges that are repeated until they succeed, and a room for four.
__global__ void contended(Shared *shared) {
    shared->counter.fetch_add(1, cuda::memory_order_relaxed);
    int seen = shared->counter.load();
    while (!shared->counter.compare_exchange_weak(seen, seen + 1)) {
    }
    shared->places.acquire();
    atomicMax(&shared->most, atomicAdd(&shared->inside, 1) + 1);
    __nanosleep(100);
    atomicSub(&shared->inside, 1);
    shared->places.release();
    cuda::atomic_ref<double, cuda::thread_scope_device>(shared->sum).fetch_add(0.5);
    cuda::atomic_ref<double, cuda::thread_scope_device>(shared->largest).fetch_max(threadIdx.x * 1.5);
}

__global__ void what_time(long long *seconds) {
    const auto now = cuda::std::chrono::system_clock::now().time_since_epoch();
    *seconds = cuda::std::chrono::duration_cast<cuda::std::chrono::seconds>(now).count();
}

int main() {
    std::vector<int> host(n);
    for (int i = 0; i < n; i++) host[i] = i * 7 % 1001;
    int *in, *out;
    CUDA_CHECK(cudaMalloc(&in, n * sizeof(int)));
    CUDA_CHECK(cudaMalloc(&out, width * sizeof(int)));
    CUDA_CHECK(cudaMemcpy(in, host.data(), n * sizeof(int), cudaMemcpyHostToDevice));

    staged<<<1, width>>>(in, out);
    std::vector<int> found(width);
    CUDA_CHECK(cudaMemcpy(found.data(), out, width * sizeof(int), cudaMemcpyDeviceToHost));
    for (int i = 0; i < width; i++) {
        int sum = 0;
        for (int tile = 0; tile < tiles; tile++) sum += host[tile * width + (i + tile) % width];
        REQUIRE(found[i] == sum, "stages, thread %d: %d, not %d", i, found[i], sum);
    }

    int total = 0, wanted = 0;
    for (int value : host) wanted += value;
    CUDA_CHECK(cudaMemset(out, 0, sizeof(int)));
    specialised<<<4, 160>>>(in, out);
    CUDA_CHECK(cudaMemcpy(&total, out, sizeof(int), cudaMemcpyDeviceToHost));
    REQUIRE(total == 4 * wanted, "warps that produce and consume: %d, not %d", total, 4 * wanted);

    Shared *shared;
    CUDA_CHECK(cudaMallocManaged(&shared, sizeof(Shared)));
    new (&shared->counter) Counter(0);
    new (&shared->places) Semaphore(4);
    shared->inside = shared->most = 0, shared->sum = shared->largest = 0;
    contended<<<6, 96>>>(shared);
    CUDA_CHECK(cudaDeviceSynchronize());
    const int all = 6 * 96;
    REQUIRE(shared->counter.load() == 2 * all, "counter: %d", shared->counter.load());
    REQUIRE(shared->most >= 1 && shared->most <= 4 && shared->inside == 0, "room: %d, %d", shared->most, shared->inside);
    REQUIRE(shared->sum == all * 0.5 && shared->largest == 95 * 1.5, "%g, %g", shared->sum, shared->largest);
    long long *seconds;
    CUDA_CHECK(cudaMallocManaged(&seconds, sizeof *seconds));
    what_time<<<1, 1>>>(seconds);
    CUDA_CHECK(cudaDeviceSynchronize());
    const long long here = time(nullptr);
    REQUIRE(llabs(*seconds - here) < 3600, "the time in a kernel: %lld, and here %lld", *seconds, here);
    succeed("%d tiles in stages, producers and consumers, %d threads in a room for four", tiles, all);
}
