// MPI with CUDA: ranks with a device each, which exchange what is in device memory. Device pointers go to MPI as they are, and to
// other ranks as handles of CUDA's interprocess communication. Every rank checks; the first one prints a line for each subject.

#include <cuda_runtime.h>
#include <mpi.h>
#include <unistd.h>

#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

int rank, ranks;
std::string wrong; // what this rank found, of the current subject

[[gnu::format(printf, 1, 2)]] void note(const char *format, ...) {
    if (!wrong.empty()) return;
    char text[300];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    wrong = "rank " + std::to_string(rank) + ": " + text;
}

#define CHECK(call)                                                                                          \
    do {                                                                                                     \
        const cudaError_t code_ = (call);                                                                    \
        if (code_ != cudaSuccess) note("line %d: %s: %s", __LINE__, #call, cudaGetErrorName(code_));         \
    } while (0)

// Runs a subject on all ranks and tells what became of it.
void subject(const char *name, void (*run)()) {
    wrong.clear();
    run();
    char text[400] = {};
    std::vector<char> all(size_t(ranks) * sizeof text);
    snprintf(text, sizeof text, "%s", wrong.c_str());
    MPI_Gather(text, sizeof text, MPI_CHAR, all.data(), sizeof text, MPI_CHAR, 0, MPI_COMM_WORLD);
    if (rank != 0) return;
    std::string found;
    for (int i = 0; i < ranks && found.empty(); i++) found = &all[size_t(i) * sizeof text];
    printf("%s %s: %s\n", found.empty() ? "ok" : "FAIL", name, found.c_str());
    fflush(stdout);
}

int next() { return (rank + 1) % ranks; }
int previous() { return (rank + ranks - 1) % ranks; }

__global__ void number(int *data, int n, int first) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) data[i] = first + i;
}

__global__ void compare(const int *data, int n, int first, int *different) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        if (data[i] != first + i) atomicAdd(different, 1);
}

// Device memory of one rank for a subject.
template <class T>
struct Buffer {
    T *data = nullptr;
    size_t count;

    explicit Buffer(size_t count) : count(count) {
        CHECK(cudaMalloc(&data, count * sizeof(T)));
        CHECK(cudaMemset(data, 0, count * sizeof(T)));
        CHECK(cudaDeviceSynchronize());
    }
    ~Buffer() { CHECK(cudaFree(data)); }
};

void expect_numbers(const int *data, int n, int first) {
    Buffer<int> different(1);
    compare<<<16, 256>>>(data, n, first, different.data);
    int found = -1;
    CHECK(cudaMemcpy(&found, different.data, sizeof found, cudaMemcpyDefault));
    if (found != 0) note("%d of %d values from %d on are others", found, n, first);
}

void ranks_have_a_device_each() {
    int devices = 0, current = -1;
    CHECK(cudaGetDeviceCount(&devices));
    CHECK(cudaGetDevice(&current));
    if (devices != ranks || current != rank) note("device %d of %d", current, devices);
    cudaDeviceProp props{};
    CHECK(cudaGetDeviceProperties(&props, current));
    std::vector<cudaUUID_t> all(static_cast<size_t>(ranks));
    MPI_Allgather(&props.uuid, sizeof props.uuid, MPI_BYTE, all.data(), sizeof props.uuid, MPI_BYTE, MPI_COMM_WORLD);
    for (int i = 0; i < ranks; i++)
        if (i != rank && !memcmp(&all[size_t(i)], &props.uuid, sizeof props.uuid)) note("rank %d has the same device", i);
}

