// Clusters as CUDA C++ has them: their sizes by attribute of kernel and of launch, barriers in two halves, memory and atomics of other
// blocks, in three shapes.

#include <cooperative_groups.h>

#include <numeric>
#include <vector>

#include "example.h"

namespace cg = cooperative_groups;

// Only code for compute capability 9.0 knows clusters; that for 8.0, which programs have beside it, is never run here.
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
#define HAS_CLUSTERS
#define OF_FOUR __cluster_dims__(2, 2, 1)
#else
#define OF_FOUR
#endif

const unsigned threads = 128;

// Each block passes its numbers on, once round the cluster: after so many steps everyone has had everyone's.
__global__ void ring(const unsigned *in, unsigned *out) {
#ifdef HAS_CLUSTERS
    __shared__ unsigned own[2][threads];
    auto cluster = cg::this_cluster();
    const unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    unsigned sum = 0;
    own[0][threadIdx.x] = in[block * threads + threadIdx.x];
    for (unsigned step = 0; step < cluster.num_blocks(); step++) {
        cluster.sync();
        const unsigned next = (cluster.block_rank() + 1) % cluster.num_blocks();
        const unsigned value = own[step % 2][threadIdx.x];
        sum += value * (step + 1);
        *cluster.map_shared_rank(&own[(step + 1) % 2][threadIdx.x], next) = value;
    }
    // Two halves: what is between needs no other block.
    auto token = cluster.barrier_arrive();
    out[block * threads + threadIdx.x] = sum;
    cluster.barrier_wait(std::move(token));
#endif
}

// A histogram whose bins are spread over the blocks of a cluster.
__global__ void histogram(const unsigned char *in, unsigned n, unsigned *out) {
#ifdef HAS_CLUSTERS
    extern __shared__ unsigned bins[];
    auto cluster = cg::this_cluster();
    const unsigned each = 256 / cluster.num_blocks();
    for (unsigned i = threadIdx.x; i < each; i += blockDim.x) bins[i] = 0;
    cluster.sync();
    for (unsigned i = cluster.thread_rank(); i < n; i += cluster.num_threads())
        atomicAdd(cluster.map_shared_rank(bins, in[i] / each) + in[i] % each, 1u);
    cluster.sync();
    for (unsigned i = threadIdx.x; i < each; i += blockDim.x) out[cluster.block_rank() * each + i] = bins[i];
#endif
}

// Answers about the cluster: of a block's own memory, and of that of rank 0.
__global__ void OF_FOUR answers(unsigned *out) {
#ifdef HAS_CLUSTERS
    __shared__ unsigned own;
    __shared__ unsigned long long best;
    auto cluster = cg::this_cluster();
    if (threadIdx.x == 0) own = 0, best = 0;
    cluster.sync();
    unsigned *first = cluster.map_shared_rank(&own, 0);
    atomicOr(first, 1u << cluster.block_rank());
    atomicMax(cluster.map_shared_rank(&best, 0), 1000ull * cluster.block_rank() + threadIdx.x);
    const unsigned wrong = cluster.query_shared_rank(first) != 0 || cluster.query_shared_rank(&own) != cluster.block_rank();
    cluster.sync();
    const unsigned block = blockIdx.y * gridDim.x + blockIdx.x;
    if (threadIdx.x == 0) {
        const dim3 index = cluster.block_index(), shape = cluster.dim_blocks();
        out[block * 6] = *first;
        out[block * 6 + 1] = unsigned(*cluster.map_shared_rank(&best, 0));
        out[block * 6 + 2] = index.x * 10 + index.y;
        out[block * 6 + 3] = shape.x * 10 + shape.y;
        out[block * 6 + 4] = cluster.num_blocks();
        out[block * 6 + 5] = wrong;
    }
    cluster.sync();
#endif
}

cudaLaunchConfig_t in_clusters(dim3 grid, dim3 cluster, cudaLaunchAttribute &attribute) {
    cudaLaunchConfig_t config = {};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim.x = cluster.x, attribute.val.clusterDim.y = cluster.y, attribute.val.clusterDim.z = cluster.z;
    config.gridDim = grid, config.blockDim = threads;
    config.attrs = &attribute, config.numAttrs = 1;
    return config;
}

