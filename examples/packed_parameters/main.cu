// The same parameters given in both ways that a launch knows: one pointer to each, and packed into one buffer.

#include <string.h>

#include "example.h"

// Lays arguments into a buffer as a kernel's parameter space has them: in order, each at its alignment.
class ParameterBuffer {
public:
    template <class T>
    size_t add(const T &value) {
        size_t offset = (used_ + alignof(T) - 1) / alignof(T) * alignof(T);
        REQUIRE(offset + sizeof value <= sizeof bytes_, "the parameters do not fit");
        memcpy(bytes_ + offset, &value, sizeof value);
        used_ = offset + sizeof value;
        return offset;
    }
    void *data() { return bytes_; }
    size_t size() const { return used_; }

private:
    alignas(16) unsigned char bytes_[256] = {};
    size_t used_ = 0;
};

struct Pair {
    short first;
    double second;
};

int main() {
    CU_CHECK(cuInit(0));
    CUcontext context;
    CU_CHECK(cuCtxCreate(&context, nullptr, 0, 0));
    CUmodule module;
    CU_CHECK(cuModuleLoad(&module, beside_executable("kernel.ptx").c_str()));
    CUfunction unpack;
    CU_CHECK(cuModuleGetFunction(&unpack, module, "unpack"));

    const unsigned count = 9;
    const double expected[count] = {-3, 0.1, 1234, 1.5, 2.5, 3.5, 4.5, -99, 1e300};
    CUdeviceptr out;
    CU_CHECK(cuMemAlloc(&out, sizeof expected));
    char c = -3;
    double d = 0.1;
    short s = 1234;
    float4 v = make_float4(1.5f, 2.5f, 3.5f, 4.5f);
    Pair pair = {-99, 1e300};
    auto check = [&](const char *how) {
        double result[count];
        CU_CHECK(cuMemcpyDtoH(result, out, sizeof result));
        for (unsigned i = 0; i < count; i++) REQUIRE(result[i] == expected[i], "%s, value %u: %g", how, i, result[i]);
        CU_CHECK(cuMemsetD8(out, 0, sizeof result));
    };

    // One pointer to each: the driver knows every parameter's size and place from the kernel.
    void *pointers[] = {&c, &d, &s, &v, &pair, &out};
    CU_CHECK(cuLaunchKernel(unpack, 1, 1, 1, count, 1, 1, 0, nullptr, pointers, nullptr));
    check("one pointer to each");

    // One buffer: size and place are the caller's business, and the driver can be asked about them.
    ParameterBuffer buffer;
    const size_t offsets[] = {buffer.add(c), buffer.add(d), buffer.add(s), buffer.add(v), buffer.add(pair),
                              buffer.add(out)};
    for (size_t i = 0; i < 6; i++) {
        size_t offset, size;
        CU_CHECK(cuFuncGetParamInfo(unpack, i, &offset, &size));
        printf("parameter %zu: %2zu bytes at %2zu\n", i, size, offset);
        REQUIRE(offset == offsets[i], "parameter %zu lies at %zu, not at %zu", i, offset, offsets[i]);
    }
    size_t size = buffer.size();
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, buffer.data(), CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                     CU_LAUNCH_PARAM_END};
    CU_CHECK(cuLaunchKernel(unpack, 1, 1, 1, count, 1, 1, 0, nullptr, nullptr, extra));
    check("packed");

    CU_CHECK(cuMemFree(out));
    CU_CHECK(cuModuleUnload(module));
    CU_CHECK(cuCtxDestroy(context));
    succeed("6 parameters in %zu bytes, the same both ways", size);
}
