// A child of fork has none of the parent's threads, so both APIs answer code 3 to everything there but how many devices the
// runtime has found, whatever the parent was doing at that moment; nothing crashes or hangs. A program that the child starts
// works, and the parent goes on.

#include <sys/wait.h>

#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "example.h"

__global__ void bump(unsigned *data) { atomicAdd(data, 1u); }

std::atomic<bool> stop;

// Keeps every lock of the library busy.
void keep_busy(int number) {
    cudaStream_t stream;
    cudaEvent_t event;
    unsigned *data = nullptr;
    CUDA_CHECK(cudaMalloc(&data, 4096));
    while (!stop) {
        if (number == 1) {
            // What a thread's first call finds out.
            CU_CHECK(cuCtxSetCurrent(nullptr));
            CUDA_CHECK(cudaFree(nullptr));
        }
        CUDA_CHECK(cudaStreamCreate(&stream));
        CUDA_CHECK(cudaEventCreate(&event));
        void *scratch = nullptr;
        CUDA_CHECK(cudaMallocAsync(&scratch, 256 << number % 8, stream));
        bump<<<1, 32, 0, stream>>>(data);
        CUDA_CHECK(cudaMemcpyAsync(scratch, data, 256, cudaMemcpyDeviceToDevice, stream));
        CUDA_CHECK(cudaFreeAsync(scratch, stream));
        CUDA_CHECK(cudaEventRecord(event, stream));
        CUDA_CHECK(cudaEventSynchronize(event));
        CUcontext context = nullptr;
        if (number == 0) {
            CU_CHECK(cuCtxCreate(&context, nullptr, 0, 0));
            CU_CHECK(cuCtxDestroy(context));
        }
        CUDA_CHECK(cudaEventDestroy(event));
        CUDA_CHECK(cudaStreamDestroy(stream));
    }
    CUDA_CHECK(cudaFree(data));
}

// In the child: 0 if every call gives code 3, else the number of the line. (No printf: its lock may be held.)
#define WANT_3(call) \
    if (int(call) != 3) return __LINE__

int calls_of_the_child(cudaStream_t stream, cudaEvent_t event, CUcontext context, unsigned *data) {
    void *pointer = nullptr;
    int number = 0, value = 0;
    size_t size = 0, total = 0;
    cudaStream_t new_stream;
    cudaEvent_t new_event;
    CUdevice device;
    CUcontext other;
    CUdeviceptr address;
    CUmodule module;
    WANT_3(cudaMalloc(&pointer, 16));
    WANT_3(cudaFree(data));
    WANT_3(cudaFree(nullptr));
    WANT_3(cudaMemcpy(&value, data, sizeof value, cudaMemcpyDeviceToHost));
    WANT_3(cudaMemset(data, 0, 4));
    WANT_3(cudaDeviceSynchronize());
    WANT_3(cudaStreamCreate(&new_stream));
    WANT_3(cudaStreamSynchronize(stream));
    WANT_3(cudaStreamDestroy(stream));
    WANT_3(cudaEventCreate(&new_event));
    WANT_3(cudaEventQuery(event));
    // The one thing that the runtime remembers.
    if (cudaGetDeviceCount(&number) != cudaSuccess || number == 0) return __LINE__;
    WANT_3(cudaSetDevice(0));
    WANT_3(cudaGetDevice(&number));
    WANT_3(cudaMemGetInfo(&size, &total));
    WANT_3(cudaDeviceReset());
    cudaFuncAttributes attributes;
    WANT_3(cudaFuncGetAttributes(&attributes, bump));
    bump<<<1, 1>>>(data);
    WANT_3(cudaGetLastError());
    WANT_3(cuInit(0));
    WANT_3(cuDeviceGet(&device, 0));
    WANT_3(cuDeviceGetCount(&number));
    WANT_3(cuCtxCreate(&other, nullptr, 0, 0));
    WANT_3(cuCtxGetCurrent(&other));
    WANT_3(cuCtxSetCurrent(context));
    WANT_3(cuCtxSynchronize());
    WANT_3(cuCtxDestroy(context));
    WANT_3(cuMemAlloc(&address, 16));
    WANT_3(cuMemFree(CUdeviceptr(data)));
    WANT_3(cuModuleLoadData(&module, ".version 7.0\n.target sm_80\n.address_size 64\n"));
    WANT_3(cuDevicePrimaryCtxRetain(&other, 0));
    WANT_3(cuDevicePrimaryCtxReset(0));
    return 0;
}

int status_of(pid_t child, const char *what) {
    int status = 0;
    for (int tries = 0; tries < 6000; tries++) {
        if (waitpid(child, &status, WNOHANG) == child) return status;
        usleep(10 * 1000);
    }
    kill(child, SIGKILL);
    fail("%s does not end", what);
}

int main(int count, char **arguments) {
    unsigned *data = nullptr, found = 0;
    CUDA_CHECK(cudaMalloc(&data, 4096));
    CUDA_CHECK(cudaMemset(data, 0, 4096));
    bump<<<2, 32>>>(data);
    CUDA_CHECK(cudaMemcpy(&found, data, sizeof found, cudaMemcpyDeviceToHost));
    REQUIRE(found == 64, "%u instead of 64", found);
    if (count > 1) succeed("the program that a child started");

    cudaStream_t stream;
    cudaEvent_t event;
    CUcontext context;
    CUDA_CHECK(cudaStreamCreate(&stream));
    CUDA_CHECK(cudaEventCreate(&event));
    CU_CHECK(cuCtxGetCurrent(&context));
    int devices = 0;
    CUDA_CHECK(cudaGetDeviceCount(&devices));
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; i++) threads.emplace_back(keep_busy, i);
    const int children = 60;
    for (int i = 0; i < children; i++) {
        const pid_t child = fork();
        REQUIRE(child >= 0, "no child");
        if (child == 0) {
            const int line = calls_of_the_child(stream, event, context, data);
            // The exit handlers of a child may not hang either.
            if (line == 0 && i % 3 == 0) exit(0);
            if (line == 0 && i % 3 == 1) quick_exit(0);
            _exit(line == 0 ? 0 : 1 + line % 250);
        }
        const int status = status_of(child, "a child");
        REQUIRE(WIFEXITED(status), "child %d ended by signal %s", i, strsignal(WTERMSIG(status)));
        REQUIRE(WEXITSTATUS(status) == 0, "child %d: a call in line %d (modulo 250) did not give 3", i, WEXITSTATUS(status) - 1);
        usleep(i % 7 * 500);
    }

    // A child's children are no better off, and its exit handlers and destructors run.
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        const pid_t grandchild = fork();
        if (grandchild == 0) exit(calls_of_the_child(stream, event, context, data) == 0 ? 0 : 1);
        int status = 0;
        waitpid(grandchild, &status, 0);
        exit(status == 0 ? 0 : 1);
    }
    REQUIRE(status_of(child, "a child with a child") == 0, "a child of a child, or its end");

    child = fork();
    if (child == 0) {
        execl("/proc/self/exe", "forked", "again", nullptr);
        _exit(127);
    }
    REQUIRE(status_of(child, "a program that a child started") == 0, "a program that a child started");
    stop = true;
    for (std::thread &thread : threads) thread.join();
    bump<<<2, 32>>>(data);
    CUDA_CHECK(cudaMemcpy(&found, data, sizeof found, cudaMemcpyDeviceToHost));
    REQUIRE(found == 128, "the parent finds %u instead of 128", found);
    succeed("%d children were told that they are", children + 2);
}