void check_ring(dim3 grid, dim3 cluster) {
    const unsigned blocks = grid.x * grid.y * grid.z, size = cluster.x * cluster.y * cluster.z;
    std::vector<unsigned> in(blocks * threads), found(in.size());
    std::iota(in.begin(), in.end(), 3u);
    unsigned *from, *to;
    CUDA_CHECK(cudaMalloc(&from, in.size() * 4));
    CUDA_CHECK(cudaMalloc(&to, in.size() * 4));
    CUDA_CHECK(cudaMemcpy(from, in.data(), in.size() * 4, cudaMemcpyHostToDevice));
    cudaLaunchAttribute attribute;
    const cudaLaunchConfig_t config = in_clusters(grid, cluster, attribute);
    CUDA_CHECK(cudaLaunchKernelEx(&config, ring, (const unsigned *)from, to));
    CUDA_CHECK(cudaMemcpy(found.data(), to, in.size() * 4, cudaMemcpyDeviceToHost));
    for (unsigned z = 0; z < grid.z; z++)
        for (unsigned y = 0; y < grid.y; y++)
            for (unsigned x = 0; x < grid.x; x++) {
                const unsigned ix = x % cluster.x, iy = y % cluster.y, iz = z % cluster.z;
                const unsigned rank = (iz * cluster.y + iy) * cluster.x + ix;
                const unsigned block = (z * grid.y + y) * grid.x + x;
                for (unsigned t = 0; t < threads; t++) {
                    unsigned wanted = 0;
                    for (unsigned step = 0; step < size; step++) {
                        const unsigned source = (rank + size - step) % size;
                        const unsigned sx = x - ix + source % cluster.x, sy = y - iy + source / cluster.x % cluster.y,
                                       sz = z - iz + source / cluster.x / cluster.y;
                        wanted += in[((sz * grid.y + sy) * grid.x + sx) * threads + t] * (step + 1);
                    }
                    const unsigned got = found[block * threads + t];
                    REQUIRE(got == wanted, "block %u, thread %u: %u, not %u", block, t, got, wanted);
                }
            }
    CUDA_CHECK(cudaFree(from));
    CUDA_CHECK(cudaFree(to));
}

void check_histogram(unsigned size) {
    const unsigned n = 20000;
    std::vector<unsigned char> in(n);
    std::vector<unsigned> wanted(256), found(256);
    for (unsigned i = 0, seed = size; i < n; i++) seed = seed * 1664525 + 1013904223, in[i] = seed >> 24, wanted[in[i]]++;
    unsigned char *from;
    unsigned *to;
    CUDA_CHECK(cudaMalloc(&from, n));
    CUDA_CHECK(cudaMalloc(&to, 1024));
    CUDA_CHECK(cudaMemcpy(from, in.data(), n, cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaFuncSetAttribute(histogram, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
    cudaLaunchAttribute attribute;
    cudaLaunchConfig_t config = in_clusters(size, size, attribute);
    config.dynamicSmemBytes = 1024 / size;
    CUDA_CHECK(cudaLaunchKernelEx(&config, histogram, (const unsigned char *)from, n, to));
    CUDA_CHECK(cudaMemcpy(found.data(), to, 1024, cudaMemcpyDeviceToHost));
    REQUIRE(found == wanted, "histogram over %u blocks", size);
    int most = 0, together = 0;
    CUDA_CHECK(cudaOccupancyMaxPotentialClusterSize(&most, histogram, &config));
    CUDA_CHECK(cudaOccupancyMaxActiveClusters(&together, histogram, &config));
    REQUIRE(most == 16 && together >= 1, "occupancy: %d, %d", most, together);
    CUDA_CHECK(cudaFree(from));
    CUDA_CHECK(cudaFree(to));
}

void check_answers() {
    unsigned *out, found[8 * 6];
    CUDA_CHECK(cudaMalloc(&out, sizeof found));
    answers<<<dim3(4, 2), threads>>>(out);
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cudaMemcpy(found, out, sizeof found, cudaMemcpyDeviceToHost));
    for (unsigned b = 0; b < 8; b++) {
        const unsigned wanted[] = {15, 3000 + threads - 1, b % 2 * 10 + b / 4, 22, 4, 0};
        for (unsigned i = 0; i < 6; i++)
            REQUIRE(found[b * 6 + i] == wanted[i], "block %u, answer %u: %u, not %u", b, i, found[b * 6 + i], wanted[i]);
    }
    answers<<<dim3(3, 2), threads>>>(out);
    const cudaError_t error = cudaGetLastError();
    REQUIRE(error == cudaErrorInvalidClusterSize, "a grid that clusters do not divide: %s", cudaGetErrorName(error));
    cudaFuncAttributes attributes;
    CUDA_CHECK(cudaFuncGetAttributes(&attributes, answers));
    REQUIRE(attributes.requiredClusterWidth == 2 && attributes.requiredClusterHeight == 2 && attributes.requiredClusterDepth == 1,
            "attributes: %d, %d, %d", attributes.requiredClusterWidth, attributes.requiredClusterHeight, attributes.requiredClusterDepth);
    CUDA_CHECK(cudaFree(out));
}

int main() {
    check_ring(8, 2);
    check_ring(8, 8);
    check_ring(dim3(4, 6), dim3(2, 3));
    check_ring(dim3(2, 2, 4), dim3(1, 2, 2));
    for (unsigned size : {1, 2, 4, 8, 16}) check_histogram(size);
    check_answers();
    succeed("rings, histograms and answers of clusters of 1 to 16 blocks");
}
