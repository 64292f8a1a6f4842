// What the Runtime API answers to arguments good and bad: an H200 with its vendor's libraries gave every code in here.

#include "example.h"

#include <string.h>
#include <sys/wait.h>

#include <thread>

namespace {

int wrong = 0;

// The call answers the code, and a failure is the thread's last error until it is taken.
void expect(int line, const char *call, cudaError_t wanted, cudaError_t is) {
    const cudaError_t last = cudaGetLastError();
    const cudaError_t wanted_last = is == cudaErrorNotReady ? cudaSuccess : is;
    if (is == wanted && last == wanted_last) return;
    printf("line %d: %s: code %d (last error %d), not %d\n", line, call, is, last, wanted);
    wrong++;
}

void expect_value(int line, const char *name, long long wanted, long long is) {
    if (is == wanted) return;
    printf("line %d: %s is %lld, not %lld\n", line, name, is, wanted);
    wrong++;
}

#define ANSWERS(code, ...) expect(__LINE__, #__VA_ARGS__, code, (__VA_ARGS__))
#define IS(value, ...) expect_value(__LINE__, #__VA_ARGS__, value, (long long)(__VA_ARGS__))
// A launch's code is the last error.
#define LAUNCH_ANSWERS(code) IS(code, cudaGetLastError())

const cudaError_t ok = cudaSuccess;
const cudaError_t bad_value = cudaErrorInvalidValue;
const cudaError_t bad_handle = cudaErrorInvalidResourceHandle;
const cudaError_t bad_direction = cudaErrorInvalidMemcpyDirection;
const cudaError_t bad_function = cudaErrorInvalidDeviceFunction;
const cudaError_t bad_device = cudaErrorInvalidDevice;
const cudaError_t bad_symbol = cudaErrorInvalidSymbol;
const cudaError_t bad_pitch = cudaErrorInvalidPitchValue;
const cudaError_t no_memory = cudaErrorMemoryAllocation;

const cudaMemcpyKind to_device = cudaMemcpyHostToDevice, to_host = cudaMemcpyDeviceToHost;
const cudaMemcpyKind on_device = cudaMemcpyDeviceToDevice, on_host = cudaMemcpyHostToHost;
const cudaMemcpyKind any = cudaMemcpyDefault, nonsense = cudaMemcpyKind(9);

__device__ int table[16] = {1, 2, 3};
__constant__ float constants[4];
__managed__ int managed = 42;

__global__ void add(int *out, int n) {
    if (threadIdx.x < n) out[threadIdx.x] = table[0] + managed;
}
__global__ void __launch_bounds__(128) reverse(float *data) {
    __shared__ float copy[256];
    copy[threadIdx.x] = data[threadIdx.x];
    __syncthreads();
    data[threadIdx.x] = copy[127 - threadIdx.x];
}
extern __shared__ char dynamic[];
__global__ void use_dynamic(char *out) {
    dynamic[threadIdx.x] = 1;
    out[threadIdx.x] = dynamic[threadIdx.x];
}
void host_function() {}

void launches() {
    const void *kernel = (const void *)add, *none = nullptr, *stranger = (const void *)host_function;
    int *p, four = 4;
    ANSWERS(ok, cudaMalloc(&p, 1024));
    void *arguments[] = {&p, &four};

    add<<<1, 32>>>(p, 8), LAUNCH_ANSWERS(ok);
    add<<<0, 32>>>(p, 8), LAUNCH_ANSWERS(bad_value);
    add<<<1, 0>>>(p, 8), LAUNCH_ANSWERS(bad_value);
    add<<<1, 1025>>>(p, 8), LAUNCH_ANSWERS(bad_value);
    add<<<dim3(1, 65536), 1>>>(p, 8), LAUNCH_ANSWERS(bad_value);
    add<<<1, 1, 49153>>>(p, 8), LAUNCH_ANSWERS(bad_value);
    reverse<<<1, 129>>>((float *)p), LAUNCH_ANSWERS(bad_value);
    ANSWERS(ok, cudaDeviceSynchronize());

    const cudaFuncAttribute dynamic_size = cudaFuncAttributeMaxDynamicSharedMemorySize;
    const cudaFuncAttribute carveout = cudaFuncAttributePreferredSharedMemoryCarveout;
    use_dynamic<<<1, 32, 100000>>>((char *)p), LAUNCH_ANSWERS(bad_value);
    ANSWERS(ok, cudaFuncSetAttribute(use_dynamic, dynamic_size, 100000));
    use_dynamic<<<1, 32, 100000>>>((char *)p), LAUNCH_ANSWERS(ok);
    ANSWERS(bad_value, cudaFuncSetAttribute(use_dynamic, dynamic_size, -1));
    ANSWERS(bad_value, cudaFuncSetAttribute(use_dynamic, dynamic_size, 300000));
    ANSWERS(ok, cudaFuncSetAttribute(use_dynamic, carveout, 50));
    ANSWERS(bad_value, cudaFuncSetAttribute(use_dynamic, carveout, 500));
    for (int other : {0, 7, 16, 99}) ANSWERS(bad_value, cudaFuncSetAttribute(use_dynamic, cudaFuncAttribute(other), 1));
    ANSWERS(bad_function, cudaFuncSetAttribute(none, dynamic_size, 1));
    ANSWERS(bad_handle, cudaFuncSetAttribute(stranger, dynamic_size, 1));
    ANSWERS(ok, cudaFuncSetCacheConfig(kernel, cudaFuncCachePreferL1));
    ANSWERS(bad_value, cudaFuncSetCacheConfig(kernel, cudaFuncCache(9)));
    ANSWERS(bad_function, cudaFuncSetCacheConfig(none, cudaFuncCachePreferL1));
    ANSWERS(bad_handle, cudaFuncSetCacheConfig(stranger, cudaFuncCachePreferL1));

    ANSWERS(ok, cudaLaunchKernel(kernel, 1, 32, arguments, 0, 0));
    ANSWERS(bad_value, cudaLaunchKernel(kernel, 1, 32, nullptr, 0, 0));
    ANSWERS(bad_function, cudaLaunchKernel(none, 1, 32, arguments, 0, 0));
    ANSWERS(bad_handle, cudaLaunchKernel(stranger, 1, 32, arguments, 0, 0));
    ANSWERS(bad_function, cudaLaunchCooperativeKernel(none, 1, 32, arguments, 0, 0));
    cudaLaunchConfig_t config = {};
    config.gridDim = 1;
    config.blockDim = 32;
    ANSWERS(ok, cudaLaunchKernelExC(&config, kernel, arguments));
    ANSWERS(bad_function, cudaLaunchKernelExC(&config, none, arguments));

    cudaKernel_t handle;
    cudaFunction_t function;
    ANSWERS(ok, cudaGetKernel(&handle, kernel));
    ANSWERS(bad_value, cudaGetKernel(nullptr, kernel));
    ANSWERS(bad_function, cudaGetKernel(&handle, none));
    ANSWERS(bad_function, cudaGetKernel(&handle, stranger));
    ANSWERS(bad_function, cudaGetFuncBySymbol(&function, none));
    ANSWERS(bad_function, cudaGetFuncBySymbol(&function, stranger));
    ANSWERS(ok, cudaGetFuncBySymbol(&function, kernel));
    ANSWERS(ok, cudaGetKernel(&handle, kernel));
    ANSWERS(ok, cudaLaunchKernel((const void *)function, 1, 32, arguments, 0, 0));
    ANSWERS(ok, cudaLaunchKernel((const void *)handle, 1, 32, arguments, 0, 0));
    ANSWERS(ok, cudaDeviceSynchronize());

    cudaFuncAttributes attributes = {};
    ANSWERS(ok, cudaFuncGetAttributes(&attributes, reverse));
    IS(1024, attributes.sharedSizeBytes);
    IS(0, attributes.localSizeBytes);
    IS(128, attributes.maxThreadsPerBlock);
    IS(80, attributes.ptxVersion);
    ANSWERS(bad_value, cudaFuncGetAttributes(nullptr, reverse));
    ANSWERS(bad_function, cudaFuncGetAttributes(&attributes, none));
    ANSWERS(bad_handle, cudaFuncGetAttributes(&attributes, stranger));
    ANSWERS(ok, cudaFuncGetAttributes(&attributes, (const void *)handle));

    const char *name = "";
    ANSWERS(ok, cudaFuncGetName(&name, kernel));
    IS(true, strstr(name, "add") != nullptr);
    ANSWERS(bad_value, cudaFuncGetName(nullptr, kernel));
    ANSWERS(bad_function, cudaFuncGetName(&name, none));
    ANSWERS(bad_handle, cudaFuncGetName(&name, stranger));
    size_t offset, size;
    ANSWERS(ok, cudaFuncGetParamInfo(kernel, 1, &offset, &size));
    IS(8, offset), IS(4, size);
    ANSWERS(bad_value, cudaFuncGetParamInfo(kernel, 2, &offset, &size));
    ANSWERS(ok, cudaFuncGetParamInfo(kernel, 0, &offset, nullptr));
    ANSWERS(bad_value, cudaFuncGetParamInfo(kernel, 0, nullptr, &size));
    ANSWERS(bad_function, cudaFuncGetParamInfo(none, 0, &offset, &size));
    ANSWERS(bad_handle, cudaFuncGetParamInfo(stranger, 0, &offset, &size));

    int blocks;
    ANSWERS(ok, cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, reverse, 128, 0));
    IS(16, blocks);
    ANSWERS(ok, cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, reverse, 2000, 0));
    IS(0, blocks);
    ANSWERS(bad_value, cudaOccupancyMaxActiveBlocksPerMultiprocessor(nullptr, reverse, 128, 0));
    ANSWERS(bad_value, cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, reverse, 0, 0));
    ANSWERS(bad_value, cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, reverse, -1, 0));
    ANSWERS(bad_function, cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, none, 128, 0));
    ANSWERS(bad_handle, cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, stranger, 128, 0));
    ANSWERS(bad_value, cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&blocks, reverse, 128, 0, 7));
    ANSWERS(ok, cudaFree(p));
}

