void triad(int n, double a, const double *x, const double *y, double *z) {
#pragma omp parallel for simd
    for (int i = 0; i < n; i++) z[i] = x[i] + a * y[i];
}
