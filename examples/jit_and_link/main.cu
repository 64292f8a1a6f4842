// PTX compiled while the program runs: with options and logs, and two sources linked into one program.

#include <math.h>
#include <string.h>

#include <vector>

#include "example.h"

// Loads PTX with a limit on registers, a log for information, and one for errors, which is kept in `errors`.
CUresult load(CUmodule *module, const std::string &source, std::string &errors) {
    char info_log[1024] = "", error_log[1024] = "";
    // Two arrays that go together: an option's name, and its value in a pointer's clothes. They are made anew for each
    // load: the driver writes into them how much of each log it has filled.
    CUjit_option names[] = {CU_JIT_MAX_REGISTERS, CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
                            CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {(void *)32, info_log, (void *)sizeof info_log, error_log, (void *)sizeof error_log};
    CUresult code = cuModuleLoadDataEx(module, source.c_str(), 5, names, values);
    errors = error_log;
    return code;
}

// A kernel whose constant is only known now, so its source is made here.
std::string fill_source(float value) {
    unsigned bits;
    memcpy(&bits, &value, 4);
    char constant[16];
    snprintf(constant, sizeof constant, "0f%08X", bits);
    return std::string(".version 8.0\n.target sm_80\n.address_size 64\n"
                       ".visible .entry fill (.param .u64 values)\n{\n"
                       "    .reg .u32 %r;\n    .reg .u64 %rd<3>;\n"
                       "    mov.u32 %r, %tid.x;\n    ld.param.u64 %rd1, [values];\n"
                       "    mul.wide.u32 %rd2, %r, 4;\n    add.u64 %rd1, %rd1, %rd2;\n"
                       "    st.global.f32 [%rd1], ") + constant + ";\n    ret;\n}\n";
}

int main() {
    CU_CHECK(cuInit(0));
    CUcontext context;
    CU_CHECK(cuCtxCreate(&context, nullptr, 0, 0));
    const unsigned count = 64;
    float values[count];
    CUdeviceptr device_values;
    CU_CHECK(cuMemAlloc(&device_values, sizeof values));

    std::string errors;
    CUmodule module;
    CU_CHECK(load(&module, fill_source(0.5f), errors));
    CUfunction fill;
    CU_CHECK(cuModuleGetFunction(&fill, module, "fill"));
    void *fill_arguments[] = {&device_values};
    CU_CHECK(cuLaunchKernel(fill, 1, 1, 1, count, 1, 1, 0, nullptr, fill_arguments, nullptr));
    CU_CHECK(cuMemcpyDtoH(values, device_values, sizeof values));
    for (float value : values) REQUIRE(value == 0.5f, "filled with %g", value);

    // A mistake comes back in the error log, with its line.
    std::string wrong = fill_source(1.0f);
    wrong.replace(wrong.find("mul.wide.u32"), 12, "mul.wise.u32");
    CUmodule none;
    CUresult refused = load(&none, wrong, errors);
    REQUIRE(refused == CUDA_ERROR_INVALID_PTX, "a wrong instruction gave code %d", refused);
    REQUIRE(errors.find("10") != std::string::npos, "the error log does not name line 10: %s", errors.c_str());
    printf("the mistake made on purpose: %s\n", errors.c_str());

    // Two sources, linked: one comes from memory, one from its file.
    CUlinkState link;
    CU_CHECK(cuLinkCreate(0, nullptr, nullptr, &link));
    std::string map_source = read_file(beside_executable("map.ptx"));
    CU_CHECK(cuLinkAddData(link, CU_JIT_INPUT_PTX, (void *)map_source.c_str(), map_source.size() + 1, "map.ptx", 0,
                           nullptr, nullptr));
    CU_CHECK(cuLinkAddFile(link, CU_JIT_INPUT_PTX, beside_executable("curve.ptx").c_str(), 0, nullptr, nullptr));
    void *image;
    size_t image_size;
    CU_CHECK(cuLinkComplete(link, &image, &image_size));
    CUmodule linked;
    CU_CHECK(cuModuleLoadData(&linked, image));
    CU_CHECK(cuLinkDestroy(link));  // the image was the link state's; the module keeps what it needs

    CUfunction map;
    CU_CHECK(cuModuleGetFunction(&map, linked, "map"));
    for (unsigned i = 0; i < count; i++) values[i] = float(i) / 16 - 2;
    CU_CHECK(cuMemcpyHtoD(device_values, values, sizeof values));
    unsigned n = count;
    void *map_arguments[] = {&device_values, &n};
    CU_CHECK(cuLaunchKernel(map, 2, 1, 1, 48, 1, 1, 0, nullptr, map_arguments, nullptr));
    float mapped[count];
    CU_CHECK(cuMemcpyDtoH(mapped, device_values, sizeof mapped));
    for (unsigned i = 0; i < count; i++)
        REQUIRE(mapped[i] == fmaf(-values[i], values[i], 1.0f), "curve(%g) = %g", values[i], mapped[i]);

    CU_CHECK(cuModuleUnload(linked));
    CU_CHECK(cuModuleUnload(module));
    CU_CHECK(cuCtxDestroy(context));
    succeed("a made source, a refused one, and two linked (%zu bytes of image)", image_size);
}
