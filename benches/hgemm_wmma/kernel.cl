// OpenCL has no tensor cores: 32 by 32 elements to a group of 128 items, the halves widened into local memory.
#define TILE 32

kernel void hgemm_wmma(int n, global const half *a, global const half *b, global float *c) {
    local float tile_a[TILE][TILE], tile_b[TILE][TILE];
    size_t x = get_local_id(0) % TILE, y = get_local_id(0) / TILE;
    size_t row = get_group_id(1) * TILE, column = get_group_id(0) * TILE;
    float sums[8] = {0};
    for (size_t start = 0; start < n; start += TILE) {
        for (size_t i = y; i < TILE; i += 4) {
            tile_a[i][x] = vload_half((row + i) * n + start + x, a);
            tile_b[i][x] = vload_half((start + i) * n + column + x, b);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = 0; k < TILE; k++)
            for (int i = 0; i < 8; i++) sums[i] += tile_a[y * 8 + i][k] * tile_b[k][x];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    for (int i = 0; i < 8; i++) c[(row + y * 8 + i) * n + column + x] = sums[i];
}
