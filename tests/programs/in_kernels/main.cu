// What kernels may do besides computing: print, assert, allocate, call themselves.
//
// Each part runs in a process of its own: their output is looked at, and limits and failures stay in a process.

#undef NDEBUG
#include <assert.h>
#include <sys/wait.h>

#include <functional>
#include <vector>

#include "example.h"

// What a child printed and how it ended.
struct Ended {
    int status;
    std::string out, err;
};

std::string read_all(FILE *file) {
    std::string text;
    char piece[4096];
    rewind(file);
    for (size_t n; (n = fread(piece, 1, sizeof piece, file)) > 0;) text.append(piece, n);
    return text;
}

Ended in_child(const std::function<void()> &work) {
    FILE *out = tmpfile(), *err = tmpfile();
    REQUIRE(out && err, "tmpfile");
    fflush(stdout);
    const pid_t child = fork();
    REQUIRE(child >= 0, "fork");
    if (child == 0) {
        dup2(fileno(out), 1);
        dup2(fileno(err), 2);
        work();
        fflush(stdout);
        _exit(0);
    }
    Ended ended;
    REQUIRE(waitpid(child, &ended.status, 0) == child, "waitpid");
    ended.out = read_all(out), ended.err = read_all(err);
    fclose(out), fclose(err);
    return ended;
}

Ended must_succeed(const char *name, const std::function<void()> &work) {
    const Ended ended = in_child(work);
    REQUIRE(WIFEXITED(ended.status) && WEXITSTATUS(ended.status) == 0, "%s: status %#x: %s%s", name, ended.status,
            ended.out.c_str(), ended.err.c_str());
    return ended;
}

int count_of(const std::string &text, const std::string &part) {
    int count = 0;
    for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) count++;
    return count;
}

// How much has come out of this process so far.
size_t written() {
    fflush(stdout);
    return size_t(lseek(1, 0, SEEK_END));
}

// ---- printf

struct Point {
    double x;
    short y;
};

__global__ void formats(int *returned) {
    returned[0] = printf("signs [%d|%i|%+d|% d|%05d|%-6d|%6d]\n", -5, 6, 7, 8, -42, 42, 42);
    returned[1] = printf("bases [%u|%x|%X|%o|%#x|%#o]\n", 4294967295u, 48879, 48879, 8, 255, 8);
    printf("sizes [%hhd|%hd|%ld|%lld|%lu|%hhu|%llx]\n", 300, 70000, -3l, -1234567890123ll, size_t(99), 511, ~0ull);
    printf("reals [%f|%.3f|%9.2f|%-9.1f|%+e|%g|%G|%a]\n", 1.5, 2.0 / 3, 3.14159, 2.25, 12345.678, 1e-5, 1e20, 1.0);
    printf("texts [%s|%8s|%-8s|%.2s|%c%c|%%|%s]\n", "one", "right", "left", "cut", 'o', 'k', (const char *)nullptr);
    printf("stars [%*d|%-*d|%*d]\n", 6, 12, 4, 3, -5, 9);
    printf("odd [%y] %");
    returned[2] = printf("\nplain\n");
    returned[3] = printf("");
    const Point point{0.25, -3};
    printf("mixed %d %f %hd %lld %c\n", 1, point.x, point.y, 4ll, 'c');
    returned[4] = printf("%p\n", (void *)0x1234);
}

void check_formats() {
    const Ended ended = must_succeed("formats", [] {
        int *returned;
        CUDA_CHECK(cudaMallocManaged(&returned, 64));
        formats<<<1, 1>>>(returned);
        CUDA_CHECK(cudaDeviceSynchronize());
        REQUIRE(returned[0] == 7 && returned[1] == 6 && returned[2] == 0 && returned[3] == 0 && returned[4] == 1,
                "returned %d %d %d %d %d", returned[0], returned[1], returned[2], returned[3], returned[4]);
    });
    char want[2048], *w = want;
    w += sprintf(w, "signs [%d|%i|%+d|% d|%05d|%-6d|%6d]\n", -5, 6, 7, 8, -42, 42, 42);
    w += sprintf(w, "bases [%u|%x|%X|%o|%#x|%#o]\n", 4294967295u, 48879, 48879, 8, 255, 8);
    w += sprintf(w, "sizes [44|4464|-3|-1234567890123|99|255|%llx]\n", ~0ull);
    w += sprintf(w, "reals [%f|%.3f|%9.2f|%-9.1f|%+e|%g|%G|%a]\n", 1.5, 2.0 / 3, 3.14159, 2.25, 12345.678, 1e-5, 1e20, 1.0);
    w += sprintf(w, "texts [%s|%8s|%-8s|%.2s|%c%c|%%|(null)]\n", "one", "right", "left", "cut", 'o', 'k');
    w += sprintf(w, "stars [%*d|%-*d|%*d]\n", 6, 12, 4, 3, -5, 9);
    w += sprintf(w, "odd [%%y] %%\nplain\nmixed 1 0.250000 -3 4 c\n0x1234\n");
    REQUIRE(ended.out == want, "printed\n%swanted\n%s", ended.out.c_str(), want);
}

