// Boxes in the order of their scores; a box falls to an earlier one that stays and overlaps it. First all pairs, 64 bits to
// an item, then one group goes through the boxes.
kernel void overlaps(int n, float threshold, global const float4 *boxes, global ulong *masks) {
    local float4 others[64];
    size_t thread = get_local_id(0), start = get_group_id(0) * 64, i = get_group_id(1) * 64 + thread;
    if (start + thread < n) others[thread] = boxes[start + thread];
    barrier(CLK_LOCAL_MEM_FENCE);
    if (i >= n) return;
    float4 own = boxes[i];
    float area = (own.z - own.x) * (own.w - own.y);
    ulong mask = 0;
    for (size_t j = 0; j < min((size_t)64, n - start); j++) {
        if (start + j <= i) continue;
        float4 other = others[j];
        float width = fmax(fmin(own.z, other.z) - fmax(own.x, other.x), 0.0f);
        float height = fmax(fmin(own.w, other.w) - fmax(own.y, other.y), 0.0f);
        float common = width * height;
        float all = area + (other.z - other.x) * (other.w - other.y) - common;
        if (common > threshold * all) mask |= (ulong)1 << j;
    }
    masks[i * get_num_groups(0) + get_group_id(0)] = mask;
}

kernel void keep(int n, int words, global const ulong *masks, global int *kept) {
    local ulong removed[64];
    size_t thread = get_local_id(0);
    if (thread < words) removed[thread] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = 0; i < n; i++) {
        bool stays = !(removed[i / 64] >> (i % 64) & 1);
        barrier(CLK_LOCAL_MEM_FENCE);
        if (stays && thread < words) removed[thread] |= masks[i * words + thread];
        if (thread == 0) kept[i] = stays;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}
