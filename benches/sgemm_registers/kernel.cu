// 64 by 64 elements of the product to a block of 256 threads, 4 by 4 of them in each thread's registers.
#define TILE 64
#define DEPTH 16

extern "C" __global__ void sgemm_registers(int n, const float *a, const float *b, float *c) {
    __shared__ float tile_a[DEPTH][TILE], tile_b[DEPTH][TILE];
    int thread = threadIdx.x, x = thread % 16, y = thread / 16;
    int row = blockIdx.y * TILE, column = blockIdx.x * TILE;
    float sums[4][4] = {};
    for (int start = 0; start < n; start += DEPTH) {
        for (int i = thread; i < TILE * DEPTH; i += 256) {
            tile_a[i % DEPTH][i / DEPTH] = a[(row + i / DEPTH) * n + start + i % DEPTH];
            tile_b[i / TILE][i % TILE] = b[(start + i / TILE) * n + column + i % TILE];
        }
        __syncthreads();
        for (int k = 0; k < DEPTH; k++) {
            float left[4], right[4];
            for (int i = 0; i < 4; i++) left[i] = tile_a[k][y * 4 + i];
            for (int j = 0; j < 4; j++) right[j] = tile_b[k][x * 4 + j];
            for (int i = 0; i < 4; i++)
                for (int j = 0; j < 4; j++) sums[i][j] += left[i] * right[j];
        }
        __syncthreads();
    }
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) c[(row + y * 4 + i) * n + column + x * 4 + j] = sums[i][j];
}
