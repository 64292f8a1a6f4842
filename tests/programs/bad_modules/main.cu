// Modules that are cut short, garbage, huge or deeply nested: each is refused with the driver's code for it.

#include <string.h>

#include <string>

#include "example.h"

const std::string header = ".version 8.0\n.target sm_80\n.address_size 64\n";

const std::string good = header +
                         ".visible .entry store (.param .u64 out)\n{\n    .reg .u64 %rd;\n    ld.param.u64 %rd, [out];\n"
                         "    st.global.u32 [%rd], 7;\n    ret;\n}\n";

CUresult load(const void *image) {
    CUmodule module;
    CUresult code = cuModuleLoadData(&module, image);
    if (code == CUDA_SUCCESS) CU_CHECK(cuModuleUnload(module));
    return code;
}

void expect(CUresult wanted, const std::string &image, const char *what) {
    CUresult code = load(image.c_str());
    REQUIRE(code == wanted, "%s: code %d, not %d", what, code, wanted);
}

std::string repeat(const char *text, size_t times) {
    std::string all;
    for (size_t i = 0; i < times; i++) all += text;
    return all;
}

// A kernel whose body is the given statements.
std::string with_body(const std::string &body) { return header + ".visible .entry k ()\n{\n" + body + "\nret;\n}\n"; }

// A fat binary with one entry, which the caller may damage.
std::string fat_binary(const std::string &ptx) {
    auto put = [](std::string &out, uint64_t value, int bytes) { out.append((const char *)&value, bytes); };
    std::string payload = ptx;
    payload.resize((payload.size() + 8) / 8 * 8);
    std::string entry;
    put(entry, 1, 2), put(entry, 0x0101, 2), put(entry, 64, 4), put(entry, payload.size(), 8);
    put(entry, 0, 4), put(entry, 0, 4), put(entry, 0, 2), put(entry, 8, 2), put(entry, 80, 4);
    put(entry, 0, 8), put(entry, 0x11, 8), put(entry, 0, 8), put(entry, 0, 8);
    std::string out;
    put(out, 0xBA55ED50, 4), put(out, 1, 2), put(out, 16, 2), put(out, entry.size() + payload.size(), 8);
    return out + entry + payload;
}

int main() {
    CU_CHECK(cuInit(0));
    CUcontext context;
    CU_CHECK(cuCtxCreate(&context, nullptr, 0, 0));
    expect(CUDA_SUCCESS, good, "a good module");

    // What is no module at all.
    expect(CUDA_ERROR_INVALID_IMAGE, "", "an empty text");
    expect(CUDA_ERROR_INVALID_IMAGE, "hello", "a text that is no PTX");
    expect(CUDA_ERROR_INVALID_IMAGE, "// only a comment\n", "a comment");
    expect(CUDA_ERROR_INVALID_IMAGE, std::string("\x7f" "ELF but not really", 18), "a false ELF file");
    REQUIRE(load(nullptr) == CUDA_ERROR_INVALID_VALUE, "a null image: code %d", load(nullptr));
    CUmodule none;
    REQUIRE(cuModuleLoad(&none, "/no/such/file") == CUDA_ERROR_FILE_NOT_FOUND, "a file that is not there");

    // PTX that is wrong in one way each.
    expect(CUDA_ERROR_INVALID_PTX, header + ".visible .entry k (", "an open parameter list");
    expect(CUDA_ERROR_INVALID_PTX, with_body("frobnicate.u32 %r1, %r2;"), "an unknown instruction");
    expect(CUDA_ERROR_INVALID_PTX, with_body("mov.u32 %r1, 0;"), "a register that is not declared");
    expect(CUDA_ERROR_INVALID_PTX, with_body("bra nowhere;"), "a label that is not there");
    expect(CUDA_ERROR_INVALID_PTX, with_body(".reg .f32 %f;\nadd.u32 %f, %f, 1;"), "a wrong type");
    expect(CUDA_ERROR_INVALID_PTX, with_body("{ { {"), "blocks that stay open");
    expect(CUDA_ERROR_INVALID_PTX, ".version 8.0\n.target sm_200\n.address_size 64\n", "a newer architecture");
    expect(CUDA_ERROR_UNSUPPORTED_PTX_VERSION, ".version 99.0\n.target sm_80\n.address_size 64\n", "a newer version");

    // Every beginning of a good module: some are modules too, none may do harm.
    for (size_t length = 0; length < good.size(); length++) load(good.substr(0, length).c_str());

    // Large and deep: refused or accepted, but neither a crash nor an endless search.
    const CUresult deep_block = load(with_body(repeat("{", 200000) + repeat("}", 200000)).c_str());
    const CUresult deep_term = load(with_body(".reg .u32 %r;\nmov.u32 %r, " + repeat("(", 200000) + "1" +
                                              repeat(")", 200000) + ";").c_str());
    const CUresult open_term = load(with_body(".reg .u32 %r;\nmov.u32 %r, " + repeat("-(", 100000)).c_str());
    REQUIRE(open_term == CUDA_ERROR_INVALID_PTX, "an open expression: code %d", open_term);
    printf("nesting: blocks %d, expressions %d\n", deep_block, deep_term);
    expect(CUDA_ERROR_INVALID_PTX, header + repeat("\x01\x80\xff", 300000), "garbage after a header");
    load((header + ".global .u32 x[0xffffffffffffffff];\n").c_str());
    load((header + ".global .align 1024 .b8 x[0x7fffffffffffffff];\n").c_str());
    load(with_body(".local .b8 stack[0x7fffffff];").c_str());

    // Fat binaries: a good one, every cut of it that keeps the header, and every byte of its headers changed.
    const std::string fat = fat_binary(good);
    expect(CUDA_SUCCESS, fat, "a good fat binary");
    for (size_t at = 0; at < 80; at++)
        for (int value : {0, 1, 0x7f, 0x80, 0xff}) {
            if (at >= 8 && at < 16) continue;  // a false length makes the driver read past what we own
            if (at >= 24 && at < 32) continue;
            std::string damaged = fat + std::string(64, '\0');
            damaged[at] = char(value);
            load(damaged.data());
        }

    // After all that the context works.
    CUmodule module;
    CUfunction store;
    CUdeviceptr out;
    CU_CHECK(cuModuleLoadData(&module, good.c_str()));
    CU_CHECK(cuModuleGetFunction(&store, module, "store"));
    REQUIRE(cuModuleGetFunction(&store, module, "absent") == CUDA_ERROR_NOT_FOUND, "a function that is not there");
    CU_CHECK(cuModuleGetFunction(&store, module, "store"));
    CU_CHECK(cuMemAlloc(&out, 4));
    void *arguments[] = {&out};
    CU_CHECK(cuLaunchKernel(store, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr));
    int value = 0;
    CU_CHECK(cuMemcpyDtoH(&value, out, 4));
    REQUIRE(value == 7, "the good module stored %d", value);
    CU_CHECK(cuCtxDestroy(context));
    succeed("every bad module was refused");
}
