// clang: -mprefer-vector-width=512 (what the processor can do, not what the compiler thinks best)
#include <stddef.h>
#include <string.h>

void copy(size_t bytes, const unsigned char *from, unsigned char *to) {
    constexpr size_t piece = 1 << 20;
#pragma omp parallel for schedule(static)
    for (size_t at = 0; at < bytes; at += piece) memcpy(to + at, from + at, bytes - at < piece ? bytes - at : piece);
}

// Twelve vectors of 64 bytes that do not wait for each other.
template <typename T>
static T multiply_add(int turns, int part) {
    typedef T Vector __attribute__((vector_size(64)));
    constexpr int chains = 12, lanes = 64 / sizeof(T);
    Vector sums[chains];
    for (int i = 0; i < chains; i++) sums[i] = Vector{} + T(i);
    const Vector factor = Vector{} + T(0.5), addend = Vector{} + T(part);
    for (int turn = 0; turn < turns; turn++)
        for (int i = 0; i < chains; i++) sums[i] = sums[i] * factor + addend;
    T sum = 0;
    for (int i = 0; i < chains; i++)
        for (int lane = 0; lane < lanes; lane++) sum += sums[i][lane];
    return sum;
}

template <typename T>
static void multiply_add(int turns, T *out) {
#pragma omp parallel for schedule(static)
    for (int part = 0; part < 64; part++) out[part] = multiply_add<T>(turns, part);
}

void multiply_add_shared_out(int turns, int parts, float *out) {
#pragma omp parallel for schedule(dynamic)
    for (int part = 0; part < parts; part++) out[part] = multiply_add<float>(turns, part);
}

void multiply_add_singles(int turns, float *out) { multiply_add(turns, out); }
void multiply_add_doubles(int turns, double *out) { multiply_add(turns, out); }
