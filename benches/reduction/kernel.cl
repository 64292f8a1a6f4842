// Shuffles are an extension that not every implementation has: the items meet in local memory.
kernel void reduce(int n, global const float *x, global float *out) {
    local float sums[256];
    size_t thread = get_local_id(0);
    float sum = 0;
    for (size_t i = get_global_id(0); i < n; i += get_global_size(0)) sum += x[i];
    sums[thread] = sum;
    for (size_t half_size = get_local_size(0) / 2; half_size > 0; half_size /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (thread < half_size) sums[thread] += sums[thread + half_size];
    }
    if (thread == 0) out[get_group_id(0)] = sums[0];
}