__global__ void numbered(int lines) {
    for (int line = 0; line < lines; line++) printf("line %d of thread %d\n", line, int(threadIdx.x));
}

// Each thread's lines are in order, whole, and all there.
void check_order() {
    const Ended ended = must_succeed("order", [] {
        numbered<<<1, 64>>>(20);
        CUDA_CHECK(cudaDeviceSynchronize());
    });
    std::vector<int> next(64);
    std::istringstream lines(ended.out);
    int total = 0;
    for (std::string text; std::getline(lines, text); total++) {
        int line, thread;
        REQUIRE(sscanf(text.c_str(), "line %d of thread %d", &line, &thread) == 2, "[%s]", text.c_str());
        REQUIRE(thread >= 0 && thread < 64 && line == next[thread]++, "[%s]", text.c_str());
    }
    REQUIRE(total == 64 * 20, "%d lines", total);
}

// A full buffer loses the oldest lines; the others are whole and in order.
void check_limit() {
    const int lines = 60000;
    const Ended ended = must_succeed("limit", [] {
        CUDA_CHECK(cudaDeviceSetLimit(cudaLimitPrintfFifoSize, 1 << 16));
        numbered<<<1, 1>>>(lines);
        CUDA_CHECK(cudaDeviceSynchronize());
        REQUIRE(cudaDeviceSetLimit(cudaLimitPrintfFifoSize, 1 << 21) == cudaErrorInvalidValue,
                "the buffer is in use");
    });
    std::istringstream printed(ended.out);
    int first = -1, next = -1;
    for (std::string text; std::getline(printed, text); next++) {
        int line, thread;
        REQUIRE(sscanf(text.c_str(), "line %d of thread %d", &line, &thread) == 2, "[%s]", text.c_str());
        if (first < 0) first = next = line;
        REQUIRE(line == next, "line %d after %d", line, next);
    }
    REQUIRE(first > 0 && next == lines, "lines %d to %d", first, next);
}

__global__ void say() { printf("said\n"); }
__global__ void nothing() {}

// Output appears where the manual says, and not before.
void check_flush(const char *name, const std::function<void()> &point) {
    const Ended ended = must_succeed(name, [&] {
        nothing<<<1, 1>>>();
        CUDA_CHECK(cudaDeviceSynchronize());
        say<<<1, 1>>>();
        while (cudaStreamQuery(0) == cudaErrorNotReady) usleep(100);
        // Where launches block, they write out at their end.
        const char *blocking = getenv("CUDA_LAUNCH_BLOCKING");
        if (!blocking || *blocking == '0') REQUIRE(written() == 0, "%s: written before", name);
        point();
        REQUIRE(written() == 5, "%s: not written", name);
    });
    REQUIRE(ended.out == "said\n", "%s: %s", name, ended.out.c_str());
}

__device__ int word;

void check_flush_points() {
    check_flush("device", [] { CUDA_CHECK(cudaDeviceSynchronize()); });
    check_flush("stream", [] { CUDA_CHECK(cudaStreamSynchronize(0)); });
    check_flush("event", [] {
        cudaEvent_t event;
        CUDA_CHECK(cudaEventCreate(&event));
        CUDA_CHECK(cudaEventRecord(event));
        CUDA_CHECK(cudaEventSynchronize(event));
    });
    check_flush("copy", [] {
        int value = 1;
        CUDA_CHECK(cudaMemcpyToSymbol(word, &value, sizeof value));
    });
    check_flush("launch", [] { nothing<<<1, 1>>>(); });
    check_flush("callback", [] {
        static volatile bool called;
        auto callback = [](cudaStream_t, cudaError_t, void *) { called = true; };
        CUDA_CHECK(cudaStreamAddCallback(0, callback, nullptr, 0));
        while (!called) usleep(100);
    });
    check_flush("reset", [] { CUDA_CHECK(cudaDeviceReset()); });
}

// ---- assert

__global__ void below(int limit) {
    printf("thread %d checks\n", int(threadIdx.x));
    assert(int(threadIdx.x) < limit && "thread too high");
}

