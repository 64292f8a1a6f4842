// The cases on whichever libcuda.so.1 the loader finds: `cuda FOLDER CASES...`.

#include <cuda.h>

#include "worker.h"

static void check(CUresult code, const char *what) {
    if (code == CUDA_SUCCESS) return;
    const char *name = "unknown code";
    cuGetErrorName(code, &name);
    throw std::runtime_error(std::string(what) + ": " + name);
}
#define CHECK(call) check(call, #call)

// Device memory that is freed with it.
class DeviceMemory {
public:
    explicit DeviceMemory(size_t bytes) { check(cuMemAlloc(&pointer_, bytes ? bytes : 1), "cuMemAlloc"); }
    DeviceMemory(DeviceMemory &&other) : pointer_(other.pointer_) { other.pointer_ = 0; }
    ~DeviceMemory() {
        if (pointer_) cuMemFree(pointer_);
    }
    CUdeviceptr get() const { return pointer_; }
    const CUdeviceptr *address() const { return &pointer_; }

private:
    CUdeviceptr pointer_ = 0;
};

class CudaCase : public Prepared {
public:
    CudaCase(const Case &c, CUmodule module) : launches_(c.launches) {
        for (const Buffer &buffer : c.buffers) {
            memory_.emplace_back(buffer.bytes.size());
            if (!buffer.bytes.empty())
                check(cuMemcpyHtoD(memory_.back().get(), buffer.bytes.data(), buffer.bytes.size()), "cuMemcpyHtoD");
        }
        for (Launch &launch : launches_) {
            CUfunction function;
            check(cuModuleGetFunction(&function, module, launch.kernel.c_str()), "cuModuleGetFunction");
            std::vector<void *> pointers;
            for (Argument &argument : launch.arguments)
                pointers.push_back(argument.buffer >= 0 ? (void *)memory_[size_t(argument.buffer)].address()
                                                        : (void *)argument.value);
            ready_.push_back({function, launch.grid, launch.block, std::move(pointers)});
        }
    }
    void start() override {
        for (Ready &launch : ready_)
            check(cuLaunchKernel(launch.function, launch.grid.x, launch.grid.y, launch.grid.z, launch.block.x,
                                 launch.block.y, launch.block.z, 0, nullptr, launch.pointers.data(), nullptr),
                  "cuLaunchKernel");
    }
    void finish() override { CHECK(cuCtxSynchronize()); }
    void read(int index, std::vector<unsigned char> &bytes) override {
        check(cuMemcpyDtoH(bytes.data(), memory_[size_t(index)].get(), bytes.size()), "cuMemcpyDtoH");
    }

private:
    struct Ready {
        CUfunction function;
        Extent grid, block;
        std::vector<void *> pointers;
    };
    std::vector<Launch> launches_;
    std::vector<DeviceMemory> memory_;
    std::vector<Ready> ready_;
};

class CudaWorker : public Worker {
public:
    CudaWorker() {
        CHECK(cuInit(0));
        CUcontext context;
        CHECK(cuDevicePrimaryCtxRetain(&context, 0));
        CHECK(cuCtxSetCurrent(context));
    }

    std::unique_ptr<Prepared> prepare(const Located &located, const Case &c, bool) override {
        if (c.launches.empty()) return nullptr;
        const auto found = modules_.find(located.folder);
        CUmodule module = found == modules_.end() ? nullptr : found->second;
        if (!module) {
            check(cuModuleLoadData(&module, read_text(located.path + "/kernel.ptx").c_str()), "cuModuleLoadData");
            modules_[located.folder] = module;
        }
        return std::make_unique<CudaCase>(c, module);
    }

    std::unique_ptr<Prepared> operation(const std::string &kind, size_t bytes) override {
        const auto wait = [] { CHECK(cuCtxSynchronize()); };
        if (kind == "alloc")
            return std::make_unique<Operation>([=] { DeviceMemory memory(bytes); }, wait);
        auto to = std::make_shared<DeviceMemory>(bytes), from = std::make_shared<DeviceMemory>(bytes);
        auto host = std::make_shared<std::vector<unsigned char>>(bytes, 1);
        CHECK(cuMemsetD8(from->get(), 2, bytes));
        if (kind == "h2d")
            return std::make_unique<Operation>([=] { check(cuMemcpyHtoD(to->get(), host->data(), bytes), "cuMemcpyHtoD"); }, wait);
        if (kind == "d2h")
            return std::make_unique<Operation>([=] { check(cuMemcpyDtoH(host->data(), from->get(), bytes), "cuMemcpyDtoH"); }, wait);
        if (kind == "d2d")
            return std::make_unique<Operation>([=] { check(cuMemcpyDtoD(to->get(), from->get(), bytes), "cuMemcpyDtoD"); }, wait);
        if (kind == "memset")
            return std::make_unique<Operation>([=] { check(cuMemsetD8(to->get(), 3, bytes), "cuMemsetD8"); }, wait);
        return nullptr;
    }

private:
    std::map<std::string, CUmodule> modules_;
};

int main(int count, char **arguments) {
    return run_worker([] { return std::make_unique<CudaWorker>(); }, count, arguments);
}
