// CUB's algorithms over the whole device, each beside what the C++ library makes of the same. They are what sorting, scanning and selecting
// come to in most programs: blocks that look back at the sums of blocks before them, warps that vote on digits, launches that
// overlap their predecessors.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include <cub/cub.cuh>

#define CHECK(call)                                                                                          \
    do {                                                                                                     \
        const cudaError_t code_ = (call);                                                                    \
        if (code_ != cudaSuccess) {                                                                          \
            printf("FAIL line %d: %s: %s\n", __LINE__, #call, cudaGetErrorName(code_));                      \
            exit(1);                                                                                         \
        }                                                                                                    \
    } while (0)

// Device memory with these elements.
template <class T> struct Buffer {
    T *data;
    explicit Buffer(size_t count) { CHECK(cudaMalloc(&data, (count + 1) * sizeof(T))); }
    explicit Buffer(const std::vector<T> &from) : Buffer(from.size()) {
        CHECK(cudaMemcpy(data, from.data(), from.size() * sizeof(T), cudaMemcpyDefault));
    }
    ~Buffer() { cudaFree(data); }
    Buffer(const Buffer &) = delete;
    operator T *() const { return data; }
    std::vector<T> read(size_t count) const {
        std::vector<T> values(count);
        CHECK(cudaMemcpy(values.data(), data, count * sizeof(T), cudaMemcpyDefault));
        return values;
    }
};

// Runs one of CUB's functions as it wants it: to ask for its memory, and with it.
template <class Call> void run(Call call) {
    size_t bytes = 0;
    CHECK(call(nullptr, bytes));
    Buffer<char> memory(bytes);
    CHECK(call(memory.data, bytes));
    CHECK(cudaDeviceSynchronize());
}

struct IsOdd {
    __host__ __device__ bool operator()(int value) const { return value & 1; }
};

struct LessInHundreds {
    __host__ __device__ bool operator()(int a, int b) const { return a % 100 < b % 100; }
};

int failed = 0, elements;

void check(const char *name, bool right) {
    printf("%s %s of %d: compared with the host's\n", right ? "ok" : "FAIL", name, elements);
    failed += !right;
}

void sorts(const std::vector<unsigned> &keys, const std::vector<double> &doubles, const std::vector<int> &numbers) {
    const int n = elements;
    Buffer<unsigned> from(keys), to(n);
    Buffer<int> values(numbers), sorted(n);
    std::vector<int> order = numbers;
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return keys[a] < keys[b]; });
    run([&](void *m, size_t &b) { return cub::DeviceRadixSort::SortPairs(m, b, from.data, to.data, values.data, sorted.data, n); });
    check("radix sort of pairs", sorted.read(n) == order);

    Buffer<double> unsorted(doubles), descending(n);
    std::vector<double> expected = doubles;
    std::sort(expected.begin(), expected.end(), std::greater<>());
    run([&](void *m, size_t &b) { return cub::DeviceRadixSort::SortKeysDescending(m, b, unsorted.data, descending.data, n); });
    check("radix sort of doubles", descending.read(n) == expected);

    std::vector<int> merged = order;
    Buffer<int> merging(merged);
    std::stable_sort(merged.begin(), merged.end(), LessInHundreds());
    run([&](void *m, size_t &b) { return cub::DeviceMergeSort::StableSortKeys(m, b, merging.data, n, LessInHundreds()); });
    check("merge sort", merging.read(n) == merged);
}

