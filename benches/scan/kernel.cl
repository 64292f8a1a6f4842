// The inclusive sum of blocks of 1024, the exclusive sum of their totals by one group, and the two together.
int block_scan(int value, local int *sums) {
    size_t thread = get_local_id(0);
    sums[thread] = value;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (size_t distance = 1; distance < 1024; distance *= 2) {
        int left = thread >= distance ? sums[thread - distance] : 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        sums[thread] += left;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    return sums[thread];
}

kernel void scan_blocks(int n, global const int *in, global int *out, global int *sums) {
    local int shared_sums[1024];
    size_t i = get_global_id(0);
    int value = block_scan(i < n ? in[i] : 0, shared_sums);
    if (i < n) out[i] = value;
    if (get_local_id(0) == 1023) sums[get_group_id(0)] = value;
}

kernel void scan_sums(int n, global int *sums) {
    local int shared_sums[1024];
    int before = 0;
    for (int start = 0; start < n; start += 1024) {
        int i = start + (int)get_local_id(0);
        int own = i < n ? sums[i] : 0;
        int value = block_scan(own, shared_sums);
        if (i < n) sums[i] = before + value - own;
        before += shared_sums[1023];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

kernel void scan_add(int n, global const int *sums, global int *out) {
    size_t i = get_global_id(0);
    if (i < n) out[i] += sums[get_group_id(0)];
}
