#include <stddef.h>

#include <algorithm>
#include <vector>

// Each thread widens seven rows by the border, so that the loop over a row has no conditions.
void convolution(int width, int height, const float *filter, const float *in, float *out) {
    constexpr int radius = 3, size = 2 * radius + 1;
    const size_t wide = size_t(width) + 2 * radius;
#pragma omp parallel
    {
        std::vector<float> rows(size * wide);
#pragma omp for
        for (int y = 0; y < height; y++) {
            for (int dy = 0; dy < size; dy++) {
                const float *from = in + size_t(std::clamp(y + dy - radius, 0, height - 1)) * width;
                float *row = rows.data() + dy * wide;
                std::fill_n(row, radius, from[0]);
                std::copy_n(from, width, row + radius);
                std::fill_n(row + radius + width, radius, from[width - 1]);
            }
            float *to = out + size_t(y) * width;
#pragma omp simd
            for (int x = 0; x < width; x++) {
                float sum = 0;
                for (int dy = 0; dy < size; dy++)
                    for (int dx = 0; dx < size; dx++) sum += filter[dy * size + dx] * rows[dy * wide + x + dx];
                to[x] = sum;
            }
        }
    }
}
