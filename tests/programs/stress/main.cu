// Eight threads with eight streams each: copies of every kind, fills, launches, events, host functions and allocations, a hundred
// thousand operations in an order that no two threads share. Every byte is compared with what the host computed, and in the end
// the process holds no more than before.

#include <algorithm>
#include <atomic>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "example.h"
#include "process.h"

constexpr int THREADS = 8, STREAMS = 8, WORDS = 256, ROUND = 160;
constexpr int BYTES = WORDS * int(sizeof(unsigned));

std::atomic<long> operations;

__global__ void mix(unsigned *data, unsigned first, unsigned count, unsigned factor) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) data[first + i] = data[first + i] * factor + i;
}

// A stream, the device memory that only it works on, and what must be there.
struct Lane {
    cudaStream_t stream = nullptr;
    unsigned *device = nullptr;
    unsigned *staging = nullptr;  // pinned: a fresh piece for each copy of a round
    int used = 0;
    std::vector<unsigned> expected = std::vector<unsigned>(WORDS);
    std::vector<std::pair<unsigned *, std::vector<unsigned>>> answers;  // pinned places, and what they will hold
    std::unique_ptr<std::atomic<int>> calls = std::make_unique<std::atomic<int>>(0);
    int calls_expected = 0;

    unsigned *piece() { return staging + WORDS * used++; }
};

void CUDART_CB count_call(void *counter) { static_cast<std::atomic<int> *>(counter)->fetch_add(1); }

void CUDART_CB count_callback(cudaStream_t, cudaError_t code, void *counter) {
    if (code == cudaSuccess) count_call(counter);
}

class Worker {
  public:
    explicit Worker(unsigned seed) : random(seed), lanes(STREAMS) {
        for (int i = 0; i < STREAMS; i++) {
            Lane &lane = lanes[i];
            make_stream(lane, i);
            CUDA_CHECK(cudaMalloc(&lane.device, BYTES));
            CUDA_CHECK(cudaMemsetAsync(lane.device, 0, BYTES, lane.stream));
            CUDA_CHECK(cudaMallocHost(&lane.staging, size_t(ROUND) * BYTES));
        }
        CUDA_CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
        CUDA_CHECK(cudaEventCreate(&timed[0]));
        CUDA_CHECK(cudaEventCreate(&timed[1]));
    }

    ~Worker() {
        for (Lane &lane : lanes) {
            CUDA_CHECK(cudaStreamDestroy(lane.stream));
            CUDA_CHECK(cudaFree(lane.device));
            CUDA_CHECK(cudaFreeHost(lane.staging));
        }
        CUDA_CHECK(cudaEventDestroy(event));
        CUDA_CHECK(cudaEventDestroy(timed[0]));
        CUDA_CHECK(cudaEventDestroy(timed[1]));
    }

    void run(int count) {
        while (count > 0) {
            const int now = std::min(count, ROUND);
            for (int i = 0; i < now; i++) step();
            count -= now;
            check();
        }
    }

  private:
    unsigned below(unsigned limit) { return random() % limit; }

    void make_stream(Lane &lane, int number) {
        const unsigned flags = number % 2 ? cudaStreamNonBlocking : cudaStreamDefault;
        CUDA_CHECK(cudaStreamCreateWithPriority(&lane.stream, flags, -int(below(3))));
    }

    // From now on `later` runs after all that `earlier` has.
    void order(Lane &earlier, Lane &later) {
        CUDA_CHECK(cudaEventRecord(event, earlier.stream));
        CUDA_CHECK(cudaStreamWaitEvent(later.stream, event, 0));
    }

