// Kernels that launch kernels: in every kind of stream, to the deepest level, with what is wrong told to the launching thread.

#include <unistd.h>
#include <sys/wait.h>

#include <functional>
#include <numeric>
#include <vector>

#include "example.h"

template <class T>
struct Managed {
    T *data;
    explicit Managed(size_t count) {
        CUDA_CHECK(cudaMallocManaged(&data, count * sizeof(T)));
        CUDA_CHECK(cudaMemset(data, 0, count * sizeof(T)));
    }
    ~Managed() { cudaFree(data); }
    T &operator[](size_t i) { return data[i]; }
};

void finish() {
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cudaDeviceSynchronize());
}

// ---- order within a stream, and between a grid and what it launches

__global__ void add(int *to, int value) { atomicAdd(to, value); }
// The order in which kernels ran shows in the digits.
__global__ void append(int *to, int digit) { *to = *to * 10 + digit; }

__global__ void in_order(int *to) {
    to += blockIdx.x;
    *to = 0;
    for (int digit = 1; digit <= 8; digit++) append<<<1, 1>>>(to, digit);
}

// Threads of a block share its default stream.
__global__ void by_threads(int *to) {
    if (threadIdx.x % 32 == 5) append<<<1, 1>>>(to, 1);
    __syncthreads();
    if (threadIdx.x == 1) append<<<1, 1>>>(to, 2);
    __syncthreads();
    if (threadIdx.x == 40) append<<<1, 1>>>(to, 3);
}

// A structure and small types as parameters, and dynamic shared memory.
struct Mixed {
    char c;
    double d;
    short s[3];
};
__global__ void mixed(char c, Mixed m, float f, long long l, double *to) {
    extern __shared__ double partial[];
    partial[threadIdx.x] = threadIdx.x * 0.5;
    __syncthreads();
    if (threadIdx.x == 0) {
        double sum = 0;
        for (int i = 0; i < blockDim.x; i++) sum += partial[i];
        *to = sum + c + m.c + m.d + m.s[0] + m.s[1] + m.s[2] + f + double(l);
    }
}
__global__ void launch_mixed(double *to) {
    mixed<<<1, 32, 32 * sizeof(double)>>>(3, Mixed{5, 0.25, {1, -2, 300}}, 1.5f, 1ll << 40, to);
}

// ---- the tail runs when the grid and all else that it launched have ended

__global__ void slow(int *to, int value) {
    for (int i = 0; i < 1000; i++) __nanosleep(100);
    atomicAdd(to, value);
}
__global__ void square(int *of) { *of = *of * *of; }
__global__ void with_tail(int *to) {
    square<<<1, 1, 0, cudaStreamTailLaunch>>>(to);
    if (blockIdx.x == 0) append<<<1, 1, 0, cudaStreamTailLaunch>>>(to, 7);
    slow<<<1, 1, 0, cudaStreamFireAndForget>>>(to, 1);
    slow<<<1, 1>>>(to, 1);
}

// A tail that launches itself until the work is done: a loop without the host.
__global__ void countdown(int *left, int *steps) {
    ++*steps;
    if (--*left > 0) countdown<<<1, 1, 0, cudaStreamTailLaunch>>>(left, steps);
}

// ---- streams and events of a grid

__global__ void streams(int *to, int *codes) {
    cudaStream_t first, second;
    cudaEvent_t done;
    codes[0] = cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking);
    codes[1] = cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking);
    codes[2] = cudaEventCreateWithFlags(&done, cudaEventDisableTiming);
    slow<<<1, 1, 0, first>>>(to, 5);
    codes[3] = cudaEventRecord(done, first);
    codes[4] = cudaStreamWaitEvent(second, done, 0);
    append<<<1, 1, 0, second>>>(to, 9);
    codes[5] = cudaEventDestroy(done);
    codes[6] = cudaStreamDestroy(first);
    codes[7] = cudaStreamDestroy(second);
    codes[8] = cudaGetLastError();
    codes[9] = cudaStreamCreateWithFlags(&first, cudaStreamDefault);
    // No events that measure time.
    codes[10] = cudaEventCreateWithFlags(&done, cudaEventDefault);
    codes[11] = cudaPeekAtLastError();
    codes[12] = cudaGetLastError();
    codes[13] = cudaGetLastError();
}

