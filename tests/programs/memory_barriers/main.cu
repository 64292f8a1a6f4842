// Barriers in memory as C++ has them: cuda::barrier, cuda::pipeline and cuda::memcpy_async, whose waits keep a state for each
// thread, and what is under them: a warp that fetches tiles of a tensor for others that work on them.

#include <cooperative_groups.h>
#include <cuda.h>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <cuda/ptx>

#include <numeric>
#include <vector>

#include "example.h"

namespace cg = cooperative_groups;
namespace ptx = cuda::ptx;
using block_barrier = cuda::barrier<cuda::thread_scope_block>;

// Sums over a block, round after round; in the second half of the rounds a quarter of the threads is no longer expected.
__global__ void rounds(int *out, int count) {
    __shared__ block_barrier barrier;
    __shared__ int sums[2];
    if (threadIdx.x == 0) {
        init(&barrier, blockDim.x);
        sums[0] = sums[1] = 0;
    }
    __syncthreads();
    for (int round = 0; round < count; round++) {
        if (round == count / 2 && threadIdx.x % 4 == 3) {
            barrier.arrive_and_drop();
            return;
        }
        atomicAdd(&sums[round % 2], round + int(threadIdx.x));
        auto token = barrier.arrive();
        barrier.wait(std::move(token));
        if (threadIdx.x == 0) {
            out[round] = sums[round % 2];
            sums[round % 2] = 0;
        }
        barrier.arrive_and_wait();
    }
}

// Blocks of data come asynchronously; all of them go through the barrier's count of bytes.
__global__ void fetched(const int *in, int *out) {
    __shared__ alignas(16) int data[256];
    __shared__ block_barrier barrier;
    auto block = cg::this_thread_block();
    if (block.thread_rank() == 0) init(&barrier, block.size());
    block.sync();
    for (int tile = 0; tile < 4; tile++) {
        cuda::memcpy_async(block, data, in + tile * 256, cuda::aligned_size_t<16>(sizeof(data)), barrier);
        barrier.arrive_and_wait();
        out[tile * 256 + threadIdx.x] = 3 * data[255 - threadIdx.x];
        block.sync();
    }
}

// Two stages: while one tile is worked on, the next one comes.
__global__ void staged(const int *in, int *out, int tiles) {
    constexpr int stages = 2;
    __shared__ alignas(16) int data[stages][128];
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, stages> state;
    auto block = cg::this_thread_block();
    auto pipe = cuda::make_pipeline(block, &state);
    int next = 0;
    for (int tile = 0; tile < tiles; tile++) {
        for (; next < tiles && next < tile + stages; next++) {
            pipe.producer_acquire();
            cuda::memcpy_async(block, data[next % stages], in + next * 128, cuda::aligned_size_t<16>(sizeof(data[0])), pipe);
            pipe.producer_commit();
        }
        pipe.consumer_wait();
        out[tile * 128 + threadIdx.x] = data[tile % stages][threadIdx.x ^ 5] + tile;
        pipe.consumer_release();
    }
}

// One warp produces, three consume; roles by whole warps, as matrix products have them.
__global__ void roles(const int *in, int *out, int tiles) {
    constexpr int stages = 2;
    __shared__ alignas(16) int data[stages][96];
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, stages> state;
    auto block = cg::this_thread_block();
    const bool producer = threadIdx.x < 32;
    auto pipe = cuda::make_pipeline(block, &state,
                                    producer ? cuda::pipeline_role::producer : cuda::pipeline_role::consumer);
    for (int tile = 0; tile < tiles; tile++) {
        if (producer) {
            pipe.producer_acquire();
            for (int part = 0; part < 3; part++)
                data[tile % stages][part * 32 + threadIdx.x] = in[tile * 96 + part * 32 + threadIdx.x];
            pipe.producer_commit();
        } else {
            pipe.consumer_wait();
            out[tile * 96 + threadIdx.x - 32] = 7 * data[tile % stages][127 - threadIdx.x];
            pipe.consumer_release();
        }
    }
}

constexpr int tile = 32, ring = 3;

