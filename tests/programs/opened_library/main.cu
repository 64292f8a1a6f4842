// A library with kernels is opened, used on the program's own memory, closed and opened again. With NVIDIA's runtime linked
// into both there are two runtimes in the process, and still one device.

#include <dlfcn.h>

#include <vector>

#include "example.h"

__global__ void iota(int *values, int count) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) values[i] = i;
}

int main() {
    const int count = 1000;
    int *values;
    CUDA_CHECK(cudaMalloc(&values, count * sizeof *values));
    for (int round = 0; round < 3; round++) {
        void *library = dlopen(beside_executable("plugin.so").c_str(), (round % 2 ? RTLD_LAZY : RTLD_NOW) | RTLD_LOCAL);
        REQUIRE(library, "%s", dlerror());
        auto transform = (int (*)(int *, int, int, int))dlsym(library, "library_transform");
        REQUIRE(transform, "%s", dlerror());
        iota<<<(count + 255) / 256, 256>>>(values, count);
        CUDA_CHECK(cudaGetLastError());
        CUDA_CHECK(cudaError_t(transform(values, count, 3, round)));
        std::vector<int> host(count);
        CUDA_CHECK(cudaMemcpy(host.data(), values, count * sizeof(int), cudaMemcpyDeviceToHost));
        for (int i = 0; i < count; i++) REQUIRE(host[i] == 3 * i + round, "round %d: value %d is %d", round, i, host[i]);
        REQUIRE(dlclose(library) == 0, "%s", dlerror());
    }
    CUDA_CHECK(cudaFree(values));
    succeed("a library was opened and closed three times");
}
