// A program compiled with CUDA 12's headers: structures and functions are where and what these headers say.

#include <dlfcn.h>
#include <stddef.h>

#include <vector>

#include "example.h"

#if CUDART_VERSION / 1000 != 12
#error "these are not CUDA 12's headers"
#endif

__managed__ int total;

__global__ void add(const int *values) { atomicAdd(&total, values[threadIdx.x]); }

// A structure with something behind it that the library must leave alone.
template <class T>
struct Followed {
    T value;
    unsigned char behind[128];
    Followed() { memset(this, 0xA5, sizeof *this); }
    void check(const char *what) {
        for (unsigned char byte : behind) REQUIRE(byte == 0xA5, "%s is written behind its end", what);
    }
};

static int attribute(cudaDeviceAttr attribute) {
    int value = -1;
    CUDA_CHECK(cudaDeviceGetAttribute(&value, attribute, 0));
    return value;
}

static void properties() {
    Followed<cudaDeviceProp> found;
    CUDA_CHECK(cudaGetDeviceProperties(&found.value, 0));
    found.check("cudaDeviceProp");
    const cudaDeviceProp &p = found.value;
    size_t free = 0, all = 0;
    CUDA_CHECK(cudaMemGetInfo(&free, &all));
    REQUIRE(p.totalGlobalMem == all, "totalGlobalMem is %zu, not %zu", p.totalGlobalMem, all);
    char name[256];
    CU_CHECK(cuDeviceGetName(name, sizeof name, 0));
    REQUIRE(!strcmp(p.name, name), "name is %s, not %s", p.name, name);
#define SAME(field, number) \
    REQUIRE(long(p.field) == attribute(number), #field " is %ld, not %d", long(p.field), attribute(number))
    SAME(major, cudaDevAttrComputeCapabilityMajor);
    SAME(minor, cudaDevAttrComputeCapabilityMinor);
    SAME(clockRate, cudaDevAttrClockRate);
    SAME(memoryClockRate, cudaDevAttrMemoryClockRate);
    SAME(multiProcessorCount, cudaDevAttrMultiProcessorCount);
    SAME(deviceOverlap, cudaDevAttrGpuOverlap);
    SAME(kernelExecTimeoutEnabled, cudaDevAttrKernelExecTimeout);
    SAME(computeMode, cudaDevAttrComputeMode);
    SAME(maxThreadsPerBlock, cudaDevAttrMaxThreadsPerBlock);
    SAME(maxGridSize[0], cudaDevAttrMaxGridDimX);
    SAME(maxTexture1DLinear, cudaDevAttrMaxTexture1DLinearWidth);
    SAME(maxTexture3D[2], cudaDevAttrMaxTexture3DDepth);
    SAME(surfaceAlignment, cudaDevAttrSurfaceAlignment);
    SAME(l2CacheSize, cudaDevAttrL2CacheSize);
    SAME(sharedMemPerMultiprocessor, cudaDevAttrMaxSharedMemoryPerMultiprocessor);
    SAME(singleToDoublePrecisionPerfRatio, cudaDevAttrSingleToDoublePrecisionPerfRatio);
    SAME(cooperativeMultiDeviceLaunch, cudaDevAttrCooperativeMultiDeviceLaunch);
    SAME(sharedMemPerBlockOptin, cudaDevAttrMaxSharedMemoryPerBlockOptin);
    SAME(reservedSharedMemPerBlock, cudaDevAttrReservedSharedMemoryPerBlock);
    SAME(memoryPoolsSupported, cudaDevAttrMemoryPoolsSupported);
    SAME(ipcEventSupported, cudaDevAttrIpcEventSupport);
    int device = -1;
    CUDA_CHECK(cudaChooseDevice(&device, &p));
    REQUIRE(device == 0, "device %d is chosen", device);
}

static void pointers(int *values) {
    Followed<cudaPointerAttributes> found;
    CUDA_CHECK(cudaPointerGetAttributes(&found.value, values));
    found.check("cudaPointerAttributes");
    REQUIRE(found.value.type == cudaMemoryTypeDevice && found.value.devicePointer == values, "not device memory");
    void *managed = nullptr;
    CUDA_CHECK(cudaMallocManaged(&managed, 4096));
    CUDA_CHECK(cudaMemAdvise(managed, 4096, cudaMemAdviseSetReadMostly, cudaCpuDeviceId));
    CUDA_CHECK(cudaMemPrefetchAsync(managed, 4096, 0, nullptr));
    REQUIRE(cudaMemPrefetchAsync(managed, 4096, 1000, nullptr) == cudaErrorInvalidDevice, "there is no device 1000");
    REQUIRE(cudaGetLastError() == cudaErrorInvalidDevice, "the last error is another");
    cudaMemLocation place = {cudaMemLocationTypeDevice, 0};
    CUDA_CHECK(cudaMemAdvise_v2(managed, 4096, cudaMemAdviseSetReadMostly, place));
    CUDA_CHECK(cudaMemPrefetchAsync_v2(managed, 4096, place, 0, nullptr));
    CUDA_CHECK(cudaFree(managed));
}

static void graphs(int *values) {
    cudaStream_t stream;
    cudaGraph_t graph, same;
    cudaStreamCaptureStatus status;
    unsigned long long id;
    const cudaGraphNode_t *waited;
    size_t count = 0;
    CUDA_CHECK(cudaStreamCreate(&stream));
    CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    add<<<1, 32, 0, stream>>>(values);
    CUDA_CHECK(cudaStreamGetCaptureInfo(stream, &status, &id, &same, &waited, &count));
    REQUIRE(status == cudaStreamCaptureStatusActive && count == 1, "%zu nodes are waited for", count);
    add<<<1, 32, 0, stream>>>(values);
    CUDA_CHECK(cudaStreamEndCapture(stream, &graph));
    REQUIRE(graph == same, "the capture's graph is another");

    std::vector<cudaGraphNode_t> nodes(2), from(1), to(1);
    // The count says how much room there is, then how much is used.
    count = nodes.size();
    CUDA_CHECK(cudaGraphGetNodes(graph, nodes.data(), &count));
    REQUIRE(count == 2, "%zu nodes", count);
    count = 1;
    CUDA_CHECK(cudaGraphGetEdges(graph, from.data(), to.data(), &count));
    REQUIRE(count == 1 && from[0] != to[0], "%zu edges", count);
    CUDA_CHECK(cudaGraphRemoveDependencies(graph, from.data(), to.data(), 1));
    CUDA_CHECK(cudaGraphAddDependencies(graph, from.data(), to.data(), 1));
    CUDA_CHECK(cudaGraphNodeGetDependencies(to[0], nodes.data(), &count));
    REQUIRE(count == 1 && nodes[0] == from[0], "%zu dependencies", count);
    cudaGraphEdgeData data;
    CUDA_CHECK(cudaGraphGetEdges_v2(graph, from.data(), to.data(), &data, &count));
    REQUIRE(count == 1 && data.type == 0, "the edge has type %d", data.type);

    cudaGraphExec_t executable;
    CUDA_CHECK(cudaGraphInstantiate(&executable, graph, 0));
    total = 0;
    CUDA_CHECK(cudaGraphLaunch(executable, stream));
    CUDA_CHECK(cudaStreamSynchronize(stream));
    REQUIRE(total == 2 * 31 * 32 / 2, "the graph's kernels added up to %d", total);
    CUDA_CHECK(cudaGraphExecDestroy(executable));
    CUDA_CHECK(cudaGraphDestroy(graph));
    CUDA_CHECK(cudaStreamDestroy(stream));
}

int main() {
    int version = 0;
    CUDA_CHECK(cudaRuntimeGetVersion(&version));
    REQUIRE(version == CUDART_VERSION, "the runtime says that it is %d", version);

    int numbers[32], *values = nullptr;
    for (int i = 0; i < 32; i++) numbers[i] = i;
    CUDA_CHECK(cudaMalloc(&values, sizeof numbers));
    CUDA_CHECK(cudaMemcpy(values, numbers, sizeof numbers, cudaMemcpyHostToDevice));
    add<<<1, 32>>>(values);
    CUDA_CHECK(cudaDeviceSynchronize());
    REQUIRE(total == 31 * 32 / 2, "the kernel added up to %d", total);

    properties();
    pointers(values);
    graphs(values);

    // The driver's functions are those that CUDA 12.8 knew: this one has another meaning since CUDA 13.
    void *found = nullptr, *expected = dlsym(RTLD_DEFAULT, "cuCtxGetDevice");
    CUDA_CHECK(cudaGetDriverEntryPoint("cuCtxGetDevice", &found, cudaEnableDefault));
    REQUIRE(found && found == expected, "cuCtxGetDevice is that of another version");

    CUDA_CHECK(cudaThreadSynchronize());
    CUDA_CHECK(cudaThreadExit());
    REQUIRE(cudaFree(values) == cudaErrorInvalidValue, "the memory has outlived cudaThreadExit");
    succeed("a program of CUDA %d.%d", version / 1000, version % 1000 / 10);
}
