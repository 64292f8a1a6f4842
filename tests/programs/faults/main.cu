// A kernel that fails ends with a code that stays in its context; the process lives on.
//
// Each fault runs in a process of its own, since on other implementations the first one spoils all contexts.

#include <assert.h>
#include <sys/wait.h>

#include <functional>

#include "example.h"

__global__ void write_far(int *p) { p[size_t(1) << 40] = 1; }
__global__ void write_null(int *p) { *(volatile int *)(p - p) = 1; }
__global__ void read_misaligned(int *p, char *raw) { *p = *(volatile int *)(raw + threadIdx.x + 1); }
__global__ void trap(int *p) {
    if (p[threadIdx.x] == 0 && threadIdx.x == 17) __trap();
}
__global__ void fail_assertion(int *p) {
    if (threadIdx.x == 3)
        asm volatile("{ .reg .pred p; setp.ne.u32 p, %0, %0; @!p trap; }" ::"r"(p[0]));
}
__device__ int recurse(volatile int *p, int depth) {
    int room[64];
    for (int i = 0; i < 64; i++) room[i] = p[i % 4] + depth;
    return depth < 0 ? room[depth & 63] : recurse(p, depth + 1) + room[(depth * 7) & 63];
}
__global__ void overflow_stack(int *p) { p[0] = recurse(p, p[1]); }
// All blocks wait for the last one.
__global__ void wait_for_the_failed(volatile int *p) {
    if (blockIdx.x == gridDim.x - 1) __trap();
    while (*p == 0) {
    }
}
// A thread waits for another of its warp, which has trapped before it comes to the loop, or in it.
__global__ void wait_for_a_lane(int *p, int lane, int rounds) {
    if (rounds == 0 && threadIdx.x == lane) __trap();
    for (int i = 0; atomicAdd(p, 0) == 0; i++)
        if (i == rounds && threadIdx.x == lane) __trap();
}
__global__ void assert_before_a_wait(int *p, int limit) {
    assert(int(threadIdx.x) < limit);
    while (atomicAdd(p, 0) == 0) {
    }
}
// A text that is not there, and one that is null, which is none.
__global__ void print(const char *text) { printf("%s\n", text); }
__global__ void good(int *p) { p[threadIdx.x] = int(threadIdx.x); }

// A child that must end with status 0; what it prints goes on.
void in_child(const char *name, const std::function<void()> &work) {
    fflush(stdout);
    const pid_t child = fork();
    REQUIRE(child >= 0, "fork");
    if (child == 0) {
        work();
        fflush(stdout);
        _exit(0);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child, "waitpid");
    REQUIRE(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s: the process ended with status %#x", name, status);
}

template <class Launch>
void expect(const char *name, cudaError_t wanted, Launch launch) {
    in_child(name, [&] {
        int *p;
        CUDA_CHECK(cudaMalloc(&p, 4096));
        CUDA_CHECK(cudaMemset(p, 0, 4096));
        good<<<1, 32>>>(p);
        CUDA_CHECK(cudaDeviceSynchronize());
        launch(p);
        // Where launches block, the launch itself tells; its code stays just as well.
        const cudaError_t code = cudaDeviceSynchronize();
        REQUIRE(code == wanted, "%s: code %d, not %d", name, code, wanted);
        // The code stays, for everything that needs the context.
        REQUIRE(cudaMemset(p, 0, 16) == wanted, "%s: the context works again", name);
        int *q;
        REQUIRE(cudaMalloc(&q, 16) == wanted, "%s: memory from a failed context", name);
        // What needs no context works.
        int count = 0;
        CUDA_CHECK(cudaGetDeviceCount(&count));
        REQUIRE(count > 0, "%s: no device", name);
        printf("%-30s %s\n", name, cudaGetErrorName(wanted));
    });
}

int main() {
    expect("a far address", cudaErrorIllegalAddress, [](int *p) { write_far<<<4, 64>>>(p); });
    expect("the null address", cudaErrorIllegalAddress, [](int *p) { write_null<<<1, 32>>>(p); });
    expect("a text that is not there", cudaErrorIllegalAddress,
           [](int *p) { print<<<1, 1>>>(reinterpret_cast<const char *>(1)); });
    expect("a misaligned address", cudaErrorMisalignedAddress,
           [](int *p) { read_misaligned<<<1, 4>>>(p, (char *)p); });
    expect("a trap", cudaErrorLaunchFailure, [](int *p) {
        cudaMemset(p, 0, 4096);
        trap<<<2, 64>>>(p);
    });
    expect("a trap in asm", cudaErrorLaunchFailure, [](int *p) { fail_assertion<<<1, 32>>>(p); });
    expect("an endless recursion", cudaErrorIllegalAddress, [](int *p) { overflow_stack<<<1, 32>>>(p); });
    expect("a trap that others wait for", cudaErrorLaunchFailure, [](int *p) {
        cudaMemset(p, 0, 4096);
        wait_for_the_failed<<<2, 64>>>(p);
    });
    for (const int rounds : {0, 3})
        for (const int lane : {0, 13, 63})
            expect("a trap that lanes wait for", cudaErrorLaunchFailure, [=](int *p) {
                cudaMemset(p, 0, 4096);
                wait_for_a_lane<<<1, 64>>>(p, lane, rounds);
            });
    for (const int limit : {0, 50})
        expect("an assertion before a wait", cudaErrorAssert, [=](int *p) {
            cudaMemset(p, 0, 4096);
            assert_before_a_wait<<<1, 64>>>(p, limit);
        });
    succeed("ten faults, ten codes, no process died");
}
