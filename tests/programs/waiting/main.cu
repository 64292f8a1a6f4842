// Threads that wait for other threads by reading memory: none of it may hang, whatever the number of cores.

#include <thread>

#include "example.h"

// Each block waits for the one before it. Blocks start in order, so this always ends.
__global__ void chain(volatile unsigned *turn, unsigned *order) {
    if (threadIdx.x == 0) {
        while (*turn != blockIdx.x) {}
        order[blockIdx.x] = blockIdx.x * 3 + 1;
        __threadfence();
        *turn = blockIdx.x + 1;
    }
}

// A lock that every thread takes, neighbours in a warp included.
__global__ void locked(unsigned *lock, unsigned *value) {
    bool done = false;
    while (!done) {
        if (atomicCAS(lock, 0, 1) == 0) {
            __threadfence();
            *(volatile unsigned *)value = *(volatile unsigned *)value * 5 % 1000003 + 1;
            __threadfence();
            atomicExch(lock, 0);
            done = true;
        }
    }
}

// The last block to finish adds up what all have left.
__global__ void last_one(unsigned *parts, unsigned *finished, unsigned *total) {
    __shared__ bool last;
    if (threadIdx.x == 0) {
        parts[blockIdx.x] = blockIdx.x + 1;
        __threadfence();
        last = atomicAdd(finished, 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (last) atomicAdd(total, ((volatile unsigned *)parts)[threadIdx.x]);
}

__global__ void wait_for_host(volatile int *flag, int *seen) {
    while (*flag == 0) {}
    *seen = *flag;
}

unsigned *zeros(size_t count) {
    unsigned *memory;
    CUDA_CHECK(cudaMalloc(&memory, count * sizeof(unsigned)));
    CUDA_CHECK(cudaMemset(memory, 0, count * sizeof(unsigned)));
    return memory;
}

unsigned read_one(const unsigned *memory) {
    unsigned value;
    CUDA_CHECK(cudaMemcpy(&value, memory, sizeof value, cudaMemcpyDeviceToHost));
    return value;
}

int main() {
    const unsigned blocks = 64;
    unsigned *turn = zeros(1), *order = zeros(blocks);
    chain<<<blocks, 64>>>(turn, order);
    CUDA_CHECK(cudaDeviceSynchronize());
    REQUIRE(read_one(turn) == blocks && read_one(order + 63) == 190, "the chain ended at %u", read_one(turn));

    unsigned *lock = zeros(1), *value = zeros(1), wanted = 0;
    locked<<<4, 48>>>(lock, value);
    CUDA_CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < 4 * 48; i++) wanted = wanted * 5 % 1000003 + 1;
    REQUIRE(read_one(value) == wanted, "under the lock: %u, not %u", read_one(value), wanted);

    unsigned *parts = zeros(blocks), *finished = zeros(1), *total = zeros(1);
    last_one<<<blocks, blocks>>>(parts, finished, total);
    CUDA_CHECK(cudaDeviceSynchronize());
    REQUIRE(read_one(total) == blocks * (blocks + 1) / 2, "the last block found %u", read_one(total));

    // The kernel runs while the host does something else, and then sees what the host writes. (Not where the program's
    // user has asked for launches that return only when the kernel has ended.)
    if (const char *blocking = getenv("CUDA_LAUNCH_BLOCKING"); blocking && *blocking == '1')
        succeed("blocks and threads of a warp waited for each other");
    int *shared;
    CUDA_CHECK(cudaHostAlloc(&shared, 2 * sizeof(int), cudaHostAllocMapped));
    shared[0] = shared[1] = 0;
    wait_for_host<<<1, 1>>>(shared, shared + 1);
    CUDA_CHECK(cudaGetLastError());
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    *(volatile int *)shared = 42;
    CUDA_CHECK(cudaDeviceSynchronize());
    REQUIRE(shared[1] == 42, "the kernel saw %d", shared[1]);
    succeed("blocks, threads of a warp and the host waited for each other");
}