__global__ void copies(int *to, const int *from, int count, int *codes) {
    cudaStream_t stream;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    codes[0] = cudaMemsetAsync(to, 0x11, count * sizeof(int), stream);
    codes[1] = cudaMemcpyAsync(to, from, count / 2 * sizeof(int), cudaMemcpyDeviceToDevice, stream);
    // Two columns of three rows.
    codes[2] = cudaMemcpy2DAsync(to + count / 2, 16, from, 32, 8, 3, cudaMemcpyDeviceToDevice, stream);
    add<<<1, 1, 0, stream>>>(to, 1000);
    codes[3] = cudaMemcpyAsync(to, from, 4, cudaMemcpyHostToDevice, stream);
    codes[4] = cudaMemcpyAsync(nullptr, from, 4, cudaMemcpyDeviceToDevice, stream);
    codes[5] = cudaMemset2DAsync(to + count / 2, 16, 0x22, 4, 2, stream);
}

// What the heap of kernels holds may be copied and filled by kernels.
__global__ void heap_copies(int **kept, int *to, const int *from, int *codes) {
    int *one = (int *)malloc(64), *other = (int *)malloc(64);
    for (int i = 0; i < 16; i++) one[i] = other[i] = 7;
    codes[0] = cudaMemcpyAsync(one, from, 32, cudaMemcpyDeviceToDevice, 0);
    codes[1] = cudaMemcpyAsync(other + 8, one, 32, cudaMemcpyDeviceToDevice, 0);
    codes[2] = cudaMemsetAsync(one + 8, 0, 16, cudaStreamTailLaunch);
    codes[3] = cudaMemcpy2DAsync(to, 8, other + 6, 8, 4, 4, cudaMemcpyDeviceToDevice, 0);
    int local[4] = {1, 2, 3, 4};
    codes[4] = cudaMemcpyAsync(to, local, 16, cudaMemcpyDeviceToDevice, 0);
    codes[5] = cudaMemsetAsync(local, 0, 16, 0);
    codes[6] = local[threadIdx.x + 3];
    kept[0] = one;
}

__global__ void read_heap(int *const *kept, int *to) {
    for (int i = 0; i < 16; i++) to[i] = kept[0][i];
}

__global__ void copy_too_much(int *to, int *codes) {
    codes[0] = cudaMemcpyAsync(to, to + 4, size_t(1) << 40, cudaMemcpyDeviceToDevice, 0);
}

// ---- what the device tells

__global__ void ask(int *answers) {
    cudaDeviceGetAttribute(&answers[0], cudaDevAttrWarpSize, 0);
    cudaDeviceGetAttribute(&answers[1], cudaDevAttrMaxThreadsPerBlock, 0);
    answers[2] = cudaDeviceGetAttribute(&answers[3], cudaDevAttrWarpSize, 1);
    cudaGetDeviceCount(&answers[3]);
    cudaGetDevice(&answers[4]);
    size_t limit = 0;
    answers[5] = cudaDeviceGetLimit(&limit, cudaLimitMallocHeapSize);
    answers[6] = int(limit >> 10);
    cudaFuncAttributes attributes;
    answers[7] = cudaFuncGetAttributes(&attributes, mixed);
    answers[8] = attributes.maxThreadsPerBlock;
    void *memory = nullptr;
    answers[9] = cudaMalloc(&memory, 64);
    answers[10] = memory != nullptr;
    answers[11] = cudaFree(memory);
    const char *name = cudaGetErrorName(cudaErrorInvalidConfiguration);
    answers[12] = 0;
    for (const char *c = name; *c; c++) answers[12]++;
    cudaOccupancyMaxActiveBlocksPerMultiprocessor(&answers[13], ask, 1024, 0);
}

// ---- what is refused

__global__ void never(int *p) { *p = 1; }
__global__ void refused(int *codes, int *p) {
    never<<<1, 2048>>>(p);
    codes[0] = cudaGetLastError();
    never<<<0, 1>>>(p);
    codes[1] = cudaGetLastError();
    never<<<1, 1, 1 << 20>>>(p);
    codes[2] = cudaGetLastError();
    never<<<1, 1, 0, (cudaStream_t)0x123456789>>>(p);
    codes[3] = cudaGetLastError();
    codes[4] = cudaStreamDestroy((cudaStream_t)0x123456789);
    // Each thread has its own last error.
    cudaGetLastError();
    if (threadIdx.x == 0) never<<<1, 2048>>>(p);
    __syncthreads();
    if (threadIdx.x == 1) codes[5] = cudaGetLastError();
}

// Each level launches the next until the device refuses.
__global__ void deeper(int *levels, int level) {
    *levels = level;
    deeper<<<1, 1>>>(levels, level + 1);
    if (cudaGetLastError() != cudaSuccess) levels[1]++;
}

