#include <stddef.h>

void stencil3d(int nx, int ny, int nz, const float *in, float *out) {
    const size_t layer = size_t(nx) * ny;
#pragma omp parallel for collapse(2)
    for (int z = 1; z < nz - 1; z++)
        for (int y = 1; y < ny - 1; y++)
#pragma omp simd
            for (int x = 1; x < nx - 1; x++) {
                const size_t i = z * layer + size_t(y) * nx + x;
                out[i] = 0.4f * in[i] + 0.1f * (in[i - 1] + in[i + 1] + in[i - nx] + in[i + nx] + in[i - layer] + in[i + layer]);
            }
}
