// Sixteen virtual devices in one process: memory, streams, events, kernels and peers of each, alone and at the same time.

#include <stdlib.h>

#include <atomic>
#include <thread>
#include <vector>

#include "example.h"
#include "process.h"

constexpr int devices = 16;
constexpr int values = 1 << 16;

__global__ void fill(unsigned *data, unsigned value) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    data[i] = value + i;
}

__global__ void add(unsigned *sum, const unsigned *other) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    sum[i] += other[i];
}

__device__ unsigned runs; // one on each device

__global__ void count_run() { atomicAdd(&runs, 1u); }

struct PerDevice {
    unsigned *data = nullptr, *sum = nullptr;
    cudaStream_t stream = nullptr;
    cudaEvent_t filled = nullptr, added = nullptr;
};

size_t bytes_in_use(int device) {
    size_t free = 0, total = 0;
    CUDA_CHECK(cudaSetDevice(device));
    CUDA_CHECK(cudaMemGetInfo(&free, &total));
    return total - free;
}

void make(std::vector<PerDevice> &all) {
    for (int i = 0; i < devices; i++) {
        CUDA_CHECK(cudaSetDevice(i));
        CUDA_CHECK(cudaMalloc(&all[i].data, values * sizeof(unsigned)));
        CUDA_CHECK(cudaMalloc(&all[i].sum, values * sizeof(unsigned)));
        CUDA_CHECK(cudaMemset(all[i].sum, 0, values * sizeof(unsigned)));
        CUDA_CHECK(cudaStreamCreateWithFlags(&all[i].stream, cudaStreamNonBlocking));
        CUDA_CHECK(cudaEventCreateWithFlags(&all[i].filled, cudaEventDisableTiming));
        CUDA_CHECK(cudaEventCreateWithFlags(&all[i].added, cudaEventDisableTiming));
        CUDA_CHECK(cudaDeviceSynchronize());
    }
}

// Each device adds up what all of them have, its own and, one after another, its peers': read by the kernel where it lies on
// even devices, copied over first on odd ones.
void everybody_adds_up(std::vector<PerDevice> &all) {
    for (int i = 0; i < devices; i++) {
        CUDA_CHECK(cudaSetDevice(i));
        fill<<<values / 256, 256, 0, all[i].stream>>>(all[i].data, unsigned(i) << 20);
        CUDA_CHECK(cudaGetLastError());
        CUDA_CHECK(cudaEventRecord(all[i].filled, all[i].stream));
        for (int peer = 0; peer < devices; peer++) {
            int can = -1;
            CUDA_CHECK(cudaDeviceCanAccessPeer(&can, i, peer));
            REQUIRE(can == (i != peer), "device %d and its peer %d: %d", i, peer, can);
            if (peer != i) CUDA_CHECK(cudaDeviceEnablePeerAccess(peer, 0));
        }
    }
    std::vector<unsigned *> copies(devices, nullptr);
    for (int i = 0; i < devices; i++) {
        CUDA_CHECK(cudaSetDevice(i));
        if (i % 2) CUDA_CHECK(cudaMalloc(&copies[i], values * sizeof(unsigned)));
        for (int step = 0; step < devices; step++) {
            const int peer = (i + step) % devices;
            CUDA_CHECK(cudaStreamWaitEvent(all[i].stream, all[peer].filled, 0));
            const unsigned *other = all[peer].data;
            if (i % 2) {
                CUDA_CHECK(cudaMemcpyPeerAsync(copies[i], i, other, peer, values * sizeof(unsigned), all[i].stream));
                other = copies[i];
            }
            add<<<values / 256, 256, 0, all[i].stream>>>(all[i].sum, other);
            CUDA_CHECK(cudaGetLastError());
        }
        CUDA_CHECK(cudaEventRecord(all[i].added, all[i].stream));
    }
    std::vector<unsigned> found(values);
    for (int i = 0; i < devices; i++) {
        // Read from another device's context: pointers say where they belong.
        CUDA_CHECK(cudaSetDevice((i + 5) % devices));
        CUDA_CHECK(cudaEventSynchronize(all[i].added));
        CUDA_CHECK(cudaMemcpy(found.data(), all[i].sum, values * sizeof(unsigned), cudaMemcpyDefault));
        const unsigned of_all = unsigned(devices * (devices - 1) / 2) << 20;
        for (int k = 0; k < values; k++)
            REQUIRE(found[k] == of_all + unsigned(devices * k), "device %d has %u at %d", i, found[k], k);
        cudaPointerAttributes attributes;
        CUDA_CHECK(cudaPointerGetAttributes(&attributes, all[i].sum));
        REQUIRE(attributes.device == i, "memory of device %d is of device %d", i, attributes.device);
        CUDA_CHECK(cudaSetDevice(i));
        CUDA_CHECK(cudaFree(copies[i]));
    }
}

