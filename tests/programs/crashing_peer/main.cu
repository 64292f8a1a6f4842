// Memory and events of two processes, one of which is killed in the middle of its work: the other goes on, nobody waits for the
// dead, and what belonged to it is gone.

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "example.h"
#include "process.h"

constexpr unsigned words = 1 << 20;

struct Handles {
    cudaIpcMemHandle_t memory;
    cudaIpcEventHandle_t event;
};

// Counts up in memory until somebody says stop, which nobody does.
__global__ void count_for_ever(volatile unsigned *data) {
    while (!data[1]) data[0] = data[0] + 1;
}

__global__ void add_one(unsigned *data) { data[blockIdx.x * blockDim.x + threadIdx.x]++; }

// Another process of this program, at the other end of a line.
struct Peer {
    pid_t process;
    int line;

    explicit Peer(const char *role) {
        int ends[2];
        REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "no line");
        fcntl_close_at_exec(ends[0]);
        const std::string descriptor = std::to_string(ends[1]);
        char *arguments[] = {(char *)"peer", (char *)role, (char *)descriptor.c_str(), nullptr};
        const int failed = posix_spawn(&process, "/proc/self/exe", nullptr, nullptr, arguments, environ);
        REQUIRE(failed == 0, "no process: %s", strerror(failed));
        close(ends[1]);
        line = ends[0];
    }

    static void fcntl_close_at_exec(int descriptor) { fcntl(descriptor, F_SETFD, FD_CLOEXEC); }

    // Dead, but still in the table of processes until `bury`.
    void die() { REQUIRE(kill(process, SIGKILL) == 0, "it cannot be killed"); }

    void bury() {
        int status = 0;
        REQUIRE(waitpid(process, &status, 0) == process, "it is not there");
        REQUIRE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "the other process ended by itself: %x", status);
        close(line);
    }
};

template <class T>
void send(int line, const T &value) {
    REQUIRE(write(line, &value, sizeof value) == sizeof value, "the other process does not listen");
}

template <class T>
T receive(int line) {
    T value;
    REQUIRE(recv(line, &value, sizeof value, MSG_WAITALL) == sizeof value, "the other process does not speak");
    return value;
}

unsigned first_word(const unsigned *data) {
    unsigned word = 0;
    CUDA_CHECK(cudaMemcpy(&word, data, sizeof word, cudaMemcpyDefault));
    return word;
}

// --- What the other process does until it is killed -------------------------------------------------------------------------

[[noreturn]] void write_into_memory_of_the_owner(int line) {
    const Handles handles = receive<Handles>(line);
    unsigned *data = nullptr;
    CUDA_CHECK(cudaIpcOpenMemHandle((void **)&data, handles.memory, cudaIpcMemLazyEnablePeerAccess));
    count_for_ever<<<1, 1>>>(data);
    CUDA_CHECK(cudaGetLastError());
    send(line, 'w');
    CUDA_CHECK(cudaDeviceSynchronize());
    fail("the kernel ended");
}

[[noreturn]] void own_memory_and_leave_an_event_undone(int line) {
    unsigned *data = nullptr, *busy = nullptr;
    cudaEvent_t event;
    Handles handles;
    CUDA_CHECK(cudaMalloc(&data, words * sizeof *data));
    CUDA_CHECK(cudaMemset(data, 7, words * sizeof *data));
    CUDA_CHECK(cudaMalloc(&busy, 2 * sizeof *busy));
    CUDA_CHECK(cudaMemset(busy, 0, 2 * sizeof *busy));
    CUDA_CHECK(cudaEventCreateWithFlags(&event, cudaEventInterprocess | cudaEventDisableTiming));
    CUDA_CHECK(cudaDeviceSynchronize());
    CUDA_CHECK(cudaIpcGetMemHandle(&handles.memory, data));
    CUDA_CHECK(cudaIpcGetEventHandle(&handles.event, event));
    count_for_ever<<<1, 1>>>(busy);
    CUDA_CHECK(cudaEventRecord(event));
    send(line, handles);
    CUDA_CHECK(cudaDeviceSynchronize());
    fail("the kernel ended");
}

[[noreturn]] void open_and_close(int line) {
    const Handles handles = receive<Handles>(line);
    cudaStream_t stream;
    CUDA_CHECK(cudaStreamCreate(&stream));
    for (bool told = false;; told = true) {
        unsigned *data = nullptr;
        cudaEvent_t event;
        CUDA_CHECK(cudaIpcOpenMemHandle((void **)&data, handles.memory, cudaIpcMemLazyEnablePeerAccess));
        CUDA_CHECK(cudaIpcOpenEventHandle(&event, handles.event));
        add_one<<<words / 256, 256, 0, stream>>>(data);
        CUDA_CHECK(cudaEventRecord(event, stream));
        CUDA_CHECK(cudaStreamSynchronize(stream));
        CUDA_CHECK(cudaEventDestroy(event));
        CUDA_CHECK(cudaIpcCloseMemHandle(data));
        if (!told) send(line, 'o');
    }
}

