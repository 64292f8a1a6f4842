// The program's own signal handlers, set before the library's first use or after it, go on working; a kernel's faults go to
// its context and not to them.

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <thread>

#include "example.h"

__global__ void poke(unsigned *address) { *address = 1; }
__global__ void bump(unsigned *data) { atomicAdd(data, 1u); }

sigjmp_buf back;
volatile sig_atomic_t caught, last_signal;
void *volatile last_address;

void handler(int signal, siginfo_t *info, void *) {
    caught = caught + 1;
    last_signal = signal;
    last_address = info->si_addr;
    siglongjmp(back, 1);
}

void install(int flags) {
    struct sigaction action {};
    action.sa_sigaction = handler;
    action.sa_flags = SA_SIGINFO | flags;
    sigemptyset(&action.sa_mask);
    for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) REQUIRE(sigaction(signal, &action, nullptr) == 0, "sigaction");
}

// A fault of the program's own, which its handler must get.
void fault_on_host(const char *when) {
    char *const wall = (char *)mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const int before = caught;
    if (sigsetjmp(back, 1) == 0) {
        *(volatile char *)(wall + 100) = 1;
        fail("%s: a store to a wall went through", when);
    }
    REQUIRE(caught == before + 1 && last_signal == SIGSEGV && last_address == wall + 100, "%s: signal %d at %p, not at %p", when,
            int(last_signal), last_address, wall + 100);
    munmap(wall, 4096);
}

// A fault of a kernel, which the context must get.
void fault_in_kernel(const char *when) {
    const int before = caught;
    CUcontext context;
    CU_CHECK(cuCtxCreate(&context, nullptr, 0, 0));
    poke<<<1, 1>>>((unsigned *)64);
    const cudaError_t code = cudaDeviceSynchronize();
    REQUIRE(code == cudaErrorIllegalAddress, "%s: a bad store of a kernel gave %d", when, code);
    REQUIRE(caught == before, "%s: a kernel's fault came to the program's handler", when);
    cudaGetLastError();
    CU_CHECK(cuCtxDestroy(context));
}

void work(const char *when) {
    unsigned *data = nullptr, found = 0;
    CUDA_CHECK(cudaMalloc(&data, sizeof *data));
    CUDA_CHECK(cudaMemset(data, 0, sizeof *data));
    bump<<<2, 32>>>(data);
    CUDA_CHECK(cudaMemcpy(&found, data, sizeof found, cudaMemcpyDeviceToHost));
    CUDA_CHECK(cudaFree(data));
    REQUIRE(found == 64, "%s: %u instead of 64", when, found);
}

// Blocks all signals in this thread, or none.
void mask(int how) {
    sigset_t all;
    sigfillset(&all);
    REQUIRE(pthread_sigmask(how, &all, nullptr) == 0, "pthread_sigmask");
}

// The child of `run` must end by this signal: the default action is still what it was.
void must_end_by(int signal, void (*run)(), const char *what) {
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        run();
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    REQUIRE(WIFSIGNALED(status) && WTERMSIG(status) == signal, "%s: status %#x", what, status);
}

int main(int count, char **arguments) {
    setenv("ANYWARP_QUIET", "1", 1);
    if (count == 1) {
        // Handlers set first: the library's come later and hand on.
        install(SA_ONSTACK);
        fault_on_host("before the library");
        work("first use");
        fault_in_kernel("handlers set before");
        fault_on_host("handlers set before");
        std::thread([] { fault_on_host("in another thread"); work("in another thread"); }).join();

        // With an alternative stack of the program's own.
        std::thread([] {
            static char stack[64 << 10];
            stack_t own{};
            own.ss_sp = stack, own.ss_size = sizeof stack;
            sigaltstack(&own, nullptr);
            fault_in_kernel("with a signal stack");
            fault_on_host("with a signal stack");
            stack_t now{};
            sigaltstack(nullptr, &now);
            REQUIRE(now.ss_sp == stack, "the program's signal stack was replaced");
        }).join();

        // With all signals blocked in the thread, as servers do.
        std::thread([] {
            sigset_t all;
            sigfillset(&all);
            for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) sigdelset(&all, signal);
            pthread_sigmask(SIG_SETMASK, &all, nullptr);
            work("with signals blocked");
            fault_in_kernel("with signals blocked");
        }).join();

        // Those of faults too, before a thread's first use and after it. The mask stays the program's.
        std::thread([] {
            sigset_t now;
            mask(SIG_BLOCK);
            for (const char *when : {"all signals blocked", "all signals blocked, again"}) {
                work(when);
                fault_in_kernel(when);
                pthread_sigmask(SIG_BLOCK, nullptr, &now);
                for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL})
                    REQUIRE(sigismember(&now, signal) == 1, "%s: the mask lost signal %d", when, signal);
            }
        }).join();

        // Handlers set last replace the library's: host faults are theirs, and clean kernels still run.
        install(SA_ONSTACK);
        fault_on_host("handlers set after");
        work("handlers set after");
        // The next program begins with all signals blocked.
        mask(SIG_BLOCK);
        execl("/proc/self/exe", "signals", "blocked", nullptr);
        fail("exec");
    }
    if (strcmp(arguments[1], "blocked") == 0) {
        // The library's own threads, which the first kernel starts, have got the mask.
        work("all signals blocked from the start");
        for (int times = 0; times < 3; times++) fault_in_kernel("all signals blocked from the start");
        mask(SIG_UNBLOCK);
        execl("/proc/self/exe", "signals", "defaults", nullptr);
        fail("exec");
    }
    // Nobody handles anything: a wild store still ends the process as it should.
    work("first use");
    fault_in_kernel("no handlers");
    must_end_by(SIGSEGV, [] { *(volatile int *)8 = 1; }, "a wild store");
    must_end_by(SIGABRT, [] { abort(); }, "abort");
    must_end_by(SIGTERM, [] { raise(SIGTERM); }, "SIGTERM");
    must_end_by(SIGSEGV, [] { raise(SIGSEGV); }, "a sent SIGSEGV");
    succeed("the program's handlers and the library's got each their own");
}
