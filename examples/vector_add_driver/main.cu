// Vector addition with the driver API: every step that the runtime API takes by itself is a call here. The kernel comes
// from a .ptx file, loaded and compiled when the program runs.

#include <vector>

#include "example.h"

int main() {
    CU_CHECK(cuInit(0));
    CUdevice device;
    CU_CHECK(cuDeviceGet(&device, 0));
    CUcontext context;
    CU_CHECK(cuCtxCreate(&context, nullptr, 0, device));  // and makes it current

    CUmodule module;
    CU_CHECK(cuModuleLoad(&module, beside_executable("kernel.ptx").c_str()));
    CUfunction add;
    CU_CHECK(cuModuleGetFunction(&add, module, "add"));

    unsigned n = 100'003;
    const size_t bytes = n * sizeof(float);
    std::vector<float> a(n), b(n), sum(n);
    for (unsigned i = 0; i < n; i++) {
        a[i] = float(i) * 0.25f;
        b[i] = 3.0f - float(i);
    }
    CUdeviceptr device_a, device_b, device_sum;
    CU_CHECK(cuMemAlloc(&device_a, bytes));
    CU_CHECK(cuMemAlloc(&device_b, bytes));
    CU_CHECK(cuMemAlloc(&device_sum, bytes));
    CU_CHECK(cuMemcpyHtoD(device_a, a.data(), bytes));
    CU_CHECK(cuMemcpyHtoD(device_b, b.data(), bytes));

    // One pointer to each argument, in the order of the kernel's parameters.
    void *arguments[] = {&device_a, &device_b, &device_sum, &n};
    const unsigned threads = 128;
    CU_CHECK(cuLaunchKernel(add, (n + threads - 1) / threads, 1, 1, threads, 1, 1, 0, nullptr, arguments, nullptr));
    CU_CHECK(cuCtxSynchronize());

    CU_CHECK(cuMemcpyDtoH(sum.data(), device_sum, bytes));
    for (unsigned i = 0; i < n; i++) REQUIRE(sum[i] == a[i] + b[i], "element %u: %g", i, sum[i]);

    CU_CHECK(cuMemFree(device_a));
    CU_CHECK(cuMemFree(device_b));
    CU_CHECK(cuMemFree(device_sum));
    CU_CHECK(cuModuleUnload(module));
    CU_CHECK(cuCtxDestroy(context));
    succeed("%u sums, each equal to the host's", n);
}