void allocations() {
    char *p = (char *)1, host[64];
    void *other;
    unsigned flags;
    size_t pitch, free, total;
    ANSWERS(ok, cudaMalloc(&p, 0));
    IS(true, p == nullptr);
    ANSWERS(bad_value, cudaMalloc((void **)nullptr, 1));
    ANSWERS(no_memory, cudaMalloc(&p, size_t(1) << 50));
    ANSWERS(ok, cudaMalloc(&p, 4096));
    ANSWERS(bad_value, cudaFree(p + 1));
    ANSWERS(bad_value, cudaFree(host));
    ANSWERS(ok, cudaFree(nullptr));
    ANSWERS(ok, cudaMemGetInfo(&free, &total));
    ANSWERS(ok, cudaMemGetInfo(nullptr, &total));
    ANSWERS(ok, cudaMemGetInfo(&free, nullptr));

    char *pinned = (char *)1;
    ANSWERS(ok, cudaMallocHost((void **)&pinned, 0));
    IS(true, pinned == nullptr);
    ANSWERS(bad_value, cudaMallocHost((void **)nullptr, 1));
    ANSWERS(ok, cudaMallocHost((void **)&pinned, 4096));
    ANSWERS(ok, cudaHostGetFlags(&flags, pinned));
    ANSWERS(bad_value, cudaHostGetFlags(nullptr, pinned));
    for (void *unknown : {(void *)host, (void *)p, (void *)nullptr}) ANSWERS(bad_value, cudaHostGetFlags(&flags, unknown));
    ANSWERS(ok, cudaHostGetDevicePointer(&other, pinned, 0));
    IS(true, other == pinned);
    ANSWERS(bad_value, cudaHostGetDevicePointer(&other, pinned, 1));
    ANSWERS(bad_value, cudaHostGetDevicePointer(&other, host, 0));
    ANSWERS(bad_value, cudaHostGetDevicePointer(nullptr, pinned, 0));
    ANSWERS(bad_value, cudaHostGetDevicePointer(&other, nullptr, 0));
    ANSWERS(ok, cudaHostAlloc(&other, 4096, 7));
    ANSWERS(ok, cudaHostGetFlags(&flags, other));
    IS(7, flags);
    ANSWERS(ok, cudaFreeHost(other));
    ANSWERS(bad_value, cudaHostAlloc(&other, 4096, 8));
    ANSWERS(bad_value, cudaHostAlloc(nullptr, 16, 0));
    ANSWERS(ok, cudaFreeHost(nullptr));
    ANSWERS(bad_value, cudaFreeHost(p));
    ANSWERS(bad_value, cudaFreeHost(host));

    char *own = (char *)aligned_alloc(4096, 8192);
    ANSWERS(ok, cudaHostRegister(own, 8192, 0));
    ANSWERS(cudaErrorHostMemoryAlreadyRegistered, cudaHostRegister(own, 8192, 0));
    ANSWERS(bad_value, cudaHostRegister(nullptr, 8192, 0));
    ANSWERS(bad_value, cudaHostRegister(own, 0, 0));
    ANSWERS(ok, cudaHostUnregister(own));
    ANSWERS(cudaErrorHostMemoryNotRegistered, cudaHostUnregister(own));

    int *shared = (int *)1;
    ANSWERS(ok, cudaMallocManaged(&shared, 0));
    IS(true, shared == nullptr);
    ANSWERS(bad_value, cudaMallocManaged(&shared, 4096, 77));
    ANSWERS(bad_value, cudaMallocManaged((void **)nullptr, 4096));
    ANSWERS(ok, cudaMallocManaged(&shared, 4096));

    cudaPointerAttributes about;
    const auto kind = [&](const void *pointer) {
        memset(&about, 0x55, sizeof about);
        ANSWERS(ok, cudaPointerGetAttributes(&about, pointer));
        return about.type;
    };
    IS(cudaMemoryTypeDevice, kind(p + 1));
    IS(0, about.device), IS(true, about.devicePointer == p + 1), IS(true, about.hostPointer == nullptr);
    IS(cudaMemoryTypeHost, kind(pinned));
    IS(0, about.device), IS(true, about.devicePointer == pinned), IS(true, about.hostPointer == pinned);
    IS(cudaMemoryTypeManaged, kind(shared));
    IS(0, about.device), IS(true, about.devicePointer == shared), IS(true, about.hostPointer == shared);
    IS(cudaMemoryTypeUnregistered, kind(host));
    IS(cudaInvalidDeviceId, about.device), IS(true, about.devicePointer == nullptr), IS(true, about.hostPointer == host);
    IS(cudaMemoryTypeUnregistered, kind(nullptr));
    ANSWERS(bad_value, cudaPointerGetAttributes(nullptr, p));

    char *rows;
    ANSWERS(ok, cudaMallocPitch(&rows, &pitch, 100, 10));
    IS(512, pitch);
    ANSWERS(ok, cudaFree(rows));
    ANSWERS(ok, cudaMallocPitch(&rows, &pitch, 513, 2));
    IS(1024, pitch);
    ANSWERS(ok, cudaFree(rows));
    ANSWERS(ok, cudaMallocPitch(&rows, &pitch, 0, 10));
    IS(true, rows == nullptr);
    ANSWERS(bad_value, cudaMallocPitch((void **)nullptr, &pitch, 10, 10));
    ANSWERS(bad_value, cudaMallocPitch(&rows, nullptr, 10, 10));
    cudaPitchedPtr box;
    ANSWERS(ok, cudaMalloc3D(&box, make_cudaExtent(100, 10, 5)));
    IS(512, box.pitch), IS(100, box.xsize), IS(10, box.ysize);
    ANSWERS(ok, cudaFree(box.ptr));
    ANSWERS(bad_value, cudaMalloc3D(nullptr, make_cudaExtent(1, 10, 5)));

    cudaStream_t stream;
    ANSWERS(ok, cudaStreamCreate(&stream));
    ANSWERS(ok, cudaMallocAsync(&rows, 0, stream));
    IS(true, rows == nullptr);
    ANSWERS(bad_value, cudaMallocAsync((void **)nullptr, 8, stream));
    ANSWERS(ok, cudaMallocAsync(&rows, 8, stream));
    ANSWERS(ok, cudaFreeAsync(rows, stream));
    ANSWERS(ok, cudaStreamSynchronize(stream));
    ANSWERS(ok, cudaStreamDestroy(stream));

    ANSWERS(ok, cudaFree(shared));
    ANSWERS(ok, cudaFreeHost(pinned));
    ANSWERS(bad_value, cudaFreeHost(pinned));
    ANSWERS(ok, cudaFree(p));
    ANSWERS(bad_value, cudaFree(p));
    ::free(own);
}

