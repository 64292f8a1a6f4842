// Launches beyond every limit, and null where the API wants something: the code for it, and nothing sticks.

#include "example.h"

__global__ void store(int *out, int value) { out[threadIdx.x] = value; }

#define EXPECT(wanted, call)                                                              \
    do {                                                                                  \
        const int code_ = int(call);                                                      \
        if (code_ != int(wanted)) fail("line %d: %s: code %d, not %d", __LINE__, #call, code_, int(wanted)); \
    } while (0)

int *memory;

// A launch that must be refused, at once and without a trace.
void refuse(dim3 grid, dim3 block, size_t shared, int line) {
    store<<<grid, block, shared>>>(memory, 1);
    const cudaError_t code = cudaGetLastError();
    if (code != cudaErrorInvalidValue && code != cudaErrorInvalidConfiguration)
        fail("line %d: the launch gave code %d", line, code);
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cudaDeviceSynchronize());
}

int main() {
    CUDA_CHECK(cudaMalloc(&memory, 4096));
    CUDA_CHECK(cudaMemset(memory, 0, 4096));

    const dim3 one(1);
    refuse(one, dim3(1025), 0, __LINE__);
    refuse(one, dim3(1, 1025), 0, __LINE__);
    refuse(one, dim3(1, 1, 65), 0, __LINE__);
    refuse(one, dim3(32, 32, 2), 0, __LINE__);
    refuse(one, dim3(0), 0, __LINE__);
    refuse(dim3(0), one, 0, __LINE__);
    refuse(dim3(1, 0, 1), one, 0, __LINE__);
    refuse(dim3(1, 65536), one, 0, __LINE__);
    refuse(dim3(1, 1, 65536), one, 0, __LINE__);
    refuse(dim3(0x80000000u), one, 0, __LINE__);
    refuse(dim3(0xffffffffu), one, 0, __LINE__);
    refuse(one, one, 49 << 10, __LINE__);  // more than a kernel may have without asking for it
    refuse(one, one, 0xfffffff0u, __LINE__);

    // The runtime API.
    EXPECT(cudaErrorInvalidValue, cudaMalloc((void **)nullptr, 16));
    EXPECT(cudaErrorMemoryAllocation, cudaMalloc(&memory, size_t(1) << 60));
    EXPECT(cudaErrorInvalidMemcpyDirection, cudaMemcpy(memory, memory, 16, cudaMemcpyKind(77)));
    EXPECT(cudaErrorInvalidValue, cudaMemset(nullptr, 0, 16));
    EXPECT(cudaErrorInvalidDevice, cudaSetDevice(-1));
    EXPECT(cudaErrorInvalidDevice, cudaSetDevice(1 << 20));
    EXPECT(cudaErrorInvalidValue, cudaGetDeviceCount(nullptr));
    EXPECT(cudaErrorInvalidValue, cudaStreamCreate(nullptr));
    EXPECT(cudaErrorInvalidResourceHandle, cudaStreamDestroy(nullptr));
    EXPECT(cudaErrorInvalidValue, cudaEventCreate(nullptr));
    EXPECT(cudaErrorInvalidResourceHandle, cudaEventRecord(nullptr, nullptr));
    EXPECT(cudaErrorInvalidResourceHandle, cudaStreamWaitEvent(nullptr, nullptr, 0));
    EXPECT(cudaSuccess, cudaFree(nullptr));
    EXPECT(cudaErrorInvalidValue, cudaFree((char *)memory + 4));
    EXPECT(cudaErrorInvalidValue, cudaFree((void *)0x1234560));

    // The driver API.
    CUfunction function;
    CUmodule module;
    CUdeviceptr pointer;
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemAlloc(&pointer, 0));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemAlloc(nullptr, 16));
    EXPECT(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc(&pointer, ~size_t(0) >> 2));
    EXPECT(CUDA_SUCCESS, cuMemFree(0));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemFree(12345));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuModuleLoadData(&module, nullptr));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuModuleLoad(&module, nullptr));
    EXPECT(CUDA_ERROR_INVALID_HANDLE, cuModuleUnload(nullptr));
    EXPECT(CUDA_ERROR_INVALID_HANDLE, cuModuleGetFunction(&function, nullptr, "store"));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuDeviceGet(nullptr, 0));
    CUdevice device;
    EXPECT(CUDA_ERROR_INVALID_DEVICE, cuDeviceGet(&device, -1));
    EXPECT(CUDA_ERROR_INVALID_DEVICE, cuDeviceGet(&device, 1 << 20));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuInit(1));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuCtxPushCurrent(nullptr));
    CUcontext context;
    EXPECT(CUDA_ERROR_INVALID_DEVICE, cuCtxCreate(&context, nullptr, 0, 99));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuCtxCreate(&context, nullptr, 0xffff0000u, 0));

    // A function that has parameters, launched without them, and with them given twice.
    CUDA_CHECK(cudaMalloc(&memory, 4096));
    EXPECT(cudaSuccess, cudaGetFuncBySymbol(&function, (const void *)store));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
    int value = 5;
    char packed[16] = {};
    size_t packed_size = sizeof packed;
    void *arguments[] = {&memory, &value};
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &packed_size,
                     CU_LAUNCH_PARAM_END};
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, extra));
    EXPECT(CUDA_SUCCESS, cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr));

    // Copies past the end, and null where memory should be.
    char host[64] = {};
    EXPECT(cudaErrorInvalidValue, cudaMemcpy(memory, nullptr, 16, cudaMemcpyHostToDevice));
    EXPECT(cudaErrorInvalidValue, cudaMemcpy((char *)memory + 4090, host, 64, cudaMemcpyHostToDevice));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH(host, 0, 16));
    EXPECT(cudaErrorInvalidValue, cudaMemset((char *)memory + 4000, 0, 200));

    cudaGetLastError();
    int found;
    CUDA_CHECK(cudaMemcpy(&found, memory, sizeof found, cudaMemcpyDeviceToHost));
    REQUIRE(found == 5, "the good launch stored %d", found);
    succeed("each was refused, and the context works");
}