__global__ void many(int *sum, int count, int *failures) {
    for (int i = 0; i < count; i++) {
        add<<<1, 1, 0, cudaStreamFireAndForget>>>(sum, 1);
        if (int code = cudaGetLastError()) failures[0]++, failures[1] = code;
    }
}

__global__ void bad(int *p) { p[size_t(1) << 40] = 1; }
__global__ void launch_bad(int *p) { bad<<<1, 1>>>(p); }

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
    REQUIRE(waitpid(child, &status, 0) == child && status == 0, "%s: status %#x", name, status);
}

void orders() {
    Managed<int> digits(64);
    in_order<<<64, 1>>>(digits.data);
    finish();
    for (int i = 0; i < 64; i++) REQUIRE(digits[i] == 12345678, "block %d: %d", i, digits[i]);

    digits[0] = 0;
    by_threads<<<1, 64>>>(digits.data);
    finish();
    REQUIRE(digits[0] == 1123, "of threads: %d", digits[0]);

    Managed<double> value(1);
    launch_mixed<<<1, 1>>>(value.data);
    finish();
    const double wanted = 31 * 32 / 4.0 + 3 + 5 + 0.25 + 1 - 2 + 300 + 1.5 + double(1ll << 40);
    REQUIRE(value[0] == wanted, "parameters: %.17g, not %.17g", value[0], wanted);

    // What follows in the host's stream waits for all that the grid launched.
    digits[0] = 0;
    with_tail<<<2, 1>>>(digits.data);
    append<<<1, 1>>>(digits.data, 3);
    finish();
    // 4, squared, squared, with a 7 between or behind.
    const int got = digits[0];
    REQUIRE(got == 25673 || got == 167 * 167 * 10 + 3, "tail: %d", got);

    Managed<int> loop(2);
    loop[0] = 100;
    countdown<<<1, 1>>>(&loop[0], &loop[1]);
    finish();
    REQUIRE(loop[0] == 0 && loop[1] == 100, "loop: %d %d", loop[0], loop[1]);
}

void streams_and_copies() {
    Managed<int> to(1), codes(16);
    streams<<<1, 1>>>(to.data, codes.data);
    finish();
    REQUIRE(to[0] == 59, "behind an event: %d", to[0]);
    for (int i = 0; i < 10; i++) REQUIRE(codes[i] == 0, "stream call %d: %d", i, codes[i]);
    for (int i = 10; i < 13; i++) REQUIRE(codes[i] == cudaErrorInvalidValue, "stream call %d: %d", i, codes[i]);
    REQUIRE(codes[13] == 0, "the error was taken: %d", codes[13]);

    const int count = 32;
    Managed<int> from(count), copied(count);
    for (int i = 0; i < count; i++) from[i] = i + 1;
    copies<<<1, 1>>>(copied.data, from.data, count, codes.data);
    finish();
    for (int i = 0; i < 3; i++) REQUIRE(codes[i] == 0, "copy %d: %d", i, codes[i]);
    REQUIRE(codes[3] == cudaErrorInvalidMemcpyDirection, "from the host: %d", codes[3]);
    REQUIRE(codes[4] == cudaErrorInvalidValue, "to nowhere: %d", codes[4]);
    REQUIRE(codes[5] == 0, "fill: %d", codes[5]);
    std::vector<int> wanted(count, 0x11111111);
    std::iota(wanted.begin(), wanted.begin() + count / 2, 1);
    wanted[0] += 1000;
    for (int row = 0; row < 3; row++)
        for (int column = 0; column < 2; column++)
            wanted[count / 2 + 4 * row + column] = row < 2 && column == 0 ? 0x22222222 : 8 * row + column + 1;
    for (int i = 0; i < count; i++) REQUIRE(copied[i] == wanted[i], "%d: %#x, not %#x", i, copied[i], wanted[i]);
}

void copies_in_the_heap() {
    Managed<int> from(16), to(16), read(16), codes(8);
    int **kept;
    CUDA_CHECK(cudaMallocManaged(&kept, sizeof *kept));
    for (int i = 0; i < 16; i++) from[i] = i + 1;
    heap_copies<<<1, 1>>>(kept, to.data, from.data, codes.data);
    finish();
    for (int i = 0; i < 4; i++) REQUIRE(codes[i] == 0, "call %d: %d", i, codes[i]);
    for (int i = 4; i < 6; i++) REQUIRE(codes[i] == cudaErrorInvalidValue, "local memory %d: %d", i, codes[i]);
    REQUIRE(codes[6] == 4, "local memory was changed: %d", codes[6]);
    const int wanted[] = {7, 0, 1, 0, 3, 0, 5};
    for (int i = 0; i < 7; i++) REQUIRE(to[i] == wanted[i], "%d: %d, not %d", i, to[i], wanted[i]);
    read_heap<<<1, 1>>>(kept, read.data);
    finish();
    for (int i = 0; i < 16; i++) {
        const int left = i < 8 ? i + 1 : i < 12 ? 0 : 7;
        REQUIRE(read[i] == left, "%d: %d, not %d", i, read[i], left);
    }
    int host = 0;
    REQUIRE(cudaMemcpy(&host, kept[0], 4, cudaMemcpyDefault) == cudaErrorInvalidValue, "the host copied from the heap");
}

