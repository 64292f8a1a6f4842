// Attention with a softmax that goes along: a query to a thread, 32 keys and values at a time in shared memory.
#define WIDTH 64
#define TILE 32

extern "C" __global__ void attention(int length, float scale, const float *q, const float *k, const float *v, float *out) {
    __shared__ float keys[TILE][WIDTH], values[TILE][WIDTH];
    int head = blockIdx.y * length * WIDTH, query = blockIdx.x * blockDim.x + threadIdx.x;
    float own[WIDTH], sums[WIDTH], largest = -INFINITY, total = 0;
    for (int d = 0; d < WIDTH; d++) {
        own[d] = q[head + query * WIDTH + d] * scale;
        sums[d] = 0;
    }
    for (int start = 0; start < length; start += TILE) {
        for (int i = threadIdx.x; i < TILE * WIDTH; i += blockDim.x) {
            keys[i / WIDTH][i % WIDTH] = k[head + start * WIDTH + i];
            values[i / WIDTH][i % WIDTH] = v[head + start * WIDTH + i];
        }
        __syncthreads();
        for (int j = 0; j < TILE; j++) {
            float score = 0;
            for (int d = 0; d < WIDTH; d++) score += own[d] * keys[j][d];
            if (score > largest) {
                float shrink = expf(largest - score);
                for (int d = 0; d < WIDTH; d++) sums[d] *= shrink;
                total *= shrink;
                largest = score;
            }
            float weight = expf(score - largest);
            for (int d = 0; d < WIDTH; d++) sums[d] += weight * values[j][d];
            total += weight;
        }
        __syncthreads();
    }
    for (int d = 0; d < WIDTH; d++) out[head + query * WIDTH + d] = sums[d] / total;
}
