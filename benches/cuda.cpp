// The cases on whichever libcuda.so.1 the loader finds: `cuda KERNELS.ptx`.

#include <cuda.h>

#include <fstream>
#include <sstream>

#include "worker.h"

static void check(CUresult code, const char *what) {
    if (code == CUDA_SUCCESS) return;
    const char *name = "unknown code";
    cuGetErrorName(code, &name);
    throw std::runtime_error(std::string(what) + ": " + name);
}

class CudaCase : public Prepared {
public:
    CudaCase(const Case &c, CUmodule module) : case_(c) {
        check(cuModuleGetFunction(&function_, module, c.kernel.c_str()), "cuModuleGetFunction");
        for (const std::vector<float> &values : c.buffers) {
            CUdeviceptr pointer;
            check(cuMemAlloc(&pointer, values.size() * sizeof(float)), "cuMemAlloc");
            memory_.push_back(pointer);
            check(cuMemcpyHtoD(pointer, values.data(), values.size() * sizeof(float)), "cuMemcpyHtoD");
        }
        for (Argument &argument : case_.arguments)
            pointers_.push_back(argument.kind == Argument::buffer    ? (void *)&memory_[argument.i]
                                : argument.kind == Argument::integer ? (void *)&argument.i
                                                                     : (void *)&argument.f);
    }
    ~CudaCase() override {
        for (CUdeviceptr pointer : memory_) cuMemFree(pointer);
    }
    void start() override {
        check(cuLaunchKernel(function_, case_.grid[0], case_.grid[1], 1, case_.block[0], case_.block[1], 1, 0, nullptr,
                             pointers_.data(), nullptr),
              "cuLaunchKernel");
    }
    void finish() override { check(cuCtxSynchronize(), "cuCtxSynchronize"); }
    std::vector<std::vector<float>> buffers() override {
        std::vector<std::vector<float>> all = case_.buffers;
        for (size_t i = 0; i < all.size(); i++)
            check(cuMemcpyDtoH(all[i].data(), memory_[i], all[i].size() * sizeof(float)), "cuMemcpyDtoH");
        return all;
    }

private:
    Case case_;
    CUfunction function_;
    std::vector<CUdeviceptr> memory_;
    std::vector<void *> pointers_;
};

int main(int argc, char **argv) {
    try {
        if (argc != 2) throw std::runtime_error("usage: cuda KERNELS.ptx");
        std::ifstream file(argv[1]);
        std::stringstream ptx;
        ptx << file.rdbuf();
        check(cuInit(0), "cuInit");
        CUcontext context;
        check(cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
        check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
        CUmodule module;
        check(cuModuleLoadData(&module, ptx.str().c_str()), "cuModuleLoadData");
        return serve([&](const Case &c) { return std::make_unique<CudaCase>(c, module); });
    } catch (const std::exception &error) {
        fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
