// A library that is opened at run time and has a runtime of its own.

#include "plugin.h"

#include <cuda_runtime.h>

__device__ int factor = 1;

__global__ void multiply(int *values) { values[threadIdx.x] *= factor; }

__global__ void make(int *values) { values[threadIdx.x] = 7; }

#define TRY(call) \
    if (cudaError_t code_ = (call)) return cudaGetErrorName(code_)

extern "C" __attribute__((visibility("default"))) const char *plugin_work(int *values, PluginAnswer *answer) {
    TRY(cudaRuntimeGetVersion(&answer->version));
    answer->runtime = reinterpret_cast<const void *>(&cudaRuntimeGetVersion);
    // Memory of the program is known here.
    cudaPointerAttributes attributes = {};
    TRY(cudaPointerGetAttributes(&attributes, values));
    if (attributes.type != cudaMemoryTypeDevice || attributes.devicePointer != values) return "the memory is unknown";
    const int two = 2;
    TRY(cudaMemcpyToSymbol(factor, &two, sizeof two));
    multiply<<<1, COUNT>>>(values);
    TRY(cudaMalloc(&answer->made, COUNT * sizeof(int)));
    make<<<1, COUNT>>>(answer->made);
    return cudaGetLastError() ? "the launch failed" : nullptr;
}
