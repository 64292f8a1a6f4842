#include <stddef.h>

// Sixteen points go on until the last of them has escaped, so that the loop over them is a vector.
void mandelbrot(int width, int height, int limit, float step, float *out) {
    constexpr int lanes = 16;
#pragma omp parallel for schedule(dynamic, 8)
    for (int py = 0; py < height; py++)
        for (int start = 0; start < width; start += lanes) {
            float cx[lanes], x[lanes] = {}, y[lanes] = {};
            int count[lanes] = {};
            const float cy = -1.25f + py * step;
            for (int i = 0; i < lanes; i++) cx[i] = -2.0f + (start + i) * step;
            for (int turn = 0; turn < limit; turn++) {
                int inside = 0;
#pragma omp simd reduction(+ : inside)
                for (int i = 0; i < lanes; i++) {
                    const int stays = x[i] * x[i] + y[i] * y[i] <= 4.0f;
                    const float next = x[i] * x[i] - y[i] * y[i] + cx[i];
                    y[i] = stays ? 2 * x[i] * y[i] + cy : y[i];
                    x[i] = stays ? next : x[i];
                    count[i] += stays;
                    inside += stays;
                }
                if (inside == 0) break;
            }
            for (int i = 0; i < lanes && start + i < width; i++) out[size_t(py) * width + start + i] = float(count[i]);
        }
}
