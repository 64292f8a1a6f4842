// What the threads of a warp do together: shuffles, votes, matches, reductions, also with some of them away.

#include <vector>

#include "example.h"

constexpr unsigned everyone = 0xffffffffu, rows = 16;

// Every result of a thread, a row each.
__global__ void together(unsigned *out) {
    const unsigned lane = threadIdx.x, value = lane * lane * 7 + 3;
    unsigned row = 0;
    auto put = [&](unsigned result) { out[row++ * 32 + lane] = result; };
    put(__shfl_sync(everyone, value, (lane * 5 + 1) % 32));
    put(__shfl_up_sync(everyone, value, 3));
    put(__shfl_down_sync(everyone, value, 9));
    put(__shfl_xor_sync(everyone, value, 21));
    put(__shfl_sync(everyone, value, 2, 8));
    put(__shfl_up_sync(everyone, value, 1, 16));
    put(__ballot_sync(everyone, value % 3 == 0));
    put(__any_sync(everyone, lane == 31) * 2 + __all_sync(everyone, lane < 31));
    put(__match_any_sync(everyone, lane / 5));
    int same = 7;
    put(__match_all_sync(everyone, lane / 32, &same) + unsigned(same));
    put(__reduce_add_sync(everyone, value));
    put(__reduce_max_sync(everyone, value) - __reduce_min_sync(everyone, value));
    put(__reduce_xor_sync(everyone, value) ^ __reduce_or_sync(everyone, value) ^ __reduce_and_sync(everyone, value | 1));
    unsigned part = 99;
    if (lane % 3 == 1) {
        const unsigned mask = __activemask();
        part = __shfl_sync(mask, value, 4) + __popc(__ballot_sync(mask, lane > 10));
    }
    put(part);
    double wide = lane * 0.5;
    put(unsigned(__shfl_xor_sync(everyone, wide, 1) * 2));
    put(__popc(__activemask()));
}

// The same on the host; what the manual leaves open (a source out of range) is the thread's own value.
std::vector<unsigned> expected() {
    std::vector<unsigned> out;
    auto value = [](unsigned lane) { return lane * lane * 7 + 3; };
    auto row = [&](auto result) {
        for (unsigned lane = 0; lane < 32; lane++) out.push_back(result(lane));
    };
    unsigned multiples = 0, sum = 0, low = ~0u, high = 0, exclusive = 0, either = 0, both = ~0u, late = 0;
    for (unsigned lane = 0; lane < 32; lane++) {
        const unsigned v = value(lane);
        multiples |= unsigned(v % 3 == 0) << lane;
        sum += v, low = v < low ? v : low, high = v > high ? v : high;
        exclusive ^= v, either |= v, both &= v | 1;
        late += lane % 3 == 1 && lane > 10;
    }
    row([&](unsigned lane) { return value((lane * 5 + 1) % 32); });
    row([&](unsigned lane) { return value(lane >= 3 ? lane - 3 : lane); });
    row([&](unsigned lane) { return value(lane + 9 < 32 ? lane + 9 : lane); });
    row([&](unsigned lane) { return value(lane ^ 21); });
    row([&](unsigned lane) { return value(lane / 8 * 8 + 2); });
    row([&](unsigned lane) { return value(lane % 16 ? lane - 1 : lane); });
    row([&](unsigned) { return multiples; });
    row([&](unsigned) { return 2u; });
    row([&](unsigned lane) {
        unsigned mask = 0;
        for (unsigned other = 0; other < 32; other++) mask |= unsigned(other / 5 == lane / 5) << other;
        return mask;
    });
    row([&](unsigned) { return everyone + 1; });
    row([&](unsigned) { return sum; });
    row([&](unsigned) { return high - low; });
    row([&](unsigned) { return exclusive ^ either ^ both; });
    row([&](unsigned lane) { return lane % 3 == 1 ? value(4) + late : 99; });
    row([&](unsigned lane) { return lane ^ 1; });
    row([&](unsigned) { return 32u; });
    return out;
}

