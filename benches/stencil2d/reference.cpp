#include <stddef.h>

void stencil2d(int width, int height, const float *in, float *out) {
#pragma omp parallel for
    for (int y = 1; y < height - 1; y++)
#pragma omp simd
        for (int x = 1; x < width - 1; x++) {
            const size_t i = size_t(y) * width + x;
            out[i] = 0.5f * in[i] + 0.125f * (in[i - 1] + in[i + 1] + in[i - width] + in[i + width]);
        }
}
