// A program with a runtime of its own, linked with another Rust library, that opens plug-ins with theirs: every copy of
// the runtime works on the one device.
//
//   main PLUG-IN...

#include <dlfcn.h>

#include <vector>

#include "example.h"
#include "plugin.h"

extern "C" int rust_part(int number);

__global__ void fill(int *values, int first) { values[threadIdx.x] = first + threadIdx.x; }

// The file that an address belongs to.
static std::string file_of(const void *address) {
    Dl_info info = {};
    REQUIRE(dladdr(address, &info) && info.dli_fname, "no file has %p", address);
    char path[PATH_MAX] = {};
    REQUIRE(realpath(info.dli_fname, path), "%s is no file", info.dli_fname);
    return path;
}

static std::vector<int> read(const int *device) {
    std::vector<int> values(COUNT);
    CUDA_CHECK(cudaMemcpy(values.data(), device, COUNT * sizeof(int), cudaMemcpyDeviceToHost));
    return values;
}

static void use(const char *path, int *values) {
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    REQUIRE(library, "%s", dlerror());
    auto work = reinterpret_cast<decltype(&plugin_work)>(dlsym(library, "plugin_work"));
    REQUIRE(work, "%s", dlerror());
    fill<<<1, COUNT>>>(values, 100);
    PluginAnswer answer = {};
    const char *failure = work(values, &answer);
    REQUIRE(!failure, "%s: %s", path, failure);
    REQUIRE(answer.runtime != reinterpret_cast<const void *>(&cudaRuntimeGetVersion), "%s has no runtime of its own", path);
    // What the plug-in's kernel wrote to our memory, and what it allocated.
    auto doubled = read(values), made = read(answer.made);
    for (int i = 0; i < COUNT; i++) {
        REQUIRE(doubled[i] == 2 * (100 + i), "%s: element %d is %d", path, i, doubled[i]);
        REQUIRE(made[i] == 7, "%s: element %d made there is %d", path, i, made[i]);
    }
    CUDA_CHECK(cudaFree(answer.made));
    printf("%s: runtime %d in %s\n", path, answer.version, file_of(answer.runtime).c_str());
    dlclose(library);
}

int main(int count, char **arguments) {
    const std::string ours = file_of(reinterpret_cast<const void *>(&cudaRuntimeGetVersion));
    REQUIRE(ours == file_of(reinterpret_cast<const void *>(&main)), "the program's runtime is in %s", ours.c_str());
    REQUIRE(rust_part(20) == 210, "the other Rust library has gone wrong");
    int *values = nullptr;
    CUDA_CHECK(cudaMalloc(&values, COUNT * sizeof(int)));
    for (int i = 1; i < count; i++) use(arguments[i], values);
    // With the plug-ins gone, ours goes on.
    fill<<<1, COUNT>>>(values, 5);
    CUDA_CHECK(cudaGetLastError());
    REQUIRE(read(values)[3] == 8, "our own kernel no longer works");
    CUDA_CHECK(cudaFree(values));
    REQUIRE(rust_part(3) == 6, "the other Rust library has gone wrong");
    succeed("%d runtimes and another Rust library in one process", count);
}
