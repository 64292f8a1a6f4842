#include <stddef.h>

void gemv(int rows, int columns, const float *a, const float *x, float *y) {
#pragma omp parallel for
    for (int row = 0; row < rows; row++) {
        const float *own = a + size_t(row) * columns;
        float sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int i = 0; i < columns; i++) sum += own[i] * x[i];
        y[row] = sum;
    }
}
