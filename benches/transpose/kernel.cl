// Tiles of 32 by 32 in local memory; four rows of a tile to an item.
kernel void transpose(int n, global const float *in, global float *out) {
    local float tile[32][33];
    size_t lx = get_local_id(0), ly = get_local_id(1);
    size_t x = get_group_id(0) * 32 + lx, y = get_group_id(1) * 32 + ly;
    for (size_t i = 0; i < 32; i += 8) tile[ly + i][lx] = in[(y + i) * n + x];
    barrier(CLK_LOCAL_MEM_FENCE);
    x = get_group_id(1) * 32 + lx;
    y = get_group_id(0) * 32 + ly;
    for (size_t i = 0; i < 32; i += 8) out[(y + i) * n + x] = tile[lx][ly + i];
}
