// A memory pool under a million pairs of allocation and free from eight threads: nobody gets memory that somebody else has, and
// nothing stays.

#include <atomic>
#include <thread>
#include <vector>

#include "example.h"
#include "process.h"

constexpr int threads = 8;
constexpr unsigned pairs = 125000; // of each thread

// Marks every sixteenth word as somebody's, and counts where another mark is found a moment later.
__global__ void own(unsigned *memory, unsigned words, unsigned mark, unsigned *wrong) {
    for (unsigned i = 16 * threadIdx.x; i < words; i += 16 * blockDim.x) memory[i] = mark + i;
    __syncthreads();
    for (unsigned i = 16 * (threadIdx.x ^ 1); i < words; i += 16 * blockDim.x)
        if (memory[i] != mark + i) atomicAdd(wrong, 1u);
}

unsigned long long ask(cudaMemPool_t pool, cudaMemPoolAttr attribute) {
    unsigned long long value = ~0ull;
    CUDA_CHECK(cudaMemPoolGetAttribute(pool, attribute, &value));
    return value;
}

// Pairs in a thread's own stream; every hundredth piece is used, and freed in another stream than it came from.
void work(cudaMemPool_t pool, int number, unsigned *wrong) {
    cudaStream_t streams[2];
    cudaEvent_t used;
    for (cudaStream_t &stream : streams) CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CUDA_CHECK(cudaEventCreateWithFlags(&used, cudaEventDisableTiming));
    unsigned random = unsigned(number) * 2654435761u + 1;
    for (unsigned i = 0; i < pairs; i++) {
        random = random * 1664525u + 1013904223u;
        const unsigned words = 64 + (random >> 16) % 4096;
        unsigned *memory = nullptr;
        CUDA_CHECK(cudaMallocFromPoolAsync(&memory, words * sizeof *memory, pool, streams[0]));
        REQUIRE(memory != nullptr, "no memory");
        if (i % 100) {
            CUDA_CHECK(cudaFreeAsync(memory, streams[0]));
            continue;
        }
        own<<<1, 64, 0, streams[0]>>>(memory, words, random, wrong);
        CUDA_CHECK(cudaGetLastError());
        CUDA_CHECK(cudaEventRecord(used, streams[0]));
        CUDA_CHECK(cudaStreamWaitEvent(streams[1], used, 0));
        CUDA_CHECK(cudaFreeAsync(memory, streams[1]));
        // A queue of a stream takes what it is given: this keeps it short, as the hardware's does.
        if (i % 1000 == 0) CUDA_CHECK(cudaStreamSynchronize(streams[1]));
    }
    for (cudaStream_t stream : streams) {
        CUDA_CHECK(cudaStreamSynchronize(stream));
        CUDA_CHECK(cudaStreamDestroy(stream));
    }
    CUDA_CHECK(cudaEventDestroy(used));
}

void all_threads(cudaMemPool_t pool, unsigned *wrong) {
    std::vector<std::thread> started;
    for (int i = 0; i < threads; i++) started.emplace_back(work, pool, i, wrong);
    for (std::thread &thread : started) thread.join();
}

int main() {
    unsigned *wrong = nullptr;
    CUDA_CHECK(cudaMalloc(&wrong, sizeof *wrong));
    CUDA_CHECK(cudaMemset(wrong, 0, sizeof *wrong));
    // What the first round leaves is for the next to use: free pages, and the C library's for each thread.
    Holding before{};

    for (unsigned long long keep : {0ull, ~0ull}) {
        cudaMemPoolProps props{};
        props.allocType = cudaMemAllocationTypePinned;
        props.location = {cudaMemLocationTypeDevice, 0};
        cudaMemPool_t pool;
        CUDA_CHECK(cudaMemPoolCreate(&pool, &props));
        CUDA_CHECK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep));
        all_threads(pool, wrong);
        unsigned found = 0;
        CUDA_CHECK(cudaMemcpy(&found, wrong, sizeof found, cudaMemcpyDeviceToHost));
        REQUIRE(found == 0, "%u words belonged to two", found);
        const unsigned long long used = ask(pool, cudaMemPoolAttrUsedMemCurrent), most = ask(pool, cudaMemPoolAttrUsedMemHigh);
        REQUIRE(used == 0, "%llu bytes are in use at the end", used);
        REQUIRE(most > 0 && most <= (1ull << 30), "at most %llu bytes were in use", most);
        REQUIRE((ask(pool, cudaMemPoolAttrReservedMemCurrent) != 0) == (keep != 0), "what is kept is not what was asked for");
        CUDA_CHECK(cudaMemPoolTrimTo(pool, 0));
        REQUIRE(ask(pool, cudaMemPoolAttrReservedMemCurrent) == 0, "trimmed, and still %llu bytes", ask(pool, cudaMemPoolAttrReservedMemCurrent));
        CUDA_CHECK(cudaMemPoolDestroy(pool));
        if (keep) require_back_at(before, "two million allocations");
        before = Holding::now();
    }
    CUDA_CHECK(cudaFree(wrong));
    succeed("%u pairs from %d threads, twice", pairs * threads, threads);
}
