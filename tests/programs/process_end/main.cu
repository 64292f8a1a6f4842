// The many ways in which a process ends while the library is in use: none may crash or hang. What runs after main works if it was there after
// the first call, and is told that the driver shuts down if it was there before, as handlers and destructors run in the reverse of their order.
// Each is a process of its own: this program, started again with the way's name.

#include <cuda_runtime.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/wait.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "example.h"

__global__ void bump(unsigned *data) { atomicAdd(data, 1u); }

__global__ void wait_for_host(volatile unsigned *flag) {
    while (*flag == 0) {}
}

void CUDART_CB note(void *ended) { *static_cast<bool *>(ended) = true; }

// Whole work: allocates, launches and looks at the result, and ends an object. Says so where it fails, and ends the process at once.
void work(const char *where) {
    unsigned *data = nullptr, found = 0;
    bool ended = false;
    cudaUserObject_t object;
    cudaError_t code = cudaMalloc(&data, sizeof *data);
    if (!code) code = cudaMemset(data, 0, sizeof *data);
    if (!code) {
        bump<<<2, 32>>>(data);
        code = cudaGetLastError();
    }
    if (!code) code = cudaMemcpy(&found, data, sizeof found, cudaMemcpyDeviceToHost);
    // The thread's own stream, too.
    if (!code) code = cudaMemsetAsync(data, 0, sizeof *data, cudaStreamPerThread);
    if (!code) code = cudaStreamSynchronize(cudaStreamPerThread);
    if (!code) code = cudaFree(data);
    if (!code) code = cudaUserObjectCreate(&object, &ended, note, 1, cudaUserObjectNoDestructorSync);
    if (!code) code = cudaUserObjectRelease(object, 1);
    if (code || found != 64 || !ended) {
        printf("%s: code %d, %u instead of 64, object %s\n", where, code, found, ended ? "ended" : "there");
        fflush(stdout);
        _exit(3);
    }
    printf("%s\n", where);
    fflush(stdout);
}

// A kernel that never ends by itself.
void start_endless_kernel() {
    unsigned *flag = nullptr;
    CUDA_CHECK(cudaHostAlloc(&flag, sizeof *flag, cudaHostAllocMapped));
    *flag = 0;
    cudaStream_t stream;
    CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    wait_for_host<<<1, 1, 0, stream>>>(flag);
    CUDA_CHECK(cudaGetLastError());
}

void CUDART_CB sleep_for_ever(void *) {
    for (;;) pause();
}

struct AtEnd {
    const char *where;
    ~AtEnd() { work(where); }
};

// The runtime does nothing more, and says so; what needs no driver still answers.
void after_the_end(const char *where) {
    void *memory = nullptr;
    int count = 0;
    const cudaError_t codes[] = {cudaMalloc(&memory, 4), cudaFree(nullptr), cudaDeviceSynchronize(), cudaSetDevice(0), cudaDeviceReset(),
                                 cudaFreeHost(nullptr)};
    bump<<<1, 1>>>(nullptr);
    const cudaError_t launched = cudaGetLastError();
    bool told = launched == cudaErrorCudartUnloading && cudaPeekAtLastError() == cudaSuccess;
    for (cudaError_t code : codes) told &= code == cudaErrorCudartUnloading;
    if (!told || cudaGetDeviceCount(&count) || count < 1 || cudaRuntimeGetVersion(&count) || cudaDriverGetVersion(&count)) {
        printf("%s: codes %d %d %d %d %d %d, launch %d\n", where, codes[0], codes[1], codes[2], codes[3], codes[4], codes[5], launched);
        fflush(stdout);
        _exit(3);
    }
    printf("%s\n", where);
    fflush(stdout);
}

// Made before the library's first use, so destroyed after it.
struct Global {
    ~Global() {
        if (armed) after_the_end("a destructor of a global");
    }
    bool armed = false;
} global;

void at_exit_early() { after_the_end("an exit handler registered before the first call"); }
void at_exit_late() { work("an exit handler registered after the first call"); }

void key_destructor(void *) { work("a destructor of a pthread key"); }

std::atomic<long> launched;

void launch_for_ever() {
    unsigned *data = nullptr;
    if (cudaMalloc(&data, sizeof *data)) return;
    for (;;) {
        bump<<<1, 32>>>(data);
        if (cudaGetLastError()) return;
        if (launched++ % 64 == 0) cudaDeviceSynchronize();
    }
}

struct Way {
    const char *name;
    void (*run)();
    const char *output;  // what its last line must be
    bool blocks;         // needs launches that return before the kernel ends
};

