#include <stddef.h>
#include <string.h>

void copy(size_t bytes, const unsigned char *from, unsigned char *to) {
    constexpr size_t piece = 1 << 20;
#pragma omp parallel for schedule(static)
    for (size_t at = 0; at < bytes; at += piece) memcpy(to + at, from + at, bytes - at < piece ? bytes - at : piece);
}

// As many multiplications with additions as the registers take, none waiting for another.
template <typename T>
static void multiply_add(int turns, T *out) {
    constexpr int parts = 64, chains = 768 / sizeof(T);  // twelve vectors of 64 bytes
#pragma omp parallel for schedule(static)
    for (int part = 0; part < parts; part++) {
        T sums[chains];
        for (int i = 0; i < chains; i++) sums[i] = T(i);
        const T factor = T(0.5), addend = T(part);
        for (int turn = 0; turn < turns; turn++)
            for (int i = 0; i < chains; i++) sums[i] = sums[i] * factor + addend;
        T sum = 0;
        for (int i = 0; i < chains; i++) sum += sums[i];
        out[part] = sum;
    }
}

void multiply_add_singles(int turns, float *out) { multiply_add(turns, out); }
void multiply_add_doubles(int turns, double *out) { multiply_add(turns, out); }