// What looks back at the blocks before: again and again, since a mistake there depends on who comes first.
void scans(const std::vector<int> &numbers, const std::vector<int> &shuffled) {
    const int n = elements;
    Buffer<int> in(numbers), mixed(shuffled), out(n), count(1);
    std::vector<int> sums(n), chosen, parted;
    unsigned sum = 0;
    for (int i = 0; i < n; i++) sums[i] = int(sum += numbers[i]);
    std::copy_if(shuffled.begin(), shuffled.end(), std::back_inserter(chosen), IsOdd());
    bool scanned = true, selected = true, partitioned = true;
    for (int round = 0; round < 10; round++) {
        run([&](void *m, size_t &b) { return cub::DeviceScan::InclusiveSum(m, b, in.data, out.data, n); });
        scanned &= out.read(n) == sums;
        run([&](void *m, size_t &b) { return cub::DeviceSelect::If(m, b, mixed.data, out.data, count.data, n, IsOdd()); });
        selected &= count.read(1)[0] == int(chosen.size()) && out.read(chosen.size()) == chosen;
        run([&](void *m, size_t &b) { return cub::DevicePartition::If(m, b, mixed.data, out.data, count.data, n, IsOdd()); });
        partitioned &= count.read(1)[0] == int(chosen.size()) && out.read(chosen.size()) == chosen;
    }
    check("scans", scanned);
    check("selections", selected);
    check("partitions", partitioned);

    std::vector<int> keys(n), by_key(n);
    for (int i = 0; i < n; i++) {
        keys[i] = i / 37;
        by_key[i] = i % 37 ? int(unsigned(by_key[i - 1]) + unsigned(numbers[i - 1])) : 0;
    }
    Buffer<int> key(keys), unique(n);
    run([&](void *m, size_t &b) { return cub::DeviceScan::ExclusiveSumByKey(m, b, key.data, in.data, out.data, n); });
    check("scan by key", out.read(n) == by_key);
    run([&](void *m, size_t &b) {
        return cub::DeviceReduce::ReduceByKey(m, b, key.data, unique.data, in.data, out.data, count.data, cuda::std::plus<>(), n);
    });
    std::vector<int> totals((n + 36) / 37);
    for (int i = 0; i < n; i++) totals[i / 37] = int(unsigned(totals[i / 37]) + unsigned(numbers[i]));
    check("reduction by key", count.read(1)[0] == int(totals.size()) && out.read(totals.size()) == totals);

    std::vector<int> runs(n), starts, lengths;
    for (int i = 0; i < n; i++) {
        runs[i] = i % 7 < 3 ? 0 : i / 5;
        if (i == 0 || runs[i] != runs[i - 1]) starts.push_back(runs[i]), lengths.push_back(0);
        lengths.back()++;
    }
    Buffer<int> repeated(runs);
    run([&](void *m, size_t &b) {
        return cub::DeviceRunLengthEncode::Encode(m, b, repeated.data, unique.data, out.data, count.data, n);
    });
    const size_t found = count.read(1)[0];
    check("run lengths", found == starts.size() && unique.read(found) == starts && out.read(found) == lengths);
}

void reductions(const std::vector<int> &shuffled, const std::vector<float> &floats, std::mt19937 &random) {
    const int n = elements;
    Buffer<int> in(shuffled), out(n), most(1), bins(64);
    run([&](void *m, size_t &b) { return cub::DeviceReduce::Max(m, b, in.data, most.data, n); });
    check("maximum", most.read(1)[0] == n - 1);

    Buffer<float> samples(floats);
    std::vector<int> expected(64);
    for (float value : floats) expected[int(value * 64)]++;
    run([&](void *m, size_t &b) { return cub::DeviceHistogram::HistogramEven(m, b, samples.data, bins.data, 65, 0.f, 1.f, n); });
    check("histogram", bins.read(64) == expected);

    std::vector<int> ends = {0};
    while (ends.back() < n) ends.push_back(std::min<int>(n, ends.back() + 1 + random() % 200));
    const int segments = int(ends.size()) - 1;
    std::vector<int> sums(segments), sorted = shuffled;
    for (int i = 0; i < segments; i++) {
        unsigned sum = 0;
        for (int j = ends[i]; j < ends[i + 1]; j++) sum += unsigned(shuffled[j]);
        sums[i] = int(sum);
        std::sort(sorted.begin() + ends[i], sorted.begin() + ends[i + 1]);
    }
    Buffer<int> bounds(ends);
    run([&](void *m, size_t &b) {
        return cub::DeviceSegmentedReduce::Sum(m, b, in.data, out.data, segments, bounds.data, bounds.data + 1);
    });
    check("sums of segments", out.read(segments) == sums);
    run([&](void *m, size_t &b) {
        return cub::DeviceSegmentedSort::SortKeys(m, b, in.data, out.data, n, segments, bounds.data, bounds.data + 1);
    });
    check("sort of segments", out.read(n) == sorted);
}

int main() {
    std::mt19937 random(7);
    for (int n : {1, 33, 1000, 100003, 1500000}) {
        elements = n;
        std::vector<unsigned> keys(n);
        std::vector<int> numbers(n), shuffled(n);
        std::vector<double> doubles(n);
        std::vector<float> floats(n);
        std::normal_distribution<> normal;
        for (unsigned &key : keys) key = random();
        for (double &value : doubles) value = normal(random);
        for (float &value : floats) value = float(random() % 1024) / 1024;
        std::iota(numbers.begin(), numbers.end(), 0);
        shuffled = numbers;
        std::shuffle(shuffled.begin(), shuffled.end(), random);
        sorts(keys, doubles, numbers);
        scans(numbers, shuffled);
        reductions(shuffled, floats, random);
    }
    return failed != 0;
}