const Way WAYS[] = {
    {"return", [] { work("main"); }, "main", false},
    {"static made later", [] { work("main"); static AtEnd end{"a static made after the first call"}; (void)&end; }, "a static made after the first call", false},
    {"global", [] { work("main"); global.armed = true; }, "a destructor of a global", false},
    {"atexit before", [] { atexit(at_exit_early); work("main"); }, "an exit handler registered before the first call", false},
    {"atexit after", [] { work("main"); atexit(at_exit_late); }, "an exit handler registered after the first call", false},
    {"atexit only", [] { atexit(at_exit_late); }, "an exit handler registered after the first call", false},
    {"thread_local of main", [] { static thread_local AtEnd end{"a thread_local of main"}; (void)&end; work("main"); },
     "a thread_local of main", false},
    {"thread_local of a thread",
     [] {
         std::thread([] { static thread_local AtEnd end{"a thread_local"}; (void)&end; work("a thread"); }).join();
     },
     "a thread_local", false},
    {"thread_local alone",
     [] {
         work("main");
         std::thread([] { static thread_local AtEnd end{"a thread_local"}; (void)&end; }).join();
     },
     "a thread_local", false},
    {"pthread key",
     [] {
         std::thread([] {
             pthread_key_t key;
             pthread_key_create(&key, key_destructor);
             pthread_setspecific(key, &launched);
             work("a thread");
         }).join();
     },
     "a destructor of a pthread key", false},
    {"reset", [] { work("main"); CUDA_CHECK(cudaDeviceReset()); work("after cudaDeviceReset"); }, "after cudaDeviceReset", false},
    {"reset in a destructor",
     [] { work("main"); CUDA_CHECK(cudaDeviceReset()); global.armed = true; }, "a destructor of a global", false},
    {"threads launch on",
     [] {
         for (int i = 0; i < 4; i++) std::thread(launch_for_ever).detach();
         while (launched < 200) std::this_thread::yield();
         work("main");
     },
     "main", false},
    {"threads launch on, destructor works",
     [] {
         for (int i = 0; i < 4; i++) std::thread(launch_for_ever).detach();
         while (launched < 200) std::this_thread::yield();
         global.armed = true;
     },
     "a destructor of a global", false},
    {"endless kernel", [] { work("main"); start_endless_kernel(); }, "main", true},
    {"endless kernel, quick_exit", [] { work("main"); start_endless_kernel(); quick_exit(0); }, "main", true},
    {"endless kernel, _exit", [] { work("main"); start_endless_kernel(); _exit(0); }, "main", true},
    {"endless kernel, another thread waits",
     [] {
         work("main");
         start_endless_kernel();
         std::thread([] { cudaDeviceSynchronize(); }).detach();
         usleep(20 * 1000);
     },
     "main", true},
    {"stuck host function",
     [] {
         work("main");
         cudaStream_t stream;
         CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
         CUDA_CHECK(cudaLaunchHostFunc(stream, sleep_for_ever, nullptr));
         usleep(20 * 1000);
     },
     "main", false},
    {"exit in a host function",
     [] {
         work("main");
         CUDA_CHECK(cudaLaunchHostFunc(nullptr, [](void *) { exit(0); }, nullptr));
         cudaDeviceSynchronize();
         for (;;) pause();
     },
     "main", false},
    {"exit in a thread", [] { std::thread([] { work("a thread"); exit(0); }).join(); }, "a thread", false},
    {"main leaves first",
     [] {
         std::thread([] { usleep(20 * 1000); work("the last thread"); exit(0); }).detach();
         work("main");
         pthread_exit(nullptr);
     },
     "the last thread", false},
    {"dlclose",
     [] {
         work("main");
         for (const char *name : {"libcuda.so.1", "libcudart.so.13"})
             for (int i = 0; i < 3; i++)
                 if (void *library = dlopen(name, RTLD_NOW)) dlclose(library), dlclose(library);
         work("after dlclose");
         std::thread([] { work("a thread after dlclose"); }).join();
     },
     "a thread after dlclose", false},
};

// Runs one way in a process of its own; answers what is wrong, or nothing.
std::string check(const Way &way) {
    int pipe_ends[2];
    REQUIRE(pipe(pipe_ends) == 0, "no pipe");
    const pid_t child = fork();
    if (child == 0) {
        dup2(pipe_ends[1], 1);
        close(pipe_ends[0]), close(pipe_ends[1]);
        execl("/proc/self/exe", "process_end", way.name, nullptr);
        _exit(127);
    }
    close(pipe_ends[1]);
    fcntl(pipe_ends[0], F_SETFL, O_NONBLOCK);
    std::string output;
    int status = -1;
    bool ended = false;
    // Long enough for any machine; a hang is a failure, and not one of this program.
    for (int tries = 0; tries < 6000 && !ended; tries++) {
        ended = waitpid(child, &status, WNOHANG) == child;
        if (!ended) usleep(10 * 1000);
        char buffer[4096];
        for (ssize_t got; (got = read(pipe_ends[0], buffer, sizeof buffer)) > 0;) output.append(buffer, got);
    }
    close(pipe_ends[0]);
    if (!ended) {
        kill(child, SIGKILL);
        waitpid(child, &status, 0);
        return "does not end";
    }
    if (WIFSIGNALED(status)) return std::string("ends by signal ") + strsignal(WTERMSIG(status)) + "; output: " + output;
    if (WEXITSTATUS(status) != 0) return "ends with " + std::to_string(WEXITSTATUS(status)) + "; output: " + output;
    while (!output.empty() && output.back() == '\n') output.pop_back();
    const std::string last = output.substr(output.rfind('\n') + 1);
    return last == way.output ? "" : "its last line is '" + last + "', not '" + way.output + "'";
}

int main(int count, char **arguments) {
    if (count > 1) {
        for (const Way &way : WAYS)
            if (!strcmp(way.name, arguments[1])) {
                way.run();
                return 0;
            }
        fail("no way %s", arguments[1]);
    }
    const char *blocking = getenv("CUDA_LAUNCH_BLOCKING");
    int checked = 0;
    for (const Way &way : WAYS) {
        if (way.blocks && blocking && *blocking == '1') continue;
        const std::string wrong = check(way);
        REQUIRE(wrong.empty(), "%s: %s", way.name, wrong.c_str());
        checked++;
    }
    succeed("%d ways to end a process", checked);
}
