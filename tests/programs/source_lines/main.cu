// A kernel's failure names the line of the program's source, and the calls that were inlined around it, if nvcc was told to keep
// lines (-lineinfo); also where the processor found the failure rather than the kernel's code.
//
// Each failure is one of a process of its own, whose standard error is looked at.

#undef NDEBUG
#include <assert.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <string>

#include "example.h"

constexpr int inner_line = __LINE__ + 1;
__device__ __forceinline__ int far(const int *p, size_t i) { return p[i << 40]; }
__device__ __forceinline__ int twice(const int *p, size_t i) {
    return 2 * far(p, i);
}
constexpr int twice_line = __LINE__ - 2;
__global__ void inlined(int *p) {
    p[threadIdx.x] = twice(p, threadIdx.x + 1);
}
constexpr int call_line = __LINE__ - 2;

constexpr int misaligned_line = __LINE__ + 3;
__global__ void misaligned(int *p) {
    char *bytes = reinterpret_cast<char *>(p) + threadIdx.x;
    *reinterpret_cast<volatile int *>(bytes) = 1;
}

constexpr int trap_line = __LINE__ + 2;
__global__ void trap(int *p) {
    if (p[threadIdx.x] == 0 && threadIdx.x == 33) __trap();
}

constexpr int assert_line = __LINE__ + 2;
__global__ void fails(int *p) {
    assert(p[threadIdx.x] == int(threadIdx.x));
}

// What a process writes to standard error that launches a kernel and waits for it.
std::string complaint(void (*kernel)(int *)) {
    FILE *file = tmpfile();
    REQUIRE(file, "tmpfile");
    fflush(stdout);
    const pid_t child = fork();
    REQUIRE(child >= 0, "fork");
    if (child == 0) {
        dup2(fileno(file), 2);
        int *p;
        CUDA_CHECK(cudaMalloc(&p, 4096));
        CUDA_CHECK(cudaMemset(p, 0, 4096));
        kernel<<<2, 64>>>(p);
        _exit(cudaDeviceSynchronize() == cudaSuccess);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child, "waitpid");
    REQUIRE(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the process ended with status %#x", status);
    std::string text;
    char piece[4096];
    rewind(file);
    for (size_t n; (n = fread(piece, 1, sizeof piece, file)) > 0;) text.append(piece, n);
    fclose(file);
    return text;
}

void expect(const char *name, void (*kernel)(int *), const std::string &thread, const std::string &place) {
    const std::string said = complaint(kernel);
    REQUIRE(said.find(std::string(name)) != std::string::npos, "no kernel's name: %s", said.c_str());
    REQUIRE(said.find("block (") != std::string::npos, "no block: %s", said.c_str());
    REQUIRE(said.find("thread (" + thread + ")") != std::string::npos, "not thread %s: %s", thread.c_str(), said.c_str());
    REQUIRE(said.find(place) != std::string::npos, "not from %s: %s", place.c_str(), said.c_str());
    printf("%s", said.c_str());
}

int main() {
    unsetenv("ANYWARP_QUIET");
    const auto line = [](int number) { return "source_lines/main.cu:" + std::to_string(number); };
    const std::string around = line(twice_line) + " in _Z5twicePKim, inlined at ";
    const std::string innermost = line(inner_line) + " in _Z3farPKim, inlined at ";
    const std::string said = complaint(inlined);
    REQUIRE(said.find(innermost) != std::string::npos, "not from %s: %s", innermost.c_str(), said.c_str());
    REQUIRE(said.find(around) != std::string::npos, "not from %s: %s", around.c_str(), said.c_str());
    expect("inlined", inlined, "0,0,0", line(call_line));
    expect("misaligned", misaligned, "1,0,0", line(misaligned_line));
    expect("trap", trap, "33,0,0", line(trap_line));
    expect("fails", fails, "1,0,0", line(assert_line));
    succeed("four failures, each with its line");
}
