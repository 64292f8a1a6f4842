#include <stddef.h>

static constexpr int size = 1024;

void fft(int count, const float *in, const float *roots, float *out) {
#pragma omp parallel for
    for (int which = 0; which < count; which++) {
        // Real and imaginary parts apart.
        float x[size], y[size];
        for (unsigned i = 0, to = 0; i < size; i++) {
            x[to] = in[2 * (size_t(which) * size + i)];
            y[to] = in[2 * (size_t(which) * size + i) + 1];
            // What comes next, counted from the other end.
            unsigned bit = size / 2;
            for (; to & bit; bit /= 2) to ^= bit;
            to ^= bit;
        }
        for (int half = 1; half < size; half *= 2)
            for (int first = 0; first < size; first += 2 * half)
#pragma omp simd
                for (int i = first; i < first + half; i++) {
                    const int root = (i - first) * (size / 2 / half);
                    const float c = roots[2 * root], s = roots[2 * root + 1];
                    const float tx = x[i + half] * c - y[i + half] * s, ty = x[i + half] * s + y[i + half] * c;
                    x[i + half] = x[i] - tx;
                    y[i + half] = y[i] - ty;
                    x[i] += tx;
                    y[i] += ty;
                }
        for (int i = 0; i < size; i++) {
            out[2 * (size_t(which) * size + i)] = x[i];
            out[2 * (size_t(which) * size + i) + 1] = y[i];
        }
    }
}
