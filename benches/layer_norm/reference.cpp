#include <math.h>
#include <stddef.h>

void layer_norm(int rows, int columns, float epsilon, const float *gamma, const float *beta, const float *in, float *out) {
#pragma omp parallel for
    for (int r = 0; r < rows; r++) {
        const float *row = in + size_t(r) * columns;
        float *result = out + size_t(r) * columns;
        float sum = 0, squares = 0;
#pragma omp simd reduction(+ : sum)
        for (int i = 0; i < columns; i++) sum += row[i];
        const float mean = sum / columns;
#pragma omp simd reduction(+ : squares)
        for (int i = 0; i < columns; i++) squares += (row[i] - mean) * (row[i] - mean);
        const float scale = 1 / sqrtf(squares / columns + epsilon);
#pragma omp simd
        for (int i = 0; i < columns; i++) result[i] = (row[i] - mean) * scale * gamma[i] + beta[i];
    }
}