// It begins and fails when its turn comes; what called it has its answer long before.
void copies_too_large() {
    int *to;
    Managed<int> codes(1);
    codes[0] = -1;
    CUDA_CHECK(cudaMalloc(&to, 4096));
    // With CUDA_LAUNCH_BLOCKING the launch itself waits, and answers what went wrong.
    copy_too_much<<<1, 1>>>(to, codes.data);
    const cudaError_t end = cudaDeviceSynchronize();
    REQUIRE(end == cudaErrorIllegalAddress && codes[0] == 0, "ended with %d, answered %d", int(end), codes[0]);
}

void answers() {
    Managed<int> got(16);
    ask<<<1, 1>>>(got.data);
    finish();
    size_t heap = 0;
    CUDA_CHECK(cudaDeviceGetLimit(&heap, cudaLimitMallocHeapSize));
    int blocks = 0;
    CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, ask, 1024, 0));
    const int wanted[] = {32, 1024, cudaErrorInvalidDevice, 1, 0, 0, int(heap >> 10), 0, 1024, 0, 1, 0, 29, blocks};
    for (int i = 0; i < 14; i++) REQUIRE(got[i] == wanted[i], "answer %d: %d, not %d", i, got[i], wanted[i]);
}

void refusals() {
    Managed<int> codes(8), touched(1);
    refused<<<1, 2>>>(codes.data, touched.data);
    finish();
    for (int i = 0; i < 3; i++) REQUIRE(codes[i] == cudaErrorInvalidConfiguration, "refusal %d: %d", i, codes[i]);
    REQUIRE(codes[3] == cudaErrorInvalidValue, "no stream: %d", codes[3]);
    REQUIRE(codes[4] == cudaErrorInvalidValue, "no stream to destroy: %d", codes[4]);
    REQUIRE(codes[5] == 0, "another thread's error: %d", codes[5]);
    REQUIRE(touched[0] == 0, "a refused launch ran");

    Managed<int> levels(2);
    deeper<<<1, 1>>>(levels.data, 1);
    finish();
    REQUIRE(levels[0] == 2049 && levels[1] == 1, "levels: %d, refused %d", levels[0], levels[1]);
}

int main() {
    in_child("orders", orders);
    in_child("streams", streams_and_copies);
    in_child("copies in the heap", copies_in_the_heap);
    in_child("copies too large", copies_too_large);
    in_child("answers", answers);
    in_child("refusals", refusals);
    in_child("many", [] {
        Managed<int> sum(1), failures(2);
        many<<<4, 32>>>(sum.data, 50, failures.data);
        finish();
        REQUIRE(sum[0] == 4 * 32 * 50 && failures[0] == 0, "many: %d, %d failed", sum[0], failures[0]);
    });
    in_child("a limit", [] {
        CUDA_CHECK(cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, 1));
        size_t limit = 0;
        CUDA_CHECK(cudaDeviceGetLimit(&limit, cudaLimitDevRuntimePendingLaunchCount));
        Managed<int> levels(2), sum(1), failures(2);
        deeper<<<1, 1>>>(levels.data, 1);
        many<<<1, 1>>>(sum.data, 1000, failures.data);
        finish();
        REQUIRE(limit == 32 && levels[0] == 33 && levels[1] == 1, "limit %zu, levels %d", limit, levels[0]);
        REQUIRE(sum[0] == 1000 && failures[0] == 0, "beside each other: %d and %d", sum[0], failures[0]);
    });
    in_child("a fault", [] {
        Managed<int> p(1);
        launch_bad<<<1, 1>>>(p.data);
        const cudaError_t code = cudaDeviceSynchronize();
        REQUIRE(code == cudaErrorIllegalAddress, "a launched kernel's fault: %s", cudaGetErrorName(code));
    });
    succeed("launches from kernels: in order, at the end, nested as deep as the limit, refused where they must be");
}
