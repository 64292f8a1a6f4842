// A tile of each matrix in shared memory, one element of the product to a thread.
template <int tile>
__device__ void multiply(int n, const double *a, const double *b, double *c) {
    __shared__ double tile_a[tile][tile], tile_b[tile][tile];
    int x = threadIdx.x, y = threadIdx.y;
    int row = blockIdx.y * tile + y, column = blockIdx.x * tile + x;
    double sum = 0;
    for (int start = 0; start < n; start += tile) {
        tile_a[y][x] = a[row * n + start + x];
        tile_b[y][x] = b[(start + y) * n + column];
        __syncthreads();
        for (int k = 0; k < tile; k++) sum += tile_a[y][k] * tile_b[k][x];
        __syncthreads();
    }
    c[row * n + column] = sum;
}

extern "C" __global__ void dgemm(int n, const double *a, const double *b, double *c) { multiply<16>(n, a, b, c); }
