// 64 by 64 elements of the product to a group of 256 items, 4 by 4 of them in each item's registers.
#define TILE 64
#define DEPTH 16

kernel void sgemm_registers(int n, global const float *a, global const float *b, global float *c) {
    local float tile_a[DEPTH][TILE], tile_b[DEPTH][TILE];
    size_t thread = get_local_id(0), x = thread % 16, y = thread / 16;
    size_t row = get_group_id(1) * TILE, column = get_group_id(0) * TILE;
    float sums[4][4] = {{0}};
    for (size_t start = 0; start < n; start += DEPTH) {
        for (size_t i = thread; i < TILE * DEPTH; i += 256) {
            tile_a[i % DEPTH][i / DEPTH] = a[(row + i / DEPTH) * n + start + i % DEPTH];
            tile_b[i / TILE][i % TILE] = b[(start + i / TILE) * n + column + i % TILE];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = 0; k < DEPTH; k++) {
            float left[4], right[4];
            for (int i = 0; i < 4; i++) left[i] = tile_a[k][y * 4 + i];
            for (int j = 0; j < 4; j++) right[j] = tile_b[k][x * 4 + j];
            for (int i = 0; i < 4; i++)
                for (int j = 0; j < 4; j++) sums[i][j] += left[i] * right[j];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) c[(row + y * 4 + i) * n + column + x * 4 + j] = sums[i][j];
}
