#define MULTIPLY(name, tile)                                                                    \
    kernel void name(int n, global const float *a, global const float *b, global float *c) {    \
        local float tile_a[tile][tile], tile_b[tile][tile];                                     \
        size_t x = get_local_id(0), y = get_local_id(1);                                        \
        size_t row = get_global_id(1), column = get_global_id(0);                               \
        float sum = 0;                                                                          \
        for (size_t start = 0; start < n; start += tile) {                                      \
            tile_a[y][x] = a[row * n + start + x];                                              \
            tile_b[y][x] = b[(start + y) * n + column];                                         \
            barrier(CLK_LOCAL_MEM_FENCE);                                                       \
            for (int k = 0; k < tile; k++) sum += tile_a[y][k] * tile_b[k][x];                  \
            barrier(CLK_LOCAL_MEM_FENCE);                                                       \
        }                                                                                       \
        c[row * n + column] = sum;                                                              \
    }

MULTIPLY(sgemm32, 32)
MULTIPLY(sgemm16, 16)
