#include <math.h>
#include <stddef.h>

#include <vector>

// A query's scores fit the cache: all of them, then the weights, then the sum of the values.
void attention(int heads, int length, float scale, const float *q, const float *k, const float *v, float *out) {
    constexpr int width = 64;
#pragma omp parallel
    {
        std::vector<float> weights(static_cast<size_t>(length));
#pragma omp for collapse(2)
        for (int head = 0; head < heads; head++)
            for (int query = 0; query < length; query++) {
                const size_t base = size_t(head) * length * width;
                const float *own = q + base + size_t(query) * width;
                float largest = -INFINITY, total = 0, sums[width] = {};
                for (int j = 0; j < length; j++) {
                    float score = 0;
#pragma omp simd reduction(+ : score)
                    for (int d = 0; d < width; d++) score += own[d] * k[base + size_t(j) * width + d];
                    weights[size_t(j)] = score * scale;
                }
#pragma omp simd reduction(max : largest)
                for (int j = 0; j < length; j++) largest = fmaxf(largest, weights[size_t(j)]);
#pragma omp simd reduction(+ : total)
                for (int j = 0; j < length; j++) {
                    weights[size_t(j)] = expf(weights[size_t(j)] - largest);
                    total += weights[size_t(j)];
                }
                for (int j = 0; j < length; j++)
#pragma omp simd
                    for (int d = 0; d < width; d++) sums[d] += weights[size_t(j)] * v[base + size_t(j) * width + d];
                for (int d = 0; d < width; d++) out[base + size_t(query) * width + d] = sums[d] / total;
            }
    }
}
