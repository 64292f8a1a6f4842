// Objects and threads in numbers: made, used and destroyed, also while other threads use them. No crash, no hang, nothing left behind.

#include <atomic>
#include <thread>
#include <vector>

#include "example.h"
#include "process.h"

__global__ void bump(unsigned *data) { atomicAdd(data, 1u); }

void work_briefly() {
    unsigned *data = nullptr, found = 0;
    CUDA_CHECK(cudaMallocAsync(&data, sizeof *data, cudaStreamPerThread));
    CUDA_CHECK(cudaMemsetAsync(data, 0, sizeof *data, cudaStreamPerThread));
    bump<<<1, 32, 0, cudaStreamPerThread>>>(data);
    CUDA_CHECK(cudaMemcpyAsync(&found, data, sizeof found, cudaMemcpyDeviceToHost, cudaStreamPerThread));
    CUDA_CHECK(cudaFreeAsync(data, cudaStreamPerThread));
    CUDA_CHECK(cudaStreamSynchronize(cudaStreamPerThread));
    REQUIRE(found == 32, "a thread found %u", found);
}

void short_threads(int count) {
    for (int i = 0; i < count; i += 8) {
        std::vector<std::thread> threads;
        for (int j = 0; j < 8; j++) threads.emplace_back(work_briefly);
        for (std::thread &thread : threads) thread.join();
    }
}

void many_contexts(int count) {
    for (int i = 0; i < count; i++) {
        CUcontext context;
        CUdeviceptr data;
        CUstream stream;
        CU_CHECK(cuCtxCreate(&context, nullptr, 0, 0));
        CU_CHECK(cuMemAlloc(&data, 1 << 16));
        CU_CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
        CU_CHECK(cuMemsetD8Async(data, 1, 1 << 16, stream));
        if (i % 16 == 0) {
            bump<<<1, 32, 0, stream>>>((unsigned *)data);
            CUDA_CHECK(cudaGetLastError());
        }
        CU_CHECK(cuCtxDestroy(context));
    }
}

// All at the same time.
void contexts_together(int count) {
    std::vector<CUcontext> contexts(count);
    for (CUcontext &context : contexts) {
        CU_CHECK(cuCtxCreate(&context, nullptr, 0, 0));
        CU_CHECK(cuCtxPopCurrent(nullptr));
    }
    for (CUcontext context : contexts) CU_CHECK(cuCtxDestroy(context));
}

void streams_and_events(int count) {
    std::vector<cudaStream_t> streams(count);
    std::vector<cudaEvent_t> events(count);
    for (int i = 0; i < count; i++) {
        CUDA_CHECK(cudaStreamCreateWithFlags(&streams[i], i % 2));
        CUDA_CHECK(cudaEventCreate(&events[i]));
        CUDA_CHECK(cudaEventRecord(events[i], streams[i]));
        if (i) CUDA_CHECK(cudaStreamWaitEvent(streams[i], events[i - 1], 0));
    }
    CUDA_CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < count; i++) {
        CUDA_CHECK(cudaEventQuery(events[i]));
        CUDA_CHECK(cudaStreamDestroy(streams[i]));
        CUDA_CHECK(cudaEventDestroy(events[i]));
    }
}

// A handle that several threads use while one destroys it: each call works, or says that the object is gone.
void destroyed_in_use(int rounds) {
    for (int round = 0; round < rounds; round++) {
        CUcontext context;
        CUmodule module;
        CUfunction function;
        CUstream stream;
        CUevent event;
        CUdeviceptr data;
        CU_CHECK(cuCtxCreate(&context, nullptr, 0, 0));
        CU_CHECK(cuModuleLoadData(&module, R"(.version 7.0
            .target sm_80
            .address_size 64
            .visible .entry add(.param .u64 data) {
                .reg .b64 %rd<2>; .reg .b32 %r;
                ld.param.u64 %rd1, [data];
                atom.global.add.u32 %r, [%rd1], 1;
                ret;
            })"));
        CU_CHECK(cuModuleGetFunction(&function, module, "add"));
        CU_CHECK(cuStreamCreate(&stream, round % 2));
        CU_CHECK(cuEventCreate(&event, 0));
        CU_CHECK(cuMemAlloc(&data, 4096));
        std::atomic<int> calls{0};
        std::atomic<bool> stop{false};
        auto look = [&](CUresult code) {
            calls++;
            REQUIRE(code == CUDA_SUCCESS || code == CUDA_ERROR_INVALID_HANDLE || code == CUDA_ERROR_INVALID_VALUE ||
                        code == CUDA_ERROR_NOT_READY || code == CUDA_ERROR_CONTEXT_IS_DESTROYED ||
                        code == CUDA_ERROR_INVALID_CONTEXT || code == CUDA_ERROR_NOT_FOUND,
                    "round %d: code %d", round, code);
        };
        std::vector<std::thread> threads;
        for (int i = 0; i < 4; i++)
            threads.emplace_back([&, i] {
                cuCtxSetCurrent(context);
                void *arguments[] = {&data};
                while (!stop) {
                    look(cuLaunchKernel(function, 4, 1, 1, 32, 1, 1, 0, stream, arguments, nullptr));
                    look(cuEventRecord(event, stream));
                    look(cuStreamWaitEvent(i % 2 ? stream : nullptr, event, 0));
                    look(cuMemsetD8Async(data + 64, 1, 64, stream));
                    if (i == 0) look(cuStreamSynchronize(stream));
                    if (i == 1) look(cuEventSynchronize(event));
                    if (i == 2) look(cuCtxSynchronize());
                    if (i == 3) look(cuStreamQuery(stream));
                    CUfunction again;
                    look(cuModuleGetFunction(&again, module, "add"));
                }
                cuCtxSetCurrent(nullptr);
            });
        while (calls < 100) std::this_thread::yield();
        auto gone = [&](int which) {
            switch (which % 4) {
                case 0: return look(cuEventDestroy(event));
                case 1: return look(cuStreamDestroy(stream));
                case 2: return look(cuModuleUnload(module));  // kernels of it may be running
                case 3: return look(cuCtxDestroy(context));
            }
        };
        for (int i = 0; i < 4; i++) {
            gone(round + i);
            const int seen = calls;
            while (calls < seen + 50) std::this_thread::yield();
        }
        stop = true;
        for (std::thread &thread : threads) thread.join();
        cuCtxDestroy(context);
        while (cuCtxPopCurrent(nullptr) == CUDA_SUCCESS) {}
    }
}

int main() {
    setenv("ANYWARP_MEMORY", "64M", 0);
    struct {
        const char *name;
        void (*run)(int);
        int count, first;  // the first time, to make what is made once
    } const parts[] = {{"short threads", short_threads, 10000, 1000},
                       {"contexts one after another", many_contexts, 1000, 100},
                       {"contexts together", contexts_together, 1000, 1000},
                       {"streams and events", streams_and_events, 10000, 10000},
                       {"objects destroyed in use", destroyed_in_use, 24, 4}};
    for (const auto &part : parts) {
        CUDA_CHECK(cudaFree(nullptr));
        part.run(part.first);
        CUDA_CHECK(cudaFree(nullptr));
        const Holding before = Holding::now();
        part.run(part.count);
        CUDA_CHECK(cudaFree(nullptr));
        require_back_at(before, part.name);
    }
    succeed("10000 threads, 1000 contexts, 10000 streams and events, and objects destroyed in use");
}
