// The cases on the first CPU device of the first OpenCL platform: `opencl FOLDER CASES...`. Which platform that is, the
// environment decides (OCL_ICD_VENDORS).

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include "worker.h"

static void check(cl_int code, const char *what) {
    if (code != CL_SUCCESS) throw std::runtime_error(std::string(what) + ": " + std::to_string(code));
}

class OpenclCase : public Prepared {
public:
    OpenclCase(const Case &c, cl_context context, cl_command_queue queue, cl_program program) : queue_(queue) {
        cl_int code;
        for (const Buffer &buffer : c.buffers) {
            memory_.push_back(clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, buffer.bytes.size(),
                                             (void *)buffer.bytes.data(), &code));
            check(code, "clCreateBuffer");
        }
        for (const Launch &launch : c.launches) {
            // A kernel object holds its arguments: each launch has its own.
            cl_kernel kernel = clCreateKernel(program, launch.kernel.c_str(), &code);
            check(code, "clCreateKernel");
            const size_t block[3] = {launch.block.x, launch.block.y, launch.block.z};
            ready_.push_back({kernel,
                              {launch.grid.x * block[0], launch.grid.y * block[1], launch.grid.z * block[2]},
                              {block[0], block[1], block[2]}});
            for (size_t i = 0; i < launch.arguments.size(); i++) {
                const Argument &argument = launch.arguments[i];
                if (argument.buffer >= 0)
                    check(clSetKernelArg(kernel, cl_uint(i), sizeof(cl_mem), &memory_[size_t(argument.buffer)]), "clSetKernelArg");
                else
                    check(clSetKernelArg(kernel, cl_uint(i), argument.size, argument.value), "clSetKernelArg");
            }
        }
    }
    ~OpenclCase() override {
        for (cl_mem memory : memory_) clReleaseMemObject(memory);
        for (Ready &launch : ready_) clReleaseKernel(launch.kernel);
    }
    void start() override {
        for (Ready &launch : ready_)
            check(clEnqueueNDRangeKernel(queue_, launch.kernel, 3, nullptr, launch.global, launch.local, 0, nullptr, nullptr),
                  "clEnqueueNDRangeKernel");
    }
    void finish() override { check(clFinish(queue_), "clFinish"); }
    void read(int index, std::vector<unsigned char> &bytes) override {
        check(clEnqueueReadBuffer(queue_, memory_[size_t(index)], CL_TRUE, 0, bytes.size(), bytes.data(), 0, nullptr, nullptr),
              "clEnqueueReadBuffer");
    }

private:
    struct Ready {
        cl_kernel kernel;
        size_t global[3], local[3];
    };
    cl_command_queue queue_;
    std::vector<cl_mem> memory_;
    std::vector<Ready> ready_;
};

class OpenclWorker : public Worker {
public:
    OpenclWorker() {
        check(clGetPlatformIDs(1, &platform_, nullptr), "clGetPlatformIDs");
        check(clGetDeviceIDs(platform_, CL_DEVICE_TYPE_CPU, 1, &device_, nullptr), "clGetDeviceIDs");
        cl_int code;
        context_ = clCreateContext(nullptr, 1, &device_, nullptr, nullptr, &code);
        check(code, "clCreateContext");
        queue_ = clCreateCommandQueue(context_, device_, 0, &code);
        check(code, "clCreateCommandQueue");
    }

    std::unique_ptr<Prepared> prepare(const Located &located, const Case &c, bool) override {
        if (c.launches.empty()) return nullptr;
        const auto found = programs_.find(located.folder);
        if (found != programs_.end()) return std::make_unique<OpenclCase>(c, context_, queue_, found->second);
        const std::string source = read_text(located.path + "/kernel.cl");
        const char *text = source.c_str();
        cl_int code;
        cl_program program = clCreateProgramWithSource(context_, 1, &text, nullptr, &code);
        check(code, "clCreateProgramWithSource");
        if (clBuildProgram(program, 1, &device_, "", nullptr, nullptr) != CL_SUCCESS) {
            std::vector<char> log(1 << 16);
            clGetProgramBuildInfo(program, device_, CL_PROGRAM_BUILD_LOG, log.size() - 1, log.data(), nullptr);
            fprintf(stderr, "%s\n", log.data());
            throw std::runtime_error("clBuildProgram failed");
        }
        programs_[located.folder] = program;
        return std::make_unique<OpenclCase>(c, context_, queue_, program);
    }

    std::unique_ptr<Prepared> operation(const std::string &kind, size_t bytes) override {
        const auto queue = queue_;
        const auto wait = [=] { check(clFinish(queue), "clFinish"); };
        if (kind == "alloc") {
            const auto context = context_;
            return std::make_unique<Operation>([=] { clReleaseMemObject(allocate(context, bytes)); }, wait);
        }
        const cl_mem to = allocate(context_, bytes), from = allocate(context_, bytes);
        auto host = std::make_shared<std::vector<unsigned char>>(bytes, 1);
        check(clEnqueueWriteBuffer(queue, from, CL_TRUE, 0, bytes, host->data(), 0, nullptr, nullptr), "clEnqueueWriteBuffer");
        if (kind == "h2d")
            return std::make_unique<Operation>(
                [=] { check(clEnqueueWriteBuffer(queue, to, CL_TRUE, 0, bytes, host->data(), 0, nullptr, nullptr), "clEnqueueWriteBuffer"); }, wait);
        if (kind == "d2h")
            return std::make_unique<Operation>(
                [=] { check(clEnqueueReadBuffer(queue, from, CL_TRUE, 0, bytes, host->data(), 0, nullptr, nullptr), "clEnqueueReadBuffer"); }, wait);
        if (kind == "d2d")
            return std::make_unique<Operation>(
                [=] { check(clEnqueueCopyBuffer(queue, from, to, 0, 0, bytes, 0, nullptr, nullptr), "clEnqueueCopyBuffer"); }, wait);
        if (kind == "memset")
            return std::make_unique<Operation>(
                [=] {
                    const cl_uchar value = 3;
                    check(clEnqueueFillBuffer(queue, to, &value, 1, 0, bytes, 0, nullptr, nullptr), "clEnqueueFillBuffer");
                },
                wait);
        return nullptr;
    }

private:
    static cl_mem allocate(cl_context context, size_t bytes) {
        cl_int code;
        cl_mem memory = clCreateBuffer(context, CL_MEM_READ_WRITE, bytes, nullptr, &code);
        check(code, "clCreateBuffer");
        return memory;
    }

    cl_platform_id platform_;
    cl_device_id device_;
    cl_context context_;
    cl_command_queue queue_;
    std::map<std::string, cl_program> programs_;
};

int main(int count, char **arguments) {
    return run_worker([] { return std::make_unique<OpenclWorker>(); }, count, arguments);
}
