// Cooperative groups of every kind: tiles of a warp and of several warps, which meet in memory that the system reserves, groups by
// label and of whoever is there, and what they compute together.

#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>

#include <vector>

#include "example.h"

namespace cg = cooperative_groups;

constexpr int threads = 512;

// Sums, scans, maxima and meetings of tiles of `size` threads; `rounds` of them, so that a barrier is used again.
template <int size>
__global__ void tiles(int *sums, int *scans, int *last) {
    __shared__ int shared[threads];
    const auto tile = cg::tiled_partition<size>(cg::this_thread_block());
    const int i = threadIdx.x;
    int value = i;
    for (int round = 0; round < 5; round++) {
        shared[i] = value;
        tile.sync();
        value = shared[i - tile.thread_rank() + (tile.thread_rank() + 1) % size];
        tile.sync();
    }
    last[i] = value;
    sums[i] = cg::reduce(tile, i, cg::plus<int>());
    scans[i] = cg::exclusive_scan(tile, 2) + 1000 * tile.meta_group_rank() + 100000 * tile.meta_group_size();
}

template <int size>
void check_tiles(int *out) {
    CUDA_CHECK(cudaMemset(out, 0xff, 3 * threads * sizeof(int)));
    tiles<size><<<3, threads>>>(out, out + threads, out + 2 * threads);
    CUDA_CHECK(cudaGetLastError());
    std::vector<int> found(3 * threads);
    CUDA_CHECK(cudaMemcpy(found.data(), out, found.size() * sizeof(int), cudaMemcpyDeviceToHost));
    for (int i = 0; i < threads; i++) {
        const int first = i / size * size, rank = i % size;
        const int sum = size * first + size * (size - 1) / 2;
        const int scan = 2 * rank + 1000 * (i / size) + 100000 * (threads / size);
        REQUIRE(found[i] == sum, "sum of %d threads, thread %d: %d, not %d", size, i, found[i], sum);
        REQUIRE(found[threads + i] == scan, "scan of %d, thread %d: %d, not %d", size, i, found[threads + i], scan);
        REQUIRE(found[2 * threads + i] == first + (rank + 5) % size, "tiles of %d, thread %d: %d", size, i,
                found[2 * threads + i]);
    }
}

// Groups that are made of whoever comes: a row of results each.
constexpr int rows = 5;
__global__ void whoever(int *out) {
    const int i = threadIdx.x;
    const auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    if (i % 3 == 0) {
        const auto here = cg::coalesced_threads();
        out[i] = 100 * cg::reduce(here, i, cg::greater<int>()) + here.thread_rank();
    } else {
        const auto labelled = cg::labeled_partition(cg::coalesced_threads(), i % 3);
        out[i] = 100 * labelled.size() + labelled.thread_rank();
    }
    const auto half = cg::binary_partition(warp, i & 1);
    out[threads + i] = 100 * half.size() + half.thread_rank();
    __shared__ int elected;
    if (i == 0) elected = 0;
    cg::this_thread_block().sync();
    cg::invoke_one(warp, [&] { atomicAdd(&elected, 1); });
    auto arrived = cg::this_thread_block().barrier_arrive();
    cg::this_thread_block().barrier_wait(std::move(arrived));
    out[2 * threads + i] = elected;
    out[3 * threads + i] = cg::invoke_one_broadcast(cg::tiled_partition<8>(warp), [&] { return i; });
    out[4 * threads + i] = warp.match_any(i / 5) == __match_any_sync(~0u, i / 5);
}

void check_whoever(int *out) {
    whoever<<<1, threads>>>(out);
    CUDA_CHECK(cudaGetLastError());
    std::vector<int> found(rows * threads);
    CUDA_CHECK(cudaMemcpy(found.data(), out, found.size() * sizeof(int), cudaMemcpyDeviceToHost));
    for (int i = 0; i < threads; i++) {
        int size = 0, rank = 0, largest = 0;
        for (int other = i / 32 * 32; other < i / 32 * 32 + 32; other++) {
            if (other % 3 != i % 3) continue;
            size++, rank += other < i, largest = other;
        }
        const int wanted = 100 * (i % 3 == 0 ? largest : size) + rank;
        REQUIRE(found[i] == wanted, "who is there, thread %d: %d, not %d", i, found[i], wanted);
        REQUIRE(found[threads + i] == 1600 + i % 32 / 2, "halves, thread %d: %d", i, found[threads + i]);
        REQUIRE(found[2 * threads + i] == threads / 32, "elected: %d", found[2 * threads + i]);
        REQUIRE(found[3 * threads + i] / 8 == i / 8, "one for all, thread %d: %d", i, found[3 * threads + i]);
        REQUIRE(found[4 * threads + i] == 1, "matches, thread %d", i);
    }
}

int main() {
    int *out;
    CUDA_CHECK(cudaMalloc(&out, rows * threads * sizeof(int)));
    check_tiles<1>(out);
    check_tiles<4>(out);
    check_tiles<16>(out);
    check_tiles<32>(out);
    check_tiles<64>(out);
    check_tiles<128>(out);
    check_tiles<256>(out);
    check_tiles<512>(out);
    check_whoever(out);
    succeed("tiles of 1 to 512 threads, and groups of whoever is there");
}