void check_assertions() {
    const Ended ended = must_succeed("assert", [] {
        below<<<1, 32>>>(32);
        CUDA_CHECK(cudaDeviceSynchronize());
        below<<<dim3(1, 1, 1), dim3(8, 4, 1)>>>(5);
        REQUIRE(cudaDeviceSynchronize() == cudaErrorAssert, "no assertion");
        int *p;
        REQUIRE(cudaMalloc(&p, 4) == cudaErrorAssert, "the context works again");
    });
    REQUIRE(count_of(ended.out, " checks\n") == 64, "printed %d lines", count_of(ended.out, " checks\n"));
    const std::string told = "Assertion `int(threadIdx.x) < limit && \"thread too high\"` failed.\n";
    REQUIRE(count_of(ended.err, told) == 12, "%s", ended.err.c_str());
    for (const char *part : {"main.cu:", ": void below(int): block: [0,0,0], thread: [5,0,0] ", "thread: [7,3,0] "})
        REQUIRE(count_of(ended.err, part) > 0, "no %s in %s", part, ended.err.c_str());
    REQUIRE(count_of(ended.err, "thread: [4,") == 0, "%s", ended.err.c_str());
}

// ---- malloc

__device__ char *kept[64];

__global__ void allocate(int *wrong, size_t size) {
    char *p = (char *)malloc(size);
    if (p == nullptr || size_t(p) % 16 != 0) atomicAdd(wrong, 1);
    for (size_t i = 0; p && i < size; i++) p[i] = char(threadIdx.x + i);
    kept[threadIdx.x] = p;
}

__global__ void check_and_free(int *wrong, size_t size) {
    char *p = kept[threadIdx.x];
    for (size_t i = 0; i < size; i++)
        if (p[i] != char(threadIdx.x + i)) atomicAdd(wrong, 1);
    free(p);
    free(nullptr);
}

__global__ void exhaust(int *counts) {
    void *first = nullptr;
    for (int i = 0; i < 1000; i++) {
        void **p = (void **)malloc(100000);
        if (p == nullptr) break;
        *p = first, first = p;
        counts[0]++;
    }
    counts[1] = malloc(100000) == nullptr;
    while (first) {
        void *next = *(void **)first;
        free(first);
        first = next;
    }
    // All is there again, in one piece.
    void *most = malloc(size_t(counts[0]) * 100000);
    counts[2] = most != nullptr;
    free(most);
    counts[3] = malloc(~size_t(0)) == nullptr && malloc(size_t(1) << 40) == nullptr;
}

__global__ void allocate_aligned(int *wrong) {
    for (size_t align = 1; align <= 4096; align *= 2) {
        char *p = (char *)__nv_aligned_device_malloc(100, align);
        if (p == nullptr || size_t(p) % align != 0) atomicAdd(wrong, 1);
        for (int i = 0; p && i < 100; i++) p[i] = char(threadIdx.x + i);
        __syncwarp();
        for (int i = 0; p && i < 100; i++)
            if (p[i] != char(threadIdx.x + i)) atomicAdd(wrong, 1);
        free(p);
    }
    // What is no power of two is no alignment.
    if (__nv_aligned_device_malloc(8, 0) || __nv_aligned_device_malloc(8, 24)) atomicAdd(wrong, 1);
}

__global__ void free_twice(int *) {
    void *p = malloc(64);
    free(p);
    free(p);
}

__global__ void free_inside(int *p) { free(p + 1); }

void check_heap() {
    must_succeed("heap", [] {
        CUDA_CHECK(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 16 << 20));
        int *numbers;
        CUDA_CHECK(cudaMallocManaged(&numbers, 64));
        for (size_t size : {1, 24, 1000}) {
            allocate<<<1, 64>>>(numbers, size);
            check_and_free<<<1, 64>>>(numbers, size);
        }
        allocate_aligned<<<1, 64>>>(numbers);
        CUDA_CHECK(cudaDeviceSynchronize());
        REQUIRE(numbers[0] == 0, "%d mistakes", numbers[0]);
        exhaust<<<1, 1>>>(numbers);
        CUDA_CHECK(cudaDeviceSynchronize());
        // A heap is larger than asked for by a little, and has lists of its own to keep.
        REQUIRE(numbers[0] >= 100 && numbers[0] <= 400, "%d pieces", numbers[0]);
        REQUIRE(numbers[1] && numbers[2] && numbers[3], "%d %d %d", numbers[1], numbers[2], numbers[3]);

        // The host has no use of the heap's memory, and its size stays.
        numbers[0] = 0;
        allocate<<<1, 64>>>(numbers, 256);
        CUDA_CHECK(cudaDeviceSynchronize());
        char *pointers[64], bytes[256];
        CUDA_CHECK(cudaMemcpyFromSymbol(pointers, kept, sizeof pointers));
        for (char *p : pointers) REQUIRE(cudaFree(p) == cudaErrorInvalidValue, "the host frees the heap's memory");
        REQUIRE(cudaMemcpy(bytes, pointers[0], 256, cudaMemcpyDeviceToHost) == cudaErrorInvalidValue,
                "the host copies the heap's memory");
        REQUIRE(cudaMemset(pointers[0], 0, 256) == cudaErrorInvalidValue, "the host sets the heap's memory");
        cudaGetLastError();
        REQUIRE(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 32 << 20) == cudaErrorInvalidValue, "the heap is in use");
        cudaGetLastError();
        check_and_free<<<1, 64>>>(numbers, 256);
        CUDA_CHECK(cudaDeviceSynchronize());
        REQUIRE(numbers[0] == 0, "%d mistakes", numbers[0]);
    });
    // Which code it is, the manual leaves open; that it is one is what matters.
    for (auto kernel : {free_twice, free_inside}) {
        must_succeed("bad free", [=] {
            int *p;
            CUDA_CHECK(cudaMalloc(&p, 64));
            kernel<<<1, 1>>>(p);
            REQUIRE(cudaDeviceSynchronize() != cudaSuccess, "a bad free succeeds");
        });
    }
}