// Atomics from every thread of many blocks.
__global__ void count(unsigned *out, float *real, unsigned long long *wide) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    atomicAdd(&out[0], 1);
    atomicAdd(&out[1 + i % 7], i);
    atomicMax(&out[8], i ^ 0x55);
    atomicMin((int *)&out[9], -int(i));
    atomicXor(&out[10], i * 2654435761u);
    atomicOr(&out[11], 1u << i % 32);
    atomicInc(&out[12], 99);
    unsigned seen = out[13], assumed;
    do {
        assumed = seen;
        seen = atomicCAS(&out[13], assumed, assumed + 3);
    } while (seen != assumed);
    atomicAdd(real, 0.5f);
    atomicAdd(wide, (unsigned long long)i << 20);
    if (atomicExch(&out[14], i + 1) == i + 1) out[15] = 1;  // nobody else writes this number
}

void check_atomics() {
    const unsigned blocks = 37, threads = 96, n = blocks * threads;
    unsigned *out;
    float *real;
    unsigned long long *wide;
    CUDA_CHECK(cudaMalloc(&out, 16 * sizeof(unsigned)));
    CUDA_CHECK(cudaMalloc(&real, sizeof(float)));
    CUDA_CHECK(cudaMalloc(&wide, sizeof(unsigned long long)));
    CUDA_CHECK(cudaMemset(out, 0, 16 * sizeof(unsigned)));
    CUDA_CHECK(cudaMemset(real, 0, sizeof(float)));
    CUDA_CHECK(cudaMemset(wide, 0, sizeof(unsigned long long)));
    count<<<blocks, threads>>>(out, real, wide);
    CUDA_CHECK(cudaGetLastError());
    unsigned found[16], wanted[16] = {n};
    float found_real;
    unsigned long long found_wide, wanted_wide = 0;
    CUDA_CHECK(cudaMemcpy(found, out, sizeof found, cudaMemcpyDeviceToHost));
    CUDA_CHECK(cudaMemcpy(&found_real, real, sizeof found_real, cudaMemcpyDeviceToHost));
    CUDA_CHECK(cudaMemcpy(&found_wide, wide, sizeof found_wide, cudaMemcpyDeviceToHost));
    for (unsigned i = 0; i < n; i++) {
        wanted[1 + i % 7] += i;
        wanted[8] = wanted[8] > (i ^ 0x55) ? wanted[8] : i ^ 0x55;
        wanted[10] ^= i * 2654435761u;
        wanted_wide += (unsigned long long)i << 20;
    }
    wanted[9] = unsigned(-int(n - 1)), wanted[11] = everyone, wanted[12] = n % 100, wanted[13] = 3 * n;
    for (unsigned i = 0; i < 14; i++) REQUIRE(found[i] == wanted[i], "atomic %u: %u, not %u", i, found[i], wanted[i]);
    REQUIRE(found[14] >= 1 && found[14] <= n && found[15] == 0, "exchange: %u, %u", found[14], found[15]);
    REQUIRE(found_real == n * 0.5f, "float addition: %g", found_real);
    REQUIRE(found_wide == wanted_wide, "64-bit addition: %llu", found_wide);
}

int main() {
    unsigned *out;
    CUDA_CHECK(cudaMalloc(&out, rows * 32 * sizeof(unsigned)));
    together<<<1, 32>>>(out);
    CUDA_CHECK(cudaGetLastError());
    std::vector<unsigned> found(rows * 32), wanted = expected();
    CUDA_CHECK(cudaMemcpy(found.data(), out, found.size() * sizeof(unsigned), cudaMemcpyDeviceToHost));
    for (unsigned i = 0; i < found.size(); i++)
        REQUIRE(found[i] == wanted[i], "row %u, lane %u: %u, not %u", i / 32, i % 32, found[i], wanted[i]);
    check_atomics();
    succeed("%u results of each lane, and 13 atomics", rows);
}
