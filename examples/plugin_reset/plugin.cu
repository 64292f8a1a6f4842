// The plug-in: it uses the runtime API and, like many, resets the device when it is done.

#include <cuda_runtime.h>

namespace {

__device__ int calls = 0;

__global__ void count(int *out) { *out = ++calls; }

}  // namespace

// Answers how often this was called since the device was last reset, or -1 with a failed call.
extern "C" int plugin_run() {
    int *device_calls, result = -1;
    if (cudaMalloc(&device_calls, sizeof *device_calls) != cudaSuccess) return -1;
    count<<<1, 1>>>(device_calls);
    if (cudaMemcpy(&result, device_calls, sizeof result, cudaMemcpyDeviceToHost) != cudaSuccess) return -1;
    // The memory is not freed: the reset destroys the primary context and all that is in it.
    return cudaDeviceReset() == cudaSuccess ? result : -1;
}
