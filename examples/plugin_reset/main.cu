// A plug-in resets the device while the program keeps a driver context of its own.
//
// cudaDeviceReset destroys the device's *primary* context, for everyone in the process who uses it. A context made with
// cuCtxCreate is another one: its memory, modules and streams survive.

#include <dlfcn.h>

#include "example.h"

int main() {
    CU_CHECK(cuInit(0));
    CUcontext own;
    CU_CHECK(cuCtxCreate(&own, nullptr, 0, 0));
    CUmodule module;
    CU_CHECK(cuModuleLoad(&module, beside_executable("kernel.ptx").c_str()));
    CUfunction next;
    CU_CHECK(cuModuleGetFunction(&next, module, "next"));
    const unsigned count = 32;
    CUdeviceptr values;
    CU_CHECK(cuMemAlloc(&values, count * sizeof(unsigned)));
    CU_CHECK(cuMemsetD32(values, 1, count));
    CU_CHECK(cuCtxPopCurrent(nullptr));  // the plug-in finds no context, and uses the primary one

    void *plugin = dlopen(beside_executable("plugin.so").c_str(), RTLD_NOW | RTLD_LOCAL);
    REQUIRE(plugin, "%s", dlerror());
    auto plugin_run = (int (*)())dlsym(plugin, "plugin_run");
    REQUIRE(plugin_run, "%s", dlerror());

    unsigned expected = 1;
    const int rounds = 4;
    for (int round = 0; round < rounds; round++) {
        // Each reset brings the plug-in's own variable back to its initial value.
        int calls = plugin_run();
        REQUIRE(calls == 1, "the plug-in's call %d answered %d", round, calls);

        CU_CHECK(cuCtxPushCurrent(own));
        void *arguments[] = {&values};
        CU_CHECK(cuLaunchKernel(next, 1, 1, 1, count, 1, 1, 0, nullptr, arguments, nullptr));
        unsigned result[count];
        CU_CHECK(cuMemcpyDtoH(result, values, sizeof result));
        expected = expected * 3 + 1;
        for (unsigned value : result) REQUIRE(value == expected, "round %d: %u", round, value);
        CU_CHECK(cuCtxPopCurrent(nullptr));
    }
    CU_CHECK(cuCtxDestroy(own));
    succeed("%d resets by the plug-in, and our context kept its memory", rounds);
}
