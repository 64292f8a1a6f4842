// What calls of the Runtime API cost their caller: one line `name<TAB>nanoseconds` each, the median over rounds of the
// mean of a burst. The stream is drained between bursts, so what is timed is the call, not the work it asks for, but
// where the name says "and wait".
//
// Linked with the shared runtime, so that the same program measures any libcudart.so.13 on any driver:
// LD_LIBRARY_PATH chooses.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <cuda_runtime.h>

__global__ void empty() {}

__global__ void with_five(float* a, float* b, int n, float x, float y) {
    if (n < 0) a[n] = b[n] * x + y;
}

static void check(cudaError_t error, const char* what) {
    if (error != cudaSuccess) {
        std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
        std::exit(1);
    }
}
#define CHECK(call) check(call, #call)

template <typename Call>
static void time_call(const char* name, int rounds, int burst, Call call) {
    std::vector<double> means;
    for (int round = -1; round < rounds; round++) {  // the first is not counted
        const auto start = std::chrono::steady_clock::now();
        for (int i = 0; i < burst; i++) call();
        const std::chrono::duration<double, std::nano> elapsed = std::chrono::steady_clock::now() - start;
        CHECK(cudaDeviceSynchronize());
        if (round >= 0) means.push_back(elapsed.count() / burst);
    }
    std::nth_element(means.begin(), means.begin() + means.size() / 2, means.end());
    std::printf("%s\t%.1f\n", name, means[means.size() / 2]);
}

int main(int count, char** arguments) {
    const int rounds = count > 1 ? std::max(1, std::atoi(arguments[1])) : 21;
    const int burst = 200;  // below what a GPU's queue holds: beyond it calls wait for the device
    cudaStream_t stream;
    cudaEvent_t event;
    float *device, *other, *pinned, pageable[1] = {};
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    CHECK(cudaMalloc(&device, 1 << 20));
    CHECK(cudaMalloc(&other, 1 << 20));
    CHECK(cudaMallocHost(&pinned, 1 << 20));

    int current = 0;
    time_call("cudaGetDevice", rounds, burst, [&] { CHECK(cudaGetDevice(&current)); });
    time_call("cudaSetDevice", rounds, burst, [&] { CHECK(cudaSetDevice(0)); });
    time_call("cudaGetLastError", rounds, burst, [&] { CHECK(cudaGetLastError()); });
    time_call("cudaLaunchKernel", rounds, burst, [&] { empty<<<1, 32, 0, stream>>>(); });
    time_call("cudaLaunchKernel, 5 arguments", rounds, burst,
              [&] { with_five<<<1, 32, 0, stream>>>(device, other, 1, 2.0f, 3.0f); });
    time_call("cudaMemcpyAsync, device to device, 4 B", rounds, burst,
              [&] { CHECK(cudaMemcpyAsync(device, other, 4, cudaMemcpyDeviceToDevice, stream)); });
    time_call("cudaMemcpyAsync, from pinned, 4 B", rounds, burst,
              [&] { CHECK(cudaMemcpyAsync(device, pinned, 4, cudaMemcpyHostToDevice, stream)); });
    time_call("cudaMemcpyAsync, from pageable, 4 B", rounds, burst,
              [&] { CHECK(cudaMemcpyAsync(device, pageable, 4, cudaMemcpyHostToDevice, stream)); });
    time_call("cudaMemsetAsync, 4 B", rounds, burst, [&] { CHECK(cudaMemsetAsync(device, 0, 4, stream)); });
    time_call("cudaEventRecord", rounds, burst, [&] { CHECK(cudaEventRecord(event, stream)); });
    time_call("cudaEventQuery, done", rounds, burst, [&] { CHECK(cudaEventQuery(event)); });
    time_call("cudaStreamQuery, idle", rounds, burst, [&] { CHECK(cudaStreamQuery(stream)); });
    time_call("cudaLaunchKernel and wait", rounds, burst, [&] {
        empty<<<1, 32, 0, stream>>>();
        CHECK(cudaStreamSynchronize(stream));
    });
    time_call("cudaMalloc and cudaFree, 64 KiB", rounds, 50, [&] {
        void* memory;
        CHECK(cudaMalloc(&memory, 1 << 16));
        CHECK(cudaFree(memory));
    });
    time_call("cudaMallocAsync and cudaFreeAsync, 64 KiB", rounds, burst, [&] {
        void* memory;
        CHECK(cudaMallocAsync(&memory, 1 << 16, stream));
        CHECK(cudaFreeAsync(memory, stream));
    });
    return 0;
}