// --- What this process sees -------------------------------------------------------------------------------------------------

Handles handles_of(unsigned *data, cudaEvent_t event) {
    Handles handles;
    CUDA_CHECK(cudaIpcGetMemHandle(&handles.memory, data));
    CUDA_CHECK(cudaIpcGetEventHandle(&handles.event, event));
    return handles;
}

void the_one_that_opened_it_dies(unsigned *data, cudaEvent_t event) {
    CUDA_CHECK(cudaMemset(data, 0, words * sizeof *data));
    Peer peer("write");
    send(peer.line, handles_of(data, event));
    receive<char>(peer.line);
    while (first_word(data) < 1000) usleep(1000);
    peer.die();
    peer.bury();
    const unsigned counted = first_word(data);
    usleep(20 * 1000);
    REQUIRE(first_word(data) == counted, "somebody still counts");
    add_one<<<1, 1>>>(data);
    REQUIRE(first_word(data) == counted + 1, "the memory is of no use any more");
}

void the_owner_dies() {
    Peer peer("own");
    const Handles handles = receive<Handles>(peer.line);
    unsigned *data = nullptr;
    cudaEvent_t event;
    cudaStream_t stream;
    CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CUDA_CHECK(cudaIpcOpenMemHandle((void **)&data, handles.memory, cudaIpcMemLazyEnablePeerAccess));
    CUDA_CHECK(cudaIpcOpenEventHandle(&event, handles.event));
    cudaError_t code = cudaEventQuery(event);
    REQUIRE(code == cudaErrorNotReady, "its event: %s", cudaGetErrorName(code));
    CUDA_CHECK(cudaStreamWaitEvent(stream, event, 0));
    add_one<<<words / 256, 256, 0, stream>>>(data);
    CUDA_CHECK(cudaGetLastError());
    code = cudaStreamQuery(stream);
    REQUIRE(code == cudaErrorNotReady, "what waits for its event: %s", cudaGetErrorName(code));
    // Nobody has asked for its status yet: it is in the table of processes all the time.
    peer.die();
    CUDA_CHECK(cudaEventSynchronize(event));
    CUDA_CHECK(cudaStreamSynchronize(stream));
    REQUIRE(first_word(data) == 0x07070708, "its memory has %x", first_word(data));
    unsigned *again = nullptr;
    cudaEvent_t event_again;
    peer.bury();
    CUDA_CHECK(cudaIpcCloseMemHandle(data));
    CUDA_CHECK(cudaEventDestroy(event));
    code = cudaIpcOpenMemHandle((void **)&again, handles.memory, cudaIpcMemLazyEnablePeerAccess);
    REQUIRE(code == cudaErrorInvalidValue, "its memory is opened: %s", cudaGetErrorName(code));
    code = cudaIpcOpenEventHandle(&event_again, handles.event);
    REQUIRE(code == cudaErrorInvalidValue, "its event is opened: %s", cudaGetErrorName(code));
    (void)cudaGetLastError();
    CUDA_CHECK(cudaStreamDestroy(stream));
}

void many_die(unsigned *data, cudaEvent_t event) {
    for (int round = 0; round < 8; round++) {
        Peer first("open"), second("open");
        for (Peer *peer : {&first, &second}) {
            send(peer->line, handles_of(data, event));
            receive<char>(peer->line);
        }
        usleep(unsigned(round) * 1700);
        first.die();
        CUDA_CHECK(cudaEventSynchronize(event));
        second.die();
        first.bury();
        second.bury();
        CUDA_CHECK(cudaEventSynchronize(event));
        CUDA_CHECK(cudaEventRecord(event));
        CUDA_CHECK(cudaEventSynchronize(event));
    }
    CUDA_CHECK(cudaMemset(data, 0, words * sizeof *data));
    REQUIRE(first_word(data) == 0, "the memory is of no use any more");
}

int main(int count, char **arguments) {
    // Kernels that never end are not waited for. Read at the first call.
    unsetenv("CUDA_LAUNCH_BLOCKING");
    if (count == 3) {
        const int line = atoi(arguments[2]);
        if (!strcmp(arguments[1], "write")) write_into_memory_of_the_owner(line);
        if (!strcmp(arguments[1], "own")) own_memory_and_leave_an_event_undone(line);
        open_and_close(line);
    }
    unsigned *data = nullptr;
    cudaEvent_t event;
    CUDA_CHECK(cudaMalloc(&data, words * sizeof *data));
    CUDA_CHECK(cudaEventCreateWithFlags(&event, cudaEventInterprocess | cudaEventDisableTiming));
    the_one_that_opened_it_dies(data, event);
    the_owner_dies();
    const Holding before = Holding::now();
    the_one_that_opened_it_dies(data, event);
    the_owner_dies();
    many_die(data, event);
    require_back_at(before, "20 processes that died");
    CUDA_CHECK(cudaEventDestroy(event));
    CUDA_CHECK(cudaFree(data));
    succeed("20 processes died with what they shared, and this one went on");
}
