void spmv(int rows, const int *begins, const int *columns, const float *values, const float *x, float *y) {
#pragma omp parallel for schedule(static)
    for (int row = 0; row < rows; row++) {
        float sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int i = begins[row]; i < begins[row + 1]; i++) sum += values[i] * x[columns[i]];
        y[row] = sum;
    }
}
