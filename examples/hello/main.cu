// Which context is current before and after the first runtime calls.
//
// The runtime API never mentions contexts, yet every call works in one: the device's primary context, which the first
// call that needs it creates and makes current. The driver API, used beside it, shows when that happens.

#include "example.h"

__global__ void hello(int *squares) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    squares[i] = i * i;
    if (threadIdx.x == 0) printf("  hello from thread %d of block %d\n", threadIdx.x, blockIdx.x);
}

const char *describe(CUcontext context) { return context ? "a context is current" : "no context is current"; }

int main() {
    // Before any call the driver is not even initialised.
    CUcontext context = nullptr;
    CUresult before = cuCtxGetCurrent(&context);
    REQUIRE(before == CUDA_ERROR_NOT_INITIALIZED || !context, "a context is current before the first call");
    printf("before the first call: %s\n", before == CUDA_SUCCESS ? describe(context) : "the driver is not initialised");

    // Asking how many devices there are needs no context, so none comes into being.
    int devices = 0;
    CUDA_CHECK(cudaGetDeviceCount(&devices));
    REQUIRE(devices > 0, "there is no device");
    CU_CHECK(cuCtxGetCurrent(&context));
    printf("after cudaGetDeviceCount: %s\n", describe(context));
    REQUIRE(!context, "counting devices made a context");

    // Choosing a device does need one (since CUDA 12): its primary context.
    CUDA_CHECK(cudaSetDevice(0));
    CU_CHECK(cuCtxGetCurrent(&context));
    printf("after cudaSetDevice: %s\n", describe(context));
    CUcontext primary;
    CU_CHECK(cuDevicePrimaryCtxRetain(&primary, 0));
    REQUIRE(context == primary, "the current context is not the primary one");
    CU_CHECK(cuDevicePrimaryCtxRelease(0));

    cudaDeviceProp properties;
    CUDA_CHECK(cudaGetDeviceProperties(&properties, 0));
    int driver, runtime;
    CUDA_CHECK(cudaDriverGetVersion(&driver));
    CUDA_CHECK(cudaRuntimeGetVersion(&runtime));
    printf("device 0: %s, compute capability %d.%d, %d multiprocessors, %zu MiB\n", properties.name, properties.major,
           properties.minor, properties.multiProcessorCount, properties.totalGlobalMem >> 20);
    printf("driver %d, runtime %d\n", driver, runtime);

    const int blocks = 3, threads = 32;
    int *squares, result[blocks * threads];
    CUDA_CHECK(cudaMalloc(&squares, sizeof result));
    hello<<<blocks, threads>>>(squares);
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cudaMemcpy(result, squares, sizeof result, cudaMemcpyDeviceToHost));
    for (int i = 0; i < blocks * threads; i++) REQUIRE(result[i] == i * i, "square of %d: %d", i, result[i]);
    CUDA_CHECK(cudaFree(squares));
    succeed("%d threads answered on %s", blocks * threads, properties.name);
}
