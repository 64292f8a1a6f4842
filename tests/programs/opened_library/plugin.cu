// A library that is opened at run time. Linked with NVIDIA's runtime inside, it is what extension modules often are.

#include <cuda_runtime.h>

#include <vector>

namespace {

__device__ int offset;
__constant__ int factor;

__global__ void transform(int *values, int count) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) values[i] = values[i] * factor + offset;
}

}  // namespace

// Replaces device memory by values · new_factor + new_offset. Answers the code.
extern "C" int library_transform(int *device_values, int count, int new_factor, int new_offset) {
    cudaError_t code = cudaMemcpyToSymbol(factor, &new_factor, sizeof new_factor);
    if (code == cudaSuccess) code = cudaMemcpyToSymbol(offset, &new_offset, sizeof new_offset);
    if (code != cudaSuccess) return code;
    transform<<<(count + 127) / 128, 128>>>(device_values, count);
    return cudaDeviceSynchronize();
}

// The same for memory of the host.
extern "C" int library_transform_host(int *values, int count, int new_factor, int new_offset) {
    int *device_values;
    cudaError_t code = cudaMalloc(&device_values, count * sizeof *values);
    if (code != cudaSuccess) return code;
    code = cudaMemcpy(device_values, values, count * sizeof *values, cudaMemcpyHostToDevice);
    if (code == cudaSuccess) code = cudaError_t(library_transform(device_values, count, new_factor, new_offset));
    if (code == cudaSuccess) code = cudaMemcpy(values, device_values, count * sizeof *values, cudaMemcpyDeviceToHost);
    const cudaError_t freed = cudaFree(device_values);
    return code == cudaSuccess ? freed : code;
}
