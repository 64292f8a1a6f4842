// Runtime and driver API in one program, in both directions: they share contexts, memory, streams and events.

#include "example.h"

__global__ void increment(float *values, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) values[i] += 1.0f;
}

constexpr unsigned count = 1000, threads = 128, blocks = (count + threads - 1) / threads;

float values[count];

// The driver API launches a kernel of its own module on memory and a stream of the runtime.
void driver_on_runtime(CUfunction square) {
    float *memory;
    CUDA_CHECK(cudaMalloc(&memory, sizeof values));
    cudaStream_t stream;
    CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CUDA_CHECK(cudaMemcpyAsync(memory, values, sizeof values, cudaMemcpyHostToDevice, stream));
    increment<<<blocks, threads, 0, stream>>>(memory, count);
    CUDA_CHECK(cudaGetLastError());

    unsigned n = count;
    void *arguments[] = {&memory, &n};  // a device pointer is the same number in both APIs
    CU_CHECK(cuLaunchKernel(square, blocks, 1, 1, threads, 1, 1, 0, stream, arguments, nullptr));

    float result[count];
    CUDA_CHECK(cudaMemcpyAsync(result, memory, sizeof result, cudaMemcpyDeviceToHost, stream));
    CUDA_CHECK(cudaStreamSynchronize(stream));
    for (unsigned i = 0; i < count; i++)
        REQUIRE(result[i] == (values[i] + 1) * (values[i] + 1), "driver on runtime, %u: %g", i, result[i]);
    CU_CHECK(cuStreamDestroy(stream));
    CU_CHECK(cuMemFree(CUdeviceptr(memory)));
}

// The runtime launches on memory and a stream of the driver API, ordered by an event of each.
void runtime_on_driver(CUfunction square) {
    CUdeviceptr memory;
    CU_CHECK(cuMemAlloc(&memory, sizeof values));
    CU_CHECK(cuMemcpyHtoD(memory, values, sizeof values));
    CUstream first, second;
    CU_CHECK(cuStreamCreate(&first, CU_STREAM_NON_BLOCKING));
    CU_CHECK(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
    CUevent squared;
    CU_CHECK(cuEventCreate(&squared, CU_EVENT_DISABLE_TIMING));
    cudaEvent_t incremented;
    CUDA_CHECK(cudaEventCreateWithFlags(&incremented, cudaEventDisableTiming));

    unsigned n = count;
    void *arguments[] = {&memory, &n};
    CU_CHECK(cuLaunchKernel(square, blocks, 1, 1, threads, 1, 1, 0, first, arguments, nullptr));
    CU_CHECK(cuEventRecord(squared, first));
    CUDA_CHECK(cudaStreamWaitEvent(second, squared, 0));
    increment<<<blocks, threads, 0, second>>>((float *)memory, count);
    CUDA_CHECK(cudaEventRecord(incremented, second));
    CU_CHECK(cuEventSynchronize(incremented));

    float result[count];
    CUDA_CHECK(cudaMemcpy(result, (void *)memory, sizeof result, cudaMemcpyDeviceToHost));
    for (unsigned i = 0; i < count; i++)
        REQUIRE(result[i] == values[i] * values[i] + 1, "runtime on driver, %u: %g", i, result[i]);
    CUDA_CHECK(cudaEventDestroy(squared));
    CU_CHECK(cuEventDestroy(incremented));
    CUDA_CHECK(cudaStreamDestroy(first));
    CUDA_CHECK(cudaStreamDestroy(second));
    CUDA_CHECK(cudaFree((void *)memory));
}

int main() {
    for (unsigned i = 0; i < count; i++) values[i] = float(i % 50);  // small whole numbers: every result is exact

    // In the primary context, which the runtime's first call makes current.
    CUDA_CHECK(cudaSetDevice(0));
    CUmodule module;
    CUfunction square;
    CU_CHECK(cuModuleLoad(&module, beside_executable("kernel.ptx").c_str()));
    CU_CHECK(cuModuleGetFunction(&square, module, "square"));
    driver_on_runtime(square);
    runtime_on_driver(square);
    CU_CHECK(cuModuleUnload(module));

    // In a context of the driver API: the runtime uses the one that is current.
    CUcontext own, current;
    CU_CHECK(cuCtxCreate(&own, nullptr, 0, 0));
    CU_CHECK(cuModuleLoad(&module, beside_executable("kernel.ptx").c_str()));
    CU_CHECK(cuModuleGetFunction(&square, module, "square"));
    driver_on_runtime(square);
    runtime_on_driver(square);
    CU_CHECK(cuCtxGetCurrent(&current));
    REQUIRE(current == own, "the runtime changed the current context");
    CU_CHECK(cuCtxDestroy(own));
    succeed("%u values both ways, in the primary context and in our own", count);
}