    void step() {
        Lane &lane = lanes[below(STREAMS)];
        const unsigned first = below(WORDS), count = 1 + below(WORDS - first), value = random();
        unsigned *const place = lane.device + first;
        const auto begin = lane.expected.begin() + first;
        const size_t bytes = count * sizeof(unsigned);
        operations++;
        switch (below(20)) {
            case 0:
                CUDA_CHECK(cudaMemsetAsync(place, value & 0xff, bytes, lane.stream));
                std::fill_n(begin, count, (value & 0xff) * 0x01010101u);
                break;
            case 1:
                CU_CHECK(cuMemsetD32Async(CUdeviceptr(place), value, count, lane.stream));
                std::fill_n(begin, count, value);
                break;
            case 2:
            case 3: {
                unsigned *const pinned = lane.piece();
                for (unsigned i = 0; i < count; i++) begin[i] = pinned[i] = value + i;
                CUDA_CHECK(cudaMemcpyAsync(place, pinned, bytes, cudaMemcpyHostToDevice, lane.stream));
                break;
            }
            case 4: {
                std::vector<unsigned> pageable(count);
                for (unsigned i = 0; i < count; i++) begin[i] = pageable[i] = value - i;
                CUDA_CHECK(cudaMemcpyAsync(place, pageable.data(), bytes, cudaMemcpyHostToDevice, lane.stream));
                break;  // the vector may go: the copy has read it
            }
            case 5: {
                CUDA_CHECK(cudaStreamSynchronize(lane.stream));
                std::vector<unsigned> pageable(count, value);
                std::fill_n(begin, count, value);
                CUDA_CHECK(cudaMemcpy(place, pageable.data(), bytes, cudaMemcpyHostToDevice));
                break;
            }
            case 6:
            case 7: {
                unsigned *const pinned = lane.piece();
                CUDA_CHECK(cudaMemcpyAsync(pinned, place, bytes, cudaMemcpyDeviceToHost, lane.stream));
                lane.answers.emplace_back(pinned, std::vector<unsigned>(begin, begin + count));
                break;
            }
            case 8: {
                std::vector<unsigned> pageable(count);
                CUDA_CHECK(cudaMemcpyAsync(pageable.data(), place, bytes, cudaMemcpyDeviceToHost, lane.stream));
                CUDA_CHECK(cudaStreamSynchronize(lane.stream));
                compare(pageable.data(), &*begin, count, "a copy to pageable memory");
                break;
            }
            case 9:
            case 10:
            case 11: {
                Lane &other = lanes[below(STREAMS)];
                if (&other == &lane) break;
                order(other, lane);
                CUDA_CHECK(cudaMemcpyAsync(place, other.device + first, bytes, cudaMemcpyDeviceToDevice, lane.stream));
                order(lane, other);
                std::copy_n(other.expected.begin() + first, count, begin);
                break;
            }
            case 12:
            case 13:
            case 14:
                mix<<<(count + 31) / 32, 32, 0, lane.stream>>>(lane.device, first, count, value | 1);
                CUDA_CHECK(cudaGetLastError());
                for (unsigned i = 0; i < count; i++) begin[i] = begin[i] * (value | 1) + i;
                break;
            case 15:
                CUDA_CHECK(cudaLaunchHostFunc(lane.stream, count_call, lane.calls.get()));
                lane.calls_expected++;
                break;
            case 16: {
                const cudaError_t code = cudaStreamQuery(lane.stream);
                REQUIRE(code == cudaSuccess || code == cudaErrorNotReady, "a query gave %d", code);
                CUDA_CHECK(cudaStreamAddCallback(lane.stream, count_callback, lane.calls.get(), 0));
                lane.calls_expected++;
                break;
            }
            case 17: {
                float time = -1;
                CUDA_CHECK(cudaEventRecord(timed[0], lane.stream));
                CUDA_CHECK(cudaEventRecord(timed[1], lane.stream));
                CUDA_CHECK(cudaEventSynchronize(timed[1]));
                CUDA_CHECK(cudaEventElapsedTime(&time, timed[0], timed[1]));
                REQUIRE(time >= 0, "an event came %g ms before the one recorded after it", -time);
                break;
            }
            case 18: {
                unsigned *scratch = nullptr;
                CUDA_CHECK(cudaMallocAsync(&scratch, bytes, lane.stream));
                CUDA_CHECK(cudaMemcpyAsync(scratch, place, bytes, cudaMemcpyDeviceToDevice, lane.stream));
                mix<<<(count + 31) / 32, 32, 0, lane.stream>>>(scratch, 0, count, 5);
                CUDA_CHECK(cudaMemcpyAsync(place, scratch, bytes, cudaMemcpyDeviceToDevice, lane.stream));
                CUDA_CHECK(cudaFreeAsync(scratch, lane.stream));
                for (unsigned i = 0; i < count; i++) begin[i] = begin[i] * 5 + i;
                break;
            }
            case 19: {
                if (below(8)) break;  // waits for everything
                unsigned *fresh = nullptr;
                CUDA_CHECK(cudaMalloc(&fresh, BYTES));
                CUDA_CHECK(cudaMemcpyAsync(fresh, lane.device, BYTES, cudaMemcpyDeviceToDevice, lane.stream));
                CUDA_CHECK(cudaFree(lane.device));
                lane.device = fresh;
                break;
            }
        }
    }

    static void compare(const unsigned *found, const unsigned *wanted, size_t count, const char *what) {
        for (size_t i = 0; i < count; i++)
            REQUIRE(found[i] == wanted[i], "%s: word %zu is %#x, not %#x", what, i, found[i], wanted[i]);
    }

    // Waits for the round to end and looks at everything.
    void check() {
        std::vector<unsigned> found(WORDS);
        for (int i = 0; i < STREAMS; i++) {
            Lane &lane = lanes[i];
            CUDA_CHECK(cudaStreamSynchronize(lane.stream));
            for (const auto &[place, wanted] : lane.answers)
                compare(place, wanted.data(), wanted.size(), "a copy to pinned memory");
            lane.answers.clear();
            lane.used = 0;
            CUDA_CHECK(cudaMemcpy(found.data(), lane.device, BYTES, cudaMemcpyDeviceToHost));
            compare(found.data(), lane.expected.data(), WORDS, "the memory of a stream");
            REQUIRE(*lane.calls == lane.calls_expected, "%d of %d host functions were called", int(*lane.calls),
                    lane.calls_expected);
            if (below(4) == 0) {
                CUDA_CHECK(cudaStreamDestroy(lane.stream));
                make_stream(lane, i);
            }
        }
    }

    std::mt19937 random;
    std::vector<Lane> lanes;
    cudaEvent_t event, timed[2];
};

void run_all(int each, unsigned seed) {
    std::vector<std::thread> threads;
    for (int i = 0; i < THREADS; i++) threads.emplace_back([=] { Worker(seed + i).run(each); });
    for (std::thread &thread : threads) thread.join();
}

int main() {
    // Of a size that the machine has, so that what is free depends on this program alone.
    setenv("ANYWARP_MEMORY", "64M", 0);
    CUDA_CHECK(cudaFree(nullptr));
    // What is made once, is made now.
    run_all(1000, 1);
    operations = 0;
    const Holding before = Holding::now();
    run_all(12500, 1000);
    CUDA_CHECK(cudaDeviceSynchronize());
    require_back_at(before, "the stress");
    succeed("%ld operations of %d threads in %d streams each, and nothing was left behind", operations.load(), THREADS, STREAMS);
}