void copies() {
    char *p, *q, *pinned, host[4096] = {};
    ANSWERS(ok, cudaMalloc(&p, 4096));
    ANSWERS(ok, cudaMalloc(&q, 4096));
    ANSWERS(ok, cudaMallocHost((void **)&pinned, 4096));

    // Host pointers named device pointers, and the reverse, for each direction. Both ends on the device are always fine.
    struct Direction {
        cudaMemcpyKind kind;
        cudaError_t up, down, symbol_up, symbol_down;
    };
    const Direction directions[] = {
        {on_host, ok, ok, bad_direction, bad_direction},
        {to_device, ok, bad_value, ok, bad_direction},
        {to_host, bad_value, ok, bad_direction, ok},
        {on_device, bad_value, bad_value, bad_value, bad_value},
        {any, ok, ok, ok, ok},
    };
    for (auto [kind, up, down, symbol_up, symbol_down] : directions) {
        ANSWERS(up, cudaMemcpy(p, host, 64, kind));
        ANSWERS(down, cudaMemcpy(host, p, 64, kind));
        ANSWERS(ok, cudaMemcpy(p, q, 64, kind));
        ANSWERS(ok, cudaMemcpy(p, pinned, 64, kind));
        ANSWERS(ok, cudaMemcpy(pinned, p, 64, kind));
        ANSWERS(up, cudaMemcpyAsync(p, host, 64, kind, 0));
        ANSWERS(down, cudaMemcpyAsync(host, p, 64, kind, 0));
        ANSWERS(ok, cudaMemcpyAsync(p, q, 64, kind, 0));
        ANSWERS(up, cudaMemcpy2D(p, 64, host, 64, 32, 4, kind));
        ANSWERS(down, cudaMemcpy2D(host, 64, p, 64, 32, 4, kind));
        ANSWERS(ok, cudaMemcpy(nullptr, nullptr, 0, kind));
        ANSWERS(bad_value, cudaMemcpy(p, nullptr, 64, kind));
        ANSWERS(bad_value, cudaMemcpy(nullptr, p, 64, kind));
        ANSWERS(bad_value, cudaMemcpy(p, host, 4097, kind));
        ANSWERS(symbol_up, cudaMemcpyToSymbol(table, host, 8, 0, kind));
        ANSWERS(symbol_down, cudaMemcpyFromSymbol(host, table, 8, 0, kind));
    }
    ANSWERS(ok, cudaDeviceSynchronize());
    ANSWERS(bad_direction, cudaMemcpy(p, host, 64, nonsense));
    ANSWERS(ok, cudaMemcpy(p, host, 0, nonsense));

    ANSWERS(bad_pitch, cudaMemcpy2D(p, 16, host, 64, 32, 4, to_device));
    ANSWERS(bad_pitch, cudaMemcpy2D(p, 64, host, 16, 32, 4, to_device));
    ANSWERS(ok, cudaMemcpy2D(p, 16, host, 64, 32, 0, to_device));
    ANSWERS(ok, cudaMemcpy2D(p, 64, host, 64, 0, 4, to_device));
    ANSWERS(bad_value, cudaMemcpy2D(nullptr, 64, host, 64, 32, 4, to_device));
    ANSWERS(bad_direction, cudaMemcpy2D(p, 64, host, 64, 32, 4, nonsense));
    ANSWERS(bad_value, cudaMemcpy2D(p, 64, host, 64, 32, 65, to_device));

    cudaMemcpy3DParms box = {};
    ANSWERS(ok, cudaMemcpy3D(&box));
    ANSWERS(bad_value, cudaMemcpy3D(nullptr));
    box.srcPtr = make_cudaPitchedPtr(host, 64, 64, 4);
    box.dstPtr = make_cudaPitchedPtr(p, 64, 64, 4);
    box.extent = make_cudaExtent(32, 4, 2);
    box.kind = to_device;
    ANSWERS(ok, cudaMemcpy3D(&box));
    box.kind = nonsense;
    ANSWERS(bad_direction, cudaMemcpy3D(&box));
    box.kind = any;
    box.extent.width = 128;
    ANSWERS(bad_pitch, cudaMemcpy3D(&box));
    box.extent = make_cudaExtent(32, 8, 2);
    ANSWERS(bad_pitch, cudaMemcpy3D(&box));
    box.extent = make_cudaExtent(32, 4, 2);
    box.srcPtr.ptr = nullptr;
    ANSWERS(bad_value, cudaMemcpy3D(&box));

    ANSWERS(ok, cudaMemcpyPeer(p, 0, q, 0, 64));
    ANSWERS(bad_device, cudaMemcpyPeer(p, 1 << 20, q, 0, 64));
    ANSWERS(bad_device, cudaMemcpyPeer(p, 0, q, -1, 64));
    ANSWERS(ok, cudaMemcpyPeer(nullptr, 0, nullptr, 0, 0));

    ANSWERS(ok, cudaMemset(p, 1, 4096));
    ANSWERS(bad_value, cudaMemset(p, 1, 4097));
    ANSWERS(ok, cudaMemset(nullptr, 1, 0));
    ANSWERS(bad_value, cudaMemset(nullptr, 1, 1));
    ANSWERS(bad_value, cudaMemset(host, 1, 16));
    ANSWERS(ok, cudaMemset(pinned, 300, 16));
    IS(44, pinned[0]);
    ANSWERS(ok, cudaMemset2D(p, 64, 1, 32, 4));
    ANSWERS(ok, cudaMemset2D(p, 64, 1, 0, 4));
    ANSWERS(bad_value, cudaMemset2D(nullptr, 64, 1, 4, 4));
    ANSWERS(bad_value, cudaMemset2D(p, 64, 1, 64, 65));
    const cudaPitchedPtr all = make_cudaPitchedPtr(p, 64, 64, 4);
    ANSWERS(ok, cudaMemset3D(all, 1, make_cudaExtent(32, 4, 16)));
    ANSWERS(ok, cudaMemset3D(all, 1, make_cudaExtent(32, 2, 16)));
    ANSWERS(bad_value, cudaMemset3D(all, 1, make_cudaExtent(32, 8, 2)));
    ANSWERS(bad_value, cudaMemset3D(all, 1, make_cudaExtent(32, 4, 17)));
    ANSWERS(ok, cudaFreeHost(pinned));
    ANSWERS(ok, cudaFree(p));
    ANSWERS(ok, cudaFree(q));
}

