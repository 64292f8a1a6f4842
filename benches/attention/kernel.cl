// Attention with a softmax that goes along: a query to an item, 32 keys and values at a time in local memory.
#define WIDTH 64
#define TILE 32

kernel void attention(int length, float scale, global const float *q, global const float *k, global const float *v,
                      global float *out) {
    local float keys[TILE][WIDTH], values[TILE][WIDTH];
    size_t head = get_group_id(1) * length * WIDTH, query = get_global_id(0), thread = get_local_id(0);
    float own[WIDTH], sums[WIDTH], largest = -INFINITY, total = 0;
    for (int d = 0; d < WIDTH; d++) {
        own[d] = q[head + query * WIDTH + d] * scale;
        sums[d] = 0;
    }
    for (size_t start = 0; start < length; start += TILE) {
        for (size_t i = thread; i < TILE * WIDTH; i += get_local_size(0)) {
            keys[i / WIDTH][i % WIDTH] = k[head + start * WIDTH + i];
            values[i / WIDTH][i % WIDTH] = v[head + start * WIDTH + i];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int j = 0; j < TILE; j++) {
            float score = 0;
            for (int d = 0; d < WIDTH; d++) score += own[d] * keys[j][d];
            if (score > largest) {
                float shrink = exp(largest - score);
                for (int d = 0; d < WIDTH; d++) sums[d] *= shrink;
                total *= shrink;
                largest = score;
            }
            float weight = exp(score - largest);
            for (int d = 0; d < WIDTH; d++) sums[d] += weight * values[j][d];
            total += weight;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    for (int d = 0; d < WIDTH; d++) out[head + query * WIDTH + d] = sums[d] / total;
}
