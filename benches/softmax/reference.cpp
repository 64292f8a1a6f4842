#include <math.h>
#include <stddef.h>

void softmax(int rows, int columns, const float *in, float *out) {
#pragma omp parallel for
    for (int r = 0; r < rows; r++) {
        const float *row = in + size_t(r) * columns;
        float *result = out + size_t(r) * columns;
        float largest = -INFINITY, sum = 0;
#pragma omp simd reduction(max : largest)
        for (int i = 0; i < columns; i++) largest = fmaxf(largest, row[i]);
#pragma omp simd reduction(+ : sum)
        for (int i = 0; i < columns; i++) {
            result[i] = expf(row[i] - largest);
            sum += result[i];
        }
#pragma omp simd
        for (int i = 0; i < columns; i++) result[i] /= sum;
    }
}