void symbols() {
    void *address;
    size_t size;
    char host[128] = {};
    const void *none = nullptr, *stranger = host;
    IS(42, managed);  // before any call
    ANSWERS(ok, cudaGetSymbolAddress(&address, table));
    ANSWERS(bad_symbol, cudaGetSymbolAddress(&address, none));
    ANSWERS(bad_symbol, cudaGetSymbolAddress(&address, stranger));
    ANSWERS(ok, cudaGetSymbolSize(&size, table));
    IS(64, size);
    ANSWERS(ok, cudaGetSymbolSize(&size, constants));
    IS(16, size);
    ANSWERS(ok, cudaGetSymbolSize(&size, managed));
    IS(4, size);
    ANSWERS(bad_symbol, cudaGetSymbolSize(&size, stranger));
    ANSWERS(ok, cudaGetSymbolAddress(&address, managed));
    IS(true, address == &managed);
    ANSWERS(ok, cudaMemcpyToSymbol(table, host, 64));
    ANSWERS(bad_value, cudaMemcpyToSymbol(table, host, 65));
    ANSWERS(bad_value, cudaMemcpyToSymbol(table, host, 4, 61));
    ANSWERS(bad_value, cudaMemcpyToSymbol(table, host, 4, size_t(-4)));
    ANSWERS(bad_value, cudaMemcpyToSymbol(table, nullptr, 4));
    ANSWERS(ok, cudaMemcpyToSymbol(table, host, 0, 65));
    ANSWERS(bad_symbol, cudaMemcpyToSymbol(none, host, 4));
    ANSWERS(bad_symbol, cudaMemcpyToSymbol(stranger, host, 4));
    ANSWERS(bad_direction, cudaMemcpyToSymbol(table, host, 4, 0, nonsense));
    ANSWERS(bad_symbol, cudaMemcpyToSymbol(none, host, 4, 0, nonsense));
    ANSWERS(ok, cudaMemcpyToSymbol(constants, host, 16));
    ANSWERS(ok, cudaMemcpyToSymbol(managed, host, 4));
    ANSWERS(ok, cudaMemcpyFromSymbol(host, managed, 4));
}

