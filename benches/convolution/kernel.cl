// A picture and a filter of 7 by 7; tiles of the picture with their borders in local memory.
#define RADIUS 3
#define TILE 16
#define WIDE (TILE + 2 * RADIUS)

kernel void convolution(int width, int height, global const float *filter, global const float *in, global float *out) {
    local float tile[WIDE][WIDE];
    int lx = get_local_id(0), ly = get_local_id(1);
    int left = (int)get_group_id(0) * TILE - RADIUS, top = (int)get_group_id(1) * TILE - RADIUS;
    for (int i = ly * TILE + lx; i < WIDE * WIDE; i += TILE * TILE) {
        int x = clamp(left + i % WIDE, 0, width - 1), y = clamp(top + i / WIDE, 0, height - 1);
        tile[i / WIDE][i % WIDE] = in[y * width + x];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    size_t x = get_global_id(0), y = get_global_id(1);
    if (x >= width || y >= height) return;
    float sum = 0;
    for (int dy = 0; dy <= 2 * RADIUS; dy++)
        for (int dx = 0; dx <= 2 * RADIUS; dx++)
            sum += filter[dy * (2 * RADIUS + 1) + dx] * tile[ly + dy][lx + dx];
    out[y * width + x] = sum;
}
