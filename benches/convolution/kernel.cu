// A picture and a filter of 7 by 7; tiles of the picture with their borders in shared memory.
#define RADIUS 3
#define TILE 16
#define WIDE (TILE + 2 * RADIUS)

extern "C" __global__ void convolution(int width, int height, const float *filter, const float *in, float *out) {
    __shared__ float tile[WIDE][WIDE];
    int left = blockIdx.x * TILE - RADIUS, top = blockIdx.y * TILE - RADIUS;
    for (int i = threadIdx.y * TILE + threadIdx.x; i < WIDE * WIDE; i += TILE * TILE) {
        int x = min(max(left + i % WIDE, 0), width - 1), y = min(max(top + i / WIDE, 0), height - 1);
        tile[i / WIDE][i % WIDE] = in[y * width + x];
    }
    __syncthreads();
    int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
    if (x >= width || y >= height) return;
    float sum = 0;
    for (int dy = 0; dy <= 2 * RADIUS; dy++)
        for (int dx = 0; dx <= 2 * RADIUS; dx++)
            sum += filter[dy * (2 * RADIUS + 1) + dx] * tile[threadIdx.y + dy][threadIdx.x + dx];
    out[y * width + x] = sum;
}