void streams() {
    cudaStream_t stream, second;
    cudaEvent_t event, untimed;
    unsigned flags;
    int priority, device;
    unsigned long long id;
    float time;
    ANSWERS(bad_value, cudaStreamCreate(nullptr));
    ANSWERS(ok, cudaStreamCreate(&stream));
    ANSWERS(bad_value, cudaStreamCreateWithFlags(&second, 2));
    ANSWERS(bad_value, cudaStreamCreateWithPriority(&second, 9, 0));
    ANSWERS(ok, cudaStreamCreateWithPriority(&second, cudaStreamNonBlocking, -3));
    ANSWERS(ok, cudaStreamGetFlags(stream, &flags));
    IS(0, flags);
    ANSWERS(ok, cudaStreamGetFlags(second, &flags));
    IS(1, flags);
    ANSWERS(bad_value, cudaStreamGetFlags(stream, nullptr));
    ANSWERS(ok, cudaStreamGetPriority(second, &priority));
    IS(-3, priority);
    ANSWERS(bad_value, cudaStreamGetPriority(second, nullptr));
    ANSWERS(ok, cudaStreamGetId(stream, &id));
    ANSWERS(bad_value, cudaStreamGetId(stream, nullptr));
    ANSWERS(ok, cudaStreamGetDevice(stream, &device));
    IS(0, device);
    for (cudaStream_t one : {stream, second, cudaStream_t(0), cudaStreamLegacy, cudaStreamPerThread}) {
        ANSWERS(ok, cudaStreamQuery(one));
        ANSWERS(ok, cudaStreamSynchronize(one));
    }
    for (cudaStream_t fixed : {cudaStream_t(0), cudaStreamLegacy, cudaStreamPerThread})
        ANSWERS(bad_handle, cudaStreamDestroy(fixed));

    ANSWERS(bad_value, cudaEventCreate((cudaEvent_t *)nullptr));
    ANSWERS(ok, cudaEventCreate(&event));
    for (unsigned wrong_flags : {4u, 8u, 0x100u}) ANSWERS(bad_value, cudaEventCreateWithFlags(&untimed, wrong_flags));
    ANSWERS(ok, cudaEventCreateWithFlags(&untimed, cudaEventDisableTiming));
    ANSWERS(ok, cudaEventQuery(event));
    ANSWERS(ok, cudaEventSynchronize(event));
    ANSWERS(bad_handle, cudaEventElapsedTime(&time, event, event));
    ANSWERS(ok, cudaEventRecord(event, stream));
    ANSWERS(ok, cudaEventRecord(untimed, stream));
    ANSWERS(ok, cudaEventSynchronize(untimed));
    ANSWERS(ok, cudaEventElapsedTime(&time, event, event));
    ANSWERS(bad_handle, cudaEventElapsedTime(&time, event, untimed));
    ANSWERS(bad_value, cudaEventElapsedTime(nullptr, event, event));
    ANSWERS(bad_handle, cudaEventElapsedTime(&time, nullptr, event));
    ANSWERS(bad_handle, cudaEventQuery(nullptr));
    ANSWERS(bad_handle, cudaEventSynchronize(nullptr));
    ANSWERS(bad_handle, cudaEventRecord(nullptr, stream));
    ANSWERS(bad_handle, cudaEventDestroy(nullptr));
    ANSWERS(bad_value, cudaEventRecordWithFlags(event, stream, 9));
    ANSWERS(ok, cudaStreamWaitEvent(second, event, 0));
    ANSWERS(bad_value, cudaStreamWaitEvent(second, event, 9));
    ANSWERS(bad_handle, cudaStreamWaitEvent(second, nullptr, 0));

    // Host functions may not call the API, except for what needs no driver.
    static cudaError_t inside[3];
    const auto ask = [](void *) {
        void *p;
        inside[0] = cudaMalloc(&p, 4);
        inside[1] = cudaDeviceSynchronize();
        inside[2] = cudaGetLastError();
    };
    ANSWERS(bad_value, cudaLaunchHostFunc(stream, nullptr, nullptr));
    ANSWERS(ok, cudaLaunchHostFunc(stream, ask, nullptr));
    ANSWERS(ok, cudaStreamSynchronize(stream));
    for (cudaError_t code : inside) IS(cudaErrorNotPermitted, code);
    ANSWERS(bad_value, cudaStreamAddCallback(stream, nullptr, nullptr, 0));
    ANSWERS(ok, cudaEventDestroy(event));
    ANSWERS(ok, cudaEventDestroy(untimed));
    ANSWERS(ok, cudaStreamDestroy(stream));
    ANSWERS(ok, cudaStreamDestroy(second));
}