// A thread for each device, all at once. The current device is the thread's own, and so is a device's variable.
void a_thread_each() {
    constexpr unsigned launches = 200;
    std::vector<std::thread> threads;
    for (int i = 0; i < devices; i++)
        threads.emplace_back([i] {
            int device = -1;
            CUDA_CHECK(cudaGetDevice(&device));
            REQUIRE(device == 0, "a new thread begins with device %d", device);
            CUDA_CHECK(cudaSetDevice(i));
            for (unsigned k = 0; k < launches + unsigned(i); k++) count_run<<<1, 1>>>();
            CUDA_CHECK(cudaDeviceSynchronize());
            unsigned counted = 0;
            CUDA_CHECK(cudaMemcpyFromSymbol(&counted, runs, sizeof counted));
            REQUIRE(counted == launches + unsigned(i), "device %d counted %u", i, counted);
        });
    for (std::thread &thread : threads) thread.join();
}

// What belongs to one device is refused on another.
void mistakes_are_told(std::vector<PerDevice> &all) {
    CUDA_CHECK(cudaSetDevice(3));
    const cudaError_t there = cudaEventRecord(all[3].filled, all[4].stream);
    REQUIRE(there == cudaErrorInvalidResourceHandle, "an event of device 3 in a stream of device 4: %s", cudaGetErrorName(there));
    const cudaError_t twice = cudaDeviceEnablePeerAccess(4, 0);
    REQUIRE(twice == cudaErrorPeerAccessAlreadyEnabled, "peers twice: %s", cudaGetErrorName(twice));
    const cudaError_t none = cudaSetDevice(devices);
    REQUIRE(none == cudaErrorInvalidDevice, "device %d: %s", devices, cudaGetErrorName(none));
    (void)cudaGetLastError();
}

int main() {
    // Read at the first call.
    setenv("ANYWARP_DEVICES", "16", 1);
    int count = 0;
    CUDA_CHECK(cudaGetDeviceCount(&count));
    REQUIRE(count == devices, "%d devices", count);

    std::vector<size_t> at_first;
    for (int i = 0; i < devices; i++) at_first.push_back(bytes_in_use(i));
    for (int round = 0; round < 3; round++) {
        std::vector<PerDevice> all(devices);
        make(all);
        everybody_adds_up(all);
        a_thread_each();
        mistakes_are_told(all);
        // Half of them is given back piece by piece, the rest goes with the reset.
        for (int i = 0; i < devices; i++) {
            CUDA_CHECK(cudaSetDevice(i));
            if (i % 2 == 0) {
                CUDA_CHECK(cudaFree(all[i].data));
                CUDA_CHECK(cudaFree(all[i].sum));
                CUDA_CHECK(cudaStreamDestroy(all[i].stream));
                CUDA_CHECK(cudaEventDestroy(all[i].filled));
                CUDA_CHECK(cudaEventDestroy(all[i].added));
            }
            CUDA_CHECK(cudaDeviceReset());
        }
        for (int i = 0; i < devices; i++)
            REQUIRE(bytes_in_use(i) == at_first[i], "device %d keeps %zu bytes, had %zu", i, bytes_in_use(i), at_first[i]);
    }
    succeed("%d devices added up each other's memory, three times", devices);
}
