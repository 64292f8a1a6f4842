extern "C" __global__ void triad(int n, double a, const double *x, const double *y, double *z) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) z[i] = x[i] + a * y[i];
}