// In a process that has made no call yet.
void devices() {
    const int missing = 1 << 20;
    int value;
    unsigned flags;
    CUcontext context;
    CU_CHECK(cuInit(0));
    const auto is_current = [&] {
        CU_CHECK(cuCtxGetCurrent(&context));
        return context != nullptr;
    };
    ANSWERS(ok, cudaGetDeviceFlags(&flags));
    IS(cudaDeviceMapHost, flags);
    ANSWERS(bad_value, cudaGetDeviceFlags(nullptr));
    ANSWERS(ok, cudaGetDevice(&value));
    IS(0, value);
    ANSWERS(ok, cudaInitDevice(0, 0, 0));
    ANSWERS(bad_device, cudaInitDevice(missing, 0, 0));
    IS(false, is_current());
    ANSWERS(ok, cudaSetDeviceFlags(cudaDeviceScheduleBlockingSync));
    IS(true, is_current());
    ANSWERS(ok, cudaGetDeviceFlags(&flags));
    IS(cudaDeviceMapHost | cudaDeviceScheduleBlockingSync, flags);
    ANSWERS(bad_value, cudaSetDeviceFlags(0x1000));
    ANSWERS(ok, cudaSetDeviceFlags(cudaDeviceMapHost));
    ANSWERS(ok, cudaSetDevice(0));
    ANSWERS(bad_device, cudaSetDevice(missing));
    ANSWERS(bad_device, cudaSetDevice(-1));
    ANSWERS(bad_value, cudaGetDevice(nullptr));
    ANSWERS(bad_value, cudaGetDeviceCount(nullptr));

    size_t limit;
    ANSWERS(ok, cudaDeviceGetLimit(&limit, cudaLimitStackSize));
    ANSWERS(bad_value, cudaDeviceGetLimit(nullptr, cudaLimitStackSize));
    ANSWERS(bad_value, cudaDeviceGetLimit(&limit, cudaLimit(99)));
    ANSWERS(ok, cudaDeviceSetLimit(cudaLimitStackSize, 2048));
    ANSWERS(bad_value, cudaDeviceSetLimit(cudaLimit(99), 1));
    cudaFuncCache cache;
    ANSWERS(ok, cudaDeviceGetCacheConfig(&cache));
    ANSWERS(bad_value, cudaDeviceGetCacheConfig(nullptr));
    ANSWERS(ok, cudaDeviceSetCacheConfig(cudaFuncCachePreferL1));
    ANSWERS(bad_value, cudaDeviceSetCacheConfig(cudaFuncCache(9)));
    int least, greatest;
    ANSWERS(ok, cudaDeviceGetStreamPriorityRange(&least, &greatest));
    IS(0, least), IS(-5, greatest);
    ANSWERS(ok, cudaDeviceGetStreamPriorityRange(nullptr, nullptr));

    ANSWERS(ok, cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, 0));
    IS(32, value);
    ANSWERS(bad_value, cudaDeviceGetAttribute(nullptr, cudaDevAttrWarpSize, 0));
    ANSWERS(bad_value, cudaDeviceGetAttribute(&value, cudaDeviceAttr(0), 0));
    ANSWERS(bad_value, cudaDeviceGetAttribute(&value, cudaDeviceAttr(9999), 0));
    ANSWERS(bad_device, cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, missing));
    cudaDeviceProp properties;
    ANSWERS(ok, cudaGetDeviceProperties(&properties, 0));
    IS(32, properties.warpSize), IS(1024, properties.maxThreadsPerBlock);
    ANSWERS(bad_value, cudaGetDeviceProperties(nullptr, 0));
    ANSWERS(bad_device, cudaGetDeviceProperties(&properties, missing));
    ANSWERS(ok, cudaChooseDevice(&value, &properties));
    IS(0, value);
    ANSWERS(bad_value, cudaChooseDevice(nullptr, &properties));
    ANSWERS(bad_value, cudaChooseDevice(&value, nullptr));
    ANSWERS(ok, cudaDeviceCanAccessPeer(&value, 0, 0));
    IS(0, value);
    ANSWERS(bad_device, cudaDeviceCanAccessPeer(&value, 0, missing));
    ANSWERS(cudaErrorPeerAccessUnsupported, cudaDeviceEnablePeerAccess(0, 0));
    char place[32];
    ANSWERS(ok, cudaDeviceGetPCIBusId(place, sizeof place, 0));
    ANSWERS(bad_device, cudaDeviceGetPCIBusId(place, sizeof place, missing));
    ANSWERS(ok, cudaDeviceGetPCIBusId(place, sizeof place, 0));
    ANSWERS(ok, cudaDeviceGetByPCIBusId(&value, place));
    IS(0, value);
    ANSWERS(bad_value, cudaDeviceGetByPCIBusId(&value, nullptr));
    ANSWERS(bad_value, cudaDriverGetVersion(nullptr));
    ANSWERS(bad_value, cudaRuntimeGetVersion(nullptr));
    ANSWERS(ok, cudaRuntimeGetVersion(&value));
    IS(13, value / 1000);
}