// Transposes a matrix tile by tile. The elected thread of the first warp fetches, by a tensor map, into a ring of tiles; a
// group of four warps turns them around, and one of its threads stores them by another map.
__global__ void __launch_bounds__(160) transposed(const __grid_constant__ CUtensorMap from,
                                                  const __grid_constant__ CUtensorMap to, int across, int down) {
#if __CUDA_ARCH__ >= 900
    __shared__ alignas(128) float in[ring][tile][tile];
    __shared__ alignas(128) float out[tile][tile];
    __shared__ alignas(8) uint64_t full[ring], empty[ring];
    if (threadIdx.x == 0) {
        for (int slot = 0; slot < ring; slot++) {
            ptx::mbarrier_init(&full[slot], 1);
            ptx::mbarrier_init(&empty[slot], 128);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        ptx::fence_proxy_async(ptx::space_shared);
    }
    __syncthreads();
    if (threadIdx.x < 32) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        unsigned elected;
        asm volatile("{ .reg .pred p; elect.sync _|p, 0xffffffff; selp.u32 %0, 1, 0, p; }" : "=r"(elected));
        if (elected) {
            for (int step = 0; step < across * down; step++) {
                const int slot = step % ring, phase = step / ring & 1;
                while (!ptx::mbarrier_try_wait_parity(&empty[slot], phase ^ 1)) {}
                ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &full[slot], sizeof(in[0]));
                const int at[] = {step % across * tile, step / across * tile};
                ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, in[slot], &from, at, &full[slot]);
            }
        }
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        const int me = threadIdx.x - 32, column = me % tile;
        for (int step = 0; step < across * down; step++) {
            const int slot = step % ring, phase = step / ring & 1;
            while (!ptx::mbarrier_try_wait_parity(&full[slot], phase)) {}
            for (int row = me / tile; row < tile; row += 4) out[column][row] = in[slot][row][column];
            ptx::mbarrier_arrive(&empty[slot]);
            ptx::fence_proxy_async(ptx::space_shared);
            asm volatile("bar.sync 1, 128;" ::: "memory");
            if (me == 0) {
                const int at[] = {step / across * tile, step % across * tile};
                ptx::cp_async_bulk_tensor(ptx::space_global, ptx::space_shared, &to, at, out);
                ptx::cp_async_bulk_commit_group();
                ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
            }
            asm volatile("bar.sync 1, 128;" ::: "memory");
        }
        if (me == 0) ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());
    }
#endif
}

template <typename T>
std::vector<T> download(const T *device, size_t count) {
    std::vector<T> host(count);
    CUDA_CHECK(cudaMemcpy(host.data(), device, count * sizeof(T), cudaMemcpyDeviceToHost));
    return host;
}

template <typename T>
T *upload(const std::vector<T> &host) {
    T *device;
    CUDA_CHECK(cudaMalloc(&device, host.size() * sizeof(T)));
    CUDA_CHECK(cudaMemcpy(device, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice));
    return device;
}

CUtensorMap tensor(float *data, int width, int height) {
    CUtensorMap map;
    const cuuint64_t sizes[] = {cuuint64_t(width), cuuint64_t(height)}, strides[] = {width * sizeof(float)};
    const cuuint32_t box[] = {tile, tile}, steps[] = {1, 1};
    CU_CHECK(cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, data, sizes, strides, box, steps,
                                        CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
                                        CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
    return map;
}

int main() {
    const int count = 10;
    int *sums;
    CUDA_CHECK(cudaMalloc(&sums, count * sizeof(int)));
    rounds<<<1, 192>>>(sums, count);
    CUDA_CHECK(cudaDeviceSynchronize());
    const auto got = download(sums, count);
    for (int round = 0; round < count; round++) {
        int expected = 0;
        for (int thread = 0; thread < 192; thread++)
            if (round < count / 2 || thread % 4 != 3) expected += round + thread;
        REQUIRE(got[round] == expected, "round %d: %d instead of %d", round, got[round], expected);
    }

    std::vector<int> numbers(1024);
    std::iota(numbers.begin(), numbers.end(), 100);
    int *in = upload(numbers), *out = upload(std::vector<int>(1024, -1));
    fetched<<<1, 256>>>(in, out);
    CUDA_CHECK(cudaDeviceSynchronize());
    auto answers = download(out, 1024);
    for (int i = 0; i < 1024; i++) REQUIRE(answers[i] == 3 * numbers[i / 256 * 256 + 255 - i % 256], "fetched %d: %d", i, answers[i]);

    staged<<<1, 128>>>(in, out, 8);
    CUDA_CHECK(cudaDeviceSynchronize());
    answers = download(out, 1024);
    for (int i = 0; i < 1024; i++) REQUIRE(answers[i] == numbers[i ^ 5] + i / 128, "staged %d: %d", i, answers[i]);

    roles<<<1, 128>>>(in, out, 10);
    CUDA_CHECK(cudaDeviceSynchronize());
    answers = download(out, 960);
    for (int i = 0; i < 960; i++) REQUIRE(answers[i] == 7 * numbers[i / 96 * 96 + 95 - i % 96], "roles %d: %d", i, answers[i]);

    // The matrix does not end with a tile: what is missing is zero, and goes nowhere.
    const int width = 100, height = 72;
    std::vector<float> matrix(width * height);
    std::iota(matrix.begin(), matrix.end(), 0.5f);
    float *from = upload(matrix), *to = upload(std::vector<float>(width * height, -1));
    transposed<<<1, 160>>>(tensor(from, width, height), tensor(to, height, width), (width + tile - 1) / tile,
                           (height + tile - 1) / tile);
    CUDA_CHECK(cudaDeviceSynchronize());
    const auto turned = download(to, matrix.size());
    for (int x = 0; x < width; x++)
        for (int y = 0; y < height; y++)
            REQUIRE(turned[x * height + y] == matrix[y * width + x], "(%d, %d): %g", x, y, turned[x * height + y]);
    succeed("barriers, pipelines and a ring of tiles");
}
