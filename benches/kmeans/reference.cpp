#include <stddef.h>

static constexpr int centres = 16, dimensions = 4;

void kmeans(int n, const float *points, const float *from, int *labels, float *to) {
    double sums[centres * dimensions] = {};
    int counts[centres] = {};
#pragma omp parallel
    {
        float own[centres * dimensions] = {};
        int own_counts[centres] = {};
#pragma omp for simd
        for (int i = 0; i < n; i++) {
            float best = 1e30f;
            int label = 0;
            for (int k = 0; k < centres; k++) {
                float distance = 0;
                for (int d = 0; d < dimensions; d++) {
                    const float difference = points[size_t(d) * n + i] - from[k * dimensions + d];
                    distance += difference * difference;
                }
                label = distance < best ? k : label;
                best = distance < best ? distance : best;
            }
            labels[i] = label;
        }
#pragma omp for
        for (int i = 0; i < n; i++) {
            for (int d = 0; d < dimensions; d++) own[labels[i] * dimensions + d] += points[size_t(d) * n + i];
            own_counts[labels[i]]++;
        }
#pragma omp critical
        {
            for (int i = 0; i < centres * dimensions; i++) sums[i] += own[i];
            for (int i = 0; i < centres; i++) counts[i] += own_counts[i];
        }
    }
    for (int i = 0; i < centres * dimensions; i++)
        to[i] = counts[i / dimensions] ? float(sums[i] / counts[i / dimensions]) : 0;
}
