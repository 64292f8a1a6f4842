// The cases on the first CPU device of the first OpenCL platform: `opencl KERNELS.cl`. Which platform that is, the
// environment decides (OCL_ICD_VENDORS).

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <fstream>
#include <sstream>

#include "worker.h"

static void check(cl_int code, const char *what) {
    if (code != CL_SUCCESS) throw std::runtime_error(std::string(what) + ": " + std::to_string(code));
}

class OpenclCase : public Prepared {
public:
    OpenclCase(const Case &c, cl_context context, cl_command_queue queue, cl_program program) : case_(c), queue_(queue) {
        cl_int code;
        kernel_ = clCreateKernel(program, c.kernel.c_str(), &code);
        check(code, "clCreateKernel");
        for (const std::vector<float> &values : c.buffers) {
            size_t bytes = values.size() * sizeof(float);
            memory_.push_back(clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, bytes,
                                             (void *)values.data(), &code));
            check(code, "clCreateBuffer");
        }
        for (size_t i = 0; i < c.arguments.size(); i++) {
            const Argument &argument = c.arguments[i];
            if (argument.kind == Argument::buffer)
                check(clSetKernelArg(kernel_, cl_uint(i), sizeof(cl_mem), &memory_[argument.i]), "clSetKernelArg");
            else if (argument.kind == Argument::integer)
                check(clSetKernelArg(kernel_, cl_uint(i), sizeof(int), &argument.i), "clSetKernelArg");
            else
                check(clSetKernelArg(kernel_, cl_uint(i), sizeof(float), &argument.f), "clSetKernelArg");
        }
    }
    ~OpenclCase() override {
        for (cl_mem memory : memory_) clReleaseMemObject(memory);
        clReleaseKernel(kernel_);
    }
    void start() override {
        size_t local[2] = {case_.block[0], case_.block[1]};
        size_t global[2] = {case_.grid[0] * local[0], case_.grid[1] * local[1]};
        check(clEnqueueNDRangeKernel(queue_, kernel_, 2, nullptr, global, local, 0, nullptr, nullptr),
              "clEnqueueNDRangeKernel");
    }
    void finish() override { check(clFinish(queue_), "clFinish"); }
    std::vector<std::vector<float>> buffers() override {
        std::vector<std::vector<float>> all = case_.buffers;
        for (size_t i = 0; i < all.size(); i++)
            check(clEnqueueReadBuffer(queue_, memory_[i], CL_TRUE, 0, all[i].size() * sizeof(float), all[i].data(), 0,
                                      nullptr, nullptr),
                  "clEnqueueReadBuffer");
        return all;
    }

private:
    Case case_;
    cl_command_queue queue_;
    cl_kernel kernel_;
    std::vector<cl_mem> memory_;
};

int main(int argc, char **argv) {
    try {
        if (argc != 2) throw std::runtime_error("usage: opencl KERNELS.cl");
        std::ifstream file(argv[1]);
        std::stringstream text;
        text << file.rdbuf();
        std::string source = text.str();
        const char *lines = source.c_str();
        cl_platform_id platform;
        cl_device_id device;
        check(clGetPlatformIDs(1, &platform, nullptr), "clGetPlatformIDs");
        check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_CPU, 1, &device, nullptr), "clGetDeviceIDs");
        char name[256] = "";
        clGetPlatformInfo(platform, CL_PLATFORM_VERSION, sizeof name, name, nullptr);
        fprintf(stderr, "OpenCL platform: %s\n", name);
        cl_int code;
        cl_context context = clCreateContext(nullptr, 1, &device, nullptr, nullptr, &code);
        check(code, "clCreateContext");
        cl_command_queue queue = clCreateCommandQueue(context, device, 0, &code);
        check(code, "clCreateCommandQueue");
        cl_program program = clCreateProgramWithSource(context, 1, &lines, nullptr, &code);
        check(code, "clCreateProgramWithSource");
        check(clBuildProgram(program, 1, &device, "", nullptr, nullptr), "clBuildProgram");
        return serve([&](const Case &c) { return std::make_unique<OpenclCase>(c, context, queue, program); });
    } catch (const std::exception &error) {
        fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