// Small messages go through MPI's own memory, large ones from one process to the other.
void device_pointers_are_sent() {
    for (int n : {1, 1000, 100000, 4 << 20}) {
        Buffer<int> mine(n), theirs(n);
        number<<<16, 256>>>(mine.data, n, rank * 1000000);
        CHECK(cudaDeviceSynchronize());
        MPI_Sendrecv(mine.data, n, MPI_INT, next(), 1, theirs.data, n, MPI_INT, previous(), 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        expect_numbers(theirs.data, n, previous() * 1000000);
    }
}

void messages_overlap_with_kernels() {
    constexpr int n = 1 << 20, pieces = 8;
    Buffer<int> mine(n), theirs(n);
    cudaStream_t stream;
    cudaEvent_t ready[pieces];
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    MPI_Request requests[2 * pieces];
    constexpr int part = n / pieces;
    for (int i = 0; i < pieces; i++) {
        CHECK(cudaEventCreateWithFlags(&ready[i], cudaEventDisableTiming));
        MPI_Irecv(theirs.data + i * part, part, MPI_INT, previous(), 10 + i, MPI_COMM_WORLD, &requests[i]);
        number<<<16, 256, 0, stream>>>(mine.data + i * part, part, rank * 1000000 + i * part);
        CHECK(cudaEventRecord(ready[i], stream));
    }
    for (int i = 0; i < pieces; i++) {
        CHECK(cudaEventSynchronize(ready[i]));
        MPI_Isend(mine.data + i * part, part, MPI_INT, next(), 10 + i, MPI_COMM_WORLD, &requests[pieces + i]);
        CHECK(cudaEventDestroy(ready[i]));
    }
    MPI_Waitall(2 * pieces, requests, MPI_STATUSES_IGNORE);
    expect_numbers(theirs.data, n, previous() * 1000000);
    CHECK(cudaStreamDestroy(stream));
}

void collectives_work_on_device_memory() {
    constexpr int n = 50000;
    Buffer<int> mine(n), sum(n), all(size_t(n) * ranks), turned(size_t(n) / ranks * ranks);
    number<<<16, 256>>>(mine.data, n, rank);
    CHECK(cudaDeviceSynchronize());
    MPI_Allreduce(mine.data, sum.data, n, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    std::vector<int> found(n);
    CHECK(cudaMemcpy(found.data(), sum.data, n * sizeof(int), cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++)
        if (found[i] != ranks * i + ranks * (ranks - 1) / 2) note("the sum has %d at %d", found[i], i);
    MPI_Allgather(mine.data, n, MPI_INT, all.data, n, MPI_INT, MPI_COMM_WORLD);
    for (int i = 0; i < ranks; i++) expect_numbers(all.data + size_t(i) * n, n, i);
    const int part = n / ranks;
    MPI_Alltoall(mine.data, part, MPI_INT, turned.data, part, MPI_INT, MPI_COMM_WORLD);
    for (int i = 0; i < ranks; i++) expect_numbers(turned.data + size_t(i) * part, part, i + rank * part);
    if (rank == ranks - 1) CHECK(cudaMemset(mine.data, 0, n * sizeof(int)));
    CHECK(cudaDeviceSynchronize());
    MPI_Bcast(mine.data, n, MPI_INT, ranks - 2, MPI_COMM_WORLD);
    expect_numbers(mine.data, n, ranks - 2);
}

void managed_and_pinned_memory_is_sent() {
    constexpr int n = 300000;
    int *managed = nullptr, *pinned = nullptr;
    CHECK(cudaMallocManaged(&managed, n * sizeof(int)));
    CHECK(cudaMallocHost(&pinned, n * sizeof(int)));
    number<<<16, 256>>>(managed, n, rank);
    CHECK(cudaDeviceSynchronize());
    MPI_Sendrecv(managed, n, MPI_INT, next(), 2, pinned, n, MPI_INT, previous(), 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    expect_numbers(pinned, n, previous());
    CHECK(cudaFree(managed));
    CHECK(cudaFreeHost(pinned));
}

void a_window_is_of_device_memory() {
    constexpr int n = 100000;
    Buffer<int> mine(n), window(n);
    number<<<16, 256>>>(mine.data, n, rank * 7);
    CHECK(cudaDeviceSynchronize());
    MPI_Win exposed;
    MPI_Win_create(window.data, n * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &exposed);
    MPI_Win_fence(0, exposed);
    MPI_Put(mine.data, n, MPI_INT, next(), 0, n, MPI_INT, exposed);
    MPI_Win_fence(0, exposed);
    expect_numbers(window.data, n, previous() * 7);
    MPI_Win_free(&exposed);
}

__global__ void add_one(int *data, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&data[i], 1);
}

// Every rank's kernels write into every other rank's memory; events order them across processes.
void memory_and_events_are_shared_by_handles() {
    constexpr int n = 100000;
    struct Handles {
        cudaIpcMemHandle_t memory;
        cudaIpcEventHandle_t done;
    } mine{};
    Buffer<int> data(n);
    cudaEvent_t done;
    CHECK(cudaEventCreateWithFlags(&done, cudaEventInterprocess | cudaEventDisableTiming));
    CHECK(cudaIpcGetMemHandle(&mine.memory, data.data));
    CHECK(cudaIpcGetEventHandle(&mine.done, done));
    number<<<16, 256>>>(data.data, n, rank * 1000000);
    CHECK(cudaDeviceSynchronize());
    std::vector<Handles> all(static_cast<size_t>(ranks));
    MPI_Allgather(&mine, sizeof mine, MPI_BYTE, all.data(), sizeof mine, MPI_BYTE, MPI_COMM_WORLD);
    std::vector<int *> theirs(size_t(ranks), nullptr);
    for (int i = 0; i < ranks; i++) {
        if (i == rank) continue;
        CHECK(cudaIpcOpenMemHandle((void **)&theirs[i], all[i].memory, cudaIpcMemLazyEnablePeerAccess));
        add_one<<<16, 256>>>(theirs[i], n);
    }
    CHECK(cudaGetLastError());
    CHECK(cudaEventRecord(done));
    MPI_Barrier(MPI_COMM_WORLD);
    // All have recorded; this rank's stream waits for what the others do.
    std::vector<cudaEvent_t> events(size_t(ranks), nullptr);
    for (int i = 0; i < ranks; i++) {
        if (i == rank) continue;
        CHECK(cudaIpcOpenEventHandle(&events[i], all[i].done));
        CHECK(cudaStreamWaitEvent(nullptr, events[i], 0));
    }
    expect_numbers(data.data, n, rank * 1000000 + ranks - 1);
    for (int i = 0; i < ranks; i++) {
        if (i == rank) continue;
        CHECK(cudaEventDestroy(events[i]));
        CHECK(cudaIpcCloseMemHandle(theirs[i]));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(cudaEventDestroy(done));
}

// One step of Jacobi's method on rows of a plate, the first and the last of which are a neighbour's or the edge.
__global__ void relax(const double *from, double *to, int rows, int columns) {
    const int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y + 1;
    if (row > rows || column < 1 || column >= columns - 1) return;
    const double *here = from + size_t(row) * columns + column;
    to[size_t(row) * columns + column] = 0.25 * (here[-1] + here[1] + here[-columns] + here[columns]);
}

double heat(int row, int column, int rows, int columns) {
    if (row == 0) return 100;
    return column == 0 || column == columns - 1 || row == rows + 1 ? 10 : 0;
}

void a_plate_is_shared_out() {
    constexpr int columns = 256, steps = 60;
    const int rows = 32, all_rows = rows * ranks;
    Buffer<double> first(size_t(rows + 2) * columns), second(size_t(rows + 2) * columns);
    std::vector<double> plate(size_t(rows + 2) * columns);
    for (int row = 0; row < rows + 2; row++)
        for (int column = 0; column < columns; column++)
            plate[size_t(row) * columns + column] = heat(rank * rows + row, column, all_rows, columns);
    double *from = first.data, *to = second.data;
    for (double *data : {from, to}) CHECK(cudaMemcpy(data, plate.data(), plate.size() * sizeof(double), cudaMemcpyHostToDevice));
    const int above = rank == 0 ? MPI_PROC_NULL : rank - 1, below = rank == ranks - 1 ? MPI_PROC_NULL : rank + 1;
    for (int step = 0; step < steps; step++) {
        relax<<<dim3(columns / 64, rows), 64>>>(from, to, rows, columns);
        CHECK(cudaDeviceSynchronize());
        double *last = to + size_t(rows) * columns;
        MPI_Sendrecv(to + columns, columns, MPI_DOUBLE, above, 3, last + columns, columns, MPI_DOUBLE, below, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Sendrecv(last, columns, MPI_DOUBLE, below, 4, to, columns, MPI_DOUBLE, above, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        std::swap(from, to);
    }
    CHECK(cudaMemcpy(plate.data(), from, plate.size() * sizeof(double), cudaMemcpyDeviceToHost));
    // The whole plate on the host.
    std::vector<double> whole(size_t(all_rows + 2) * columns), old;
    for (int row = 0; row < all_rows + 2; row++)
        for (int column = 0; column < columns; column++)
            whole[size_t(row) * columns + column] = heat(row, column, all_rows, columns);
    for (int step = 0; step < steps; step++) {
        old = whole;
        for (size_t row = 1; row <= size_t(all_rows); row++)
            for (size_t i = row * columns + 1; i < (row + 1) * columns - 1; i++)
                whole[i] = 0.25 * (old[i - 1] + old[i + 1] + old[i - columns] + old[i + columns]);
    }
    for (int row = 1; row <= rows; row++)
        for (int column = 0; column < columns; column++) {
            const double here = plate[size_t(row) * columns + column];
            const double wanted = whole[size_t(rank * rows + row) * columns + column];
            if (here != wanted) note("%g instead of %g in row %d, column %d", here, wanted, row, column);
        }
}

int main(int count, char **arguments) {
    MPI_Init(&count, &arguments);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    CHECK(cudaSetDevice(rank));
    subject("ranks have a device each", ranks_have_a_device_each);
    subject("device pointers are sent", device_pointers_are_sent);
    subject("messages overlap with kernels", messages_overlap_with_kernels);
    subject("collectives work on device memory", collectives_work_on_device_memory);
    subject("managed and pinned memory is sent", managed_and_pinned_memory_is_sent);
    subject("a window is of device memory", a_window_is_of_device_memory);
    subject("memory and events are shared by handles", memory_and_events_are_shared_by_handles);
    subject("a plate is shared out", a_plate_is_shared_out);
    MPI_Finalize();
}
