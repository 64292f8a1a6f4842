// What the processor can do: there are no kernels here, only C++.
#include "../common/case.h"

void copy(size_t bytes, const unsigned char *from, unsigned char *to);
void multiply_add_singles(int turns, float *out);
void multiply_add_doubles(int turns, double *out);
void multiply_add_shared_out(int turns, int parts, float *out);

static Case copying(size_t bytes) {
    Case c;
    auto from = c.input(random_values<unsigned char>(bytes, 0, 255));
    auto to = c.output<unsigned char>(bytes);
    c.reference = [=](Memory &m) { copy(bytes, m[from], m[to]); };
    c.work = 2.0 * double(bytes);
    return c;
}

template <typename T>
static Case multiplying(int turns, void (*multiply_add)(int, T *)) {
    Case c;
    auto out = c.output<T>(64, {1e-5, 1e-5});
    c.reference = [=](Memory &m) { multiply_add(turns, m[out]); };
    c.work = 2.0 * turns * 64 * (768 / sizeof(T));
    return c;
}

// In parts for whichever thread is free: what all processors do together, however different they are.
static Case sharing_out(int turns, int parts) {
    Case c;
    auto out = c.output<float>(size_t(parts), {1e-5, 1e-5});
    c.reference = [=](Memory &m) { multiply_add_shared_out(turns, parts, m[out]); };
    c.work = 2.0 * turns * parts * (768 / sizeof(float));
    return c;
}

const std::vector<Entry> cases = {
    {"limit_copy", "limit: copying 128 MiB", "GB/s", [](bool small) { return copying(small ? 1 << 12 : 1 << 27); }},
    {"limit_single", "limit: multiply-add, single", "GFlop/s",
     [](bool small) { return multiplying<float>(small ? 10 : 10000, multiply_add_singles); }},
    {"limit_many", "limit: multiply-add, single, for longer", "GFlop/s",
     [](bool small) { return multiplying<float>(small ? 11 : 500000, multiply_add_singles); }, true},
    {"limit_shared_out", "limit: multiply-add, single, in parts for whoever is free", "GFlop/s",
     [](bool small) { return small ? sharing_out(10, 100) : sharing_out(10000, 3200); }, true},
    {"limit_double", "limit: multiply-add, double", "GFlop/s",
     [](bool small) { return multiplying<double>(small ? 10 : 10000, multiply_add_doubles); }},
};