void resets() {
    int *p;
    unsigned flags;
    const auto active = [&] {
        int active;
        CU_CHECK(cuDevicePrimaryCtxGetState(0, &flags, &active));
        return active;
    };
    ANSWERS(ok, cudaDeviceReset());
    IS(0, active());
    ANSWERS(ok, cudaMalloc(&p, 4));
    IS(1, active());
    ANSWERS(ok, cudaDeviceReset());
    IS(0, active());
    CUdeviceptr q;
    IS(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuMemAlloc(&q, 4));  // the driver still has the old context current
    ANSWERS(ok, cudaDeviceSynchronize());
    IS(1, active());
    IS(CUDA_SUCCESS, cuMemAlloc(&q, 4));
    managed = 5;
    add<<<1, 1>>>((int *)q, 1), LAUNCH_ANSWERS(ok);
    ANSWERS(ok, cudaDeviceSynchronize());
    // Another thread resets; then the program itself does, through the driver.
    std::thread([] { ANSWERS(ok, cudaDeviceReset()); }).join();
    ANSWERS(ok, cudaMalloc(&p, 4));
    CU_CHECK(cuDevicePrimaryCtxReset(0));
    ANSWERS(ok, cudaMalloc(&p, 4));
    ANSWERS(ok, cudaDeviceReset());
    IS(CUDA_ERROR_INVALID_CONTEXT, cuDevicePrimaryCtxRelease(0));  // the runtime keeps no retention

    // A context that another thread destroyed.
    CUcontext own;
    CU_CHECK(cuCtxCreate(&own, nullptr, 0, 0));
    std::thread([&] { CU_CHECK(cuCtxDestroy(own)); }).join();
    ANSWERS(cudaErrorDeviceUninitialized, cudaMalloc(&p, 4));
    ANSWERS(cudaErrorDeviceUninitialized, cudaDeviceSynchronize());
    ANSWERS(ok, cudaSetDevice(0));
    ANSWERS(ok, cudaMalloc(&p, 4));
}

