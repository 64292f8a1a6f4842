// Several contexts on one device: each thread has a stack of them, and a context can move between threads.

#include <thread>

#include "example.h"

// A context with a module and a counter of its own. Creating one pushes it; this pops it at once.
struct Worker {
    CUcontext context;
    CUmodule module;
    CUfunction advance;

    Worker() {
        CU_CHECK(cuCtxCreate(&context, nullptr, 0, 0));
        CU_CHECK(cuModuleLoad(&module, beside_executable("kernel.ptx").c_str()));
        CU_CHECK(cuModuleGetFunction(&advance, module, "advance"));
        CU_CHECK(cuCtxPopCurrent(nullptr));
    }

    // Works in whatever context is current: the caller pushes this one's.
    int step(int by) {
        void *arguments[] = {&by};
        CU_CHECK(cuLaunchKernel(advance, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr));
        CUdeviceptr counter;
        size_t size;
        CU_CHECK(cuModuleGetGlobal(&counter, &size, module, "counter"));
        int value;
        REQUIRE(size == sizeof value, "the counter has %zu bytes", size);
        CU_CHECK(cuMemcpyDtoH(&value, counter, size));
        return value;
    }
};

CUcontext current() {
    CUcontext context;
    CU_CHECK(cuCtxGetCurrent(&context));
    return context;
}

int main() {
    CU_CHECK(cuInit(0));
    Worker a, b;
    REQUIRE(!current(), "a popped context is still current");

    // The stack: the one pushed last is current, and popping brings the other back.
    CU_CHECK(cuCtxPushCurrent(a.context));
    CU_CHECK(cuCtxPushCurrent(b.context));
    REQUIRE(b.step(1) == 101, "context b");
    CUcontext popped;
    CU_CHECK(cuCtxPopCurrent(&popped));
    REQUIRE(popped == b.context && current() == a.context, "the stack is out of order");
    REQUIRE(a.step(10) == 110, "context a counts by itself");

    // cuCtxSetCurrent replaces the top of the stack.
    CU_CHECK(cuCtxSetCurrent(b.context));
    REQUIRE(b.step(1) == 102, "context b, set");
    CU_CHECK(cuCtxPopCurrent(nullptr));
    REQUIRE(!current(), "the stack should be empty");

    // Another thread starts with an empty stack, takes a context, uses it, and leaves it for the next.
    int from_thread = 0;
    std::thread([&] {
        REQUIRE(!current(), "a new thread has a context");
        CU_CHECK(cuCtxPushCurrent(a.context));
        from_thread = a.step(10);
        CU_CHECK(cuCtxPopCurrent(nullptr));
    }).join();
    REQUIRE(from_thread == 120, "context a, moved: %d", from_thread);

    // A context may be current in several threads at once.
    std::thread threads[4];
    for (std::thread &thread : threads)
        thread = std::thread([&] {
            CU_CHECK(cuCtxSetCurrent(b.context));
            int by = 1;
            void *arguments[] = {&by};
            for (int i = 0; i < 25; i++)
                CU_CHECK(cuLaunchKernel(b.advance, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr));
            CU_CHECK(cuCtxSynchronize());
        });
    for (std::thread &thread : threads) thread.join();
    CU_CHECK(cuCtxPushCurrent(b.context));
    REQUIRE(b.step(0) == 202, "four threads of 25 launches, one after another on one stream");

    // Destroying the current context takes it off the stack too; the other one lives on.
    CU_CHECK(cuCtxDestroy(b.context));
    REQUIRE(!current(), "a destroyed context is still current");
    CU_CHECK(cuCtxPushCurrent(a.context));
    REQUIRE(a.step(0) == 120, "context a after b's end");
    CU_CHECK(cuCtxDestroy(a.context));
    succeed("two contexts, six threads, each counter as expected");
}