// ---- calls

__device__ __noinline__ unsigned long long ackermann(unsigned long long m, unsigned long long n) {
    if (m == 0) return n + 1;
    return n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1));
}
__device__ __noinline__ int even(int n);
__device__ __noinline__ int odd(int n) { return n == 0 ? 0 : even(n - 1) * 2 + 1; }
__device__ __noinline__ int even(int n) { return n == 0 ? 1 : odd(n - 1) * 2; }
__device__ __noinline__ int with_array(volatile int *seed, int depth) {
    int room[32];
    for (int i = 0; i < 32; i++) room[i] = seed[i % 4] + depth + i;
    if (depth == 0) return room[seed[0] & 31];
    return with_array(seed, depth - 1) + room[(depth + seed[1]) & 31];
}
int with_array_on_host(int depth) {
    int sum = 0;
    for (; depth > 0; depth--) sum += depth + (depth & 31);
    return sum;
}
__global__ void recurse(long long *out, int depth) {
    out[threadIdx.x] = ackermann(2, threadIdx.x % 3) * 1000 + even(int(threadIdx.x) % 9);
    if (threadIdx.x == 0) out[64] = depth;
}
__global__ void deep(int *out, volatile int *seed, int depth) { out[threadIdx.x] = with_array(seed, depth + threadIdx.x % 2); }
// More than the limit, but known beforehand: no matter of the limit.
__global__ void large_frame(int *out, int at) {
    volatile int room[2000];
    for (int i = 0; i < 2000; i++) room[i] = i * 3;
    out[threadIdx.x] = room[at + threadIdx.x];
}
int even_on_host(int n);
int odd_on_host(int n) { return n == 0 ? 0 : even_on_host(n - 1) * 2 + 1; }
int even_on_host(int n) { return n == 0 ? 1 : odd_on_host(n - 1) * 2; }

void check_recursion() {
    must_succeed("recursion", [] {
        long long *out;
        CUDA_CHECK(cudaMallocManaged(&out, 1024));
        recurse<<<1, 64>>>(out, 1);
        CUDA_CHECK(cudaDeviceSynchronize());
        for (int t = 0; t < 64; t++) {
            const long long want = (2 * (t % 3) + 3) * 1000 + even_on_host(t % 9);
            REQUIRE(out[t] == want, "thread %d: %lld, not %lld", t, out[t], want);
        }
        int *numbers = (int *)out;
        large_frame<<<1, 64>>>(numbers, 1900);
        CUDA_CHECK(cudaDeviceSynchronize());
        for (int t = 0; t < 64; t++) REQUIRE(numbers[t] == (1900 + t) * 3, "thread %d: %d", t, numbers[t]);
    });
    // 160 bytes and more for each level: too many for the limit as it is, enough for a higher one.
    for (int limit : {0, 64 << 10}) {
        must_succeed("stack limit", [=] {
            if (limit) CUDA_CHECK(cudaDeviceSetLimit(cudaLimitStackSize, limit));
            int *out, *seed;
            CUDA_CHECK(cudaMallocManaged(&out, 256));
            CUDA_CHECK(cudaMalloc(&seed, 256));
            CUDA_CHECK(cudaMemset(seed, 0, 256));
            deep<<<1, 64>>>(out, seed, 2);
            CUDA_CHECK(cudaDeviceSynchronize());
            deep<<<1, 64>>>(out, seed, 200);
            const cudaError_t code = cudaDeviceSynchronize();
            if (!limit) {
                REQUIRE(code == cudaErrorIllegalAddress, "overflow gives %d", code);
                return;
            }
            REQUIRE(code == cudaSuccess, "code %d with a stack of %d", code, limit);
            for (int t = 0; t < 64; t++)
                REQUIRE(out[t] == with_array_on_host(200 + t % 2), "thread %d: %d", t, out[t]);
        });
    }
}

int main() {
    check_formats();
    check_order();
    check_limit();
    check_flush_points();
    check_assertions();
    check_heap();
    check_recursion();
    succeed("printf, assert, malloc and recursion in kernels");
}