void no_device() {
    setenv("CUDA_VISIBLE_DEVICES", "", 1);
    const cudaError_t none = cudaErrorNoDevice;
    int value = -7;
    void *p;
    cudaFuncAttributes attributes;
    ANSWERS(none, cudaGetDeviceCount(&value));
    IS(-7, value);
    ANSWERS(none, cudaGetDevice(&value));
    ANSWERS(none, cudaSetDevice(0));
    ANSWERS(none, cudaMalloc(&p, 4));
    ANSWERS(none, cudaMalloc((void **)nullptr, 4));
    ANSWERS(none, cudaMemcpy(p, p, 4, nonsense));
    ANSWERS(none, cudaFree(0));
    add<<<1, 1>>>(nullptr, 1), LAUNCH_ANSWERS(none);
    ANSWERS(none, cudaDeviceSynchronize());
    ANSWERS(none, cudaDeviceReset());
    ANSWERS(none, cudaGetSymbolAddress(&p, table));
    ANSWERS(none, cudaFuncGetAttributes(&attributes, add));
    ANSWERS(none, cudaMallocHost(&p, 4));
}

// Each group has a process of its own.
void in_child(const char *name, void (*group)()) {
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        wrong = 0;
        group();
        fflush(stdout);
        _exit(wrong != 0);
    }
    int status;
    waitpid(child, &status, 0);
    if (status == 0) return;
    printf("%s: status %#x\n", name, status);
    wrong++;
}

}  // namespace

int main() {
    in_child("launches", launches);
    in_child("allocations", allocations);
    in_child("copies", copies);
    in_child("symbols", symbols);
    in_child("streams", streams);
    in_child("devices", devices);
    in_child("resets", resets);
    in_child("no device", no_device);
    if (wrong) fail("%d of 8 groups give other answers", wrong);
    succeed("8 groups of calls, each code as on the hardware");
}
