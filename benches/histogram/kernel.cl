// A histogram for each group in local memory, then all of them into one.
kernel void histogram(int n, global const uchar *values, global uint *counts) {
    local uint own[256];
    size_t thread = get_local_id(0);
    own[thread] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (size_t i = get_global_id(0); i < n; i += get_global_size(0)) atomic_inc(&own[values[i]]);
    barrier(CLK_LOCAL_MEM_FENCE);
    atomic_add(&counts[thread], own[thread]);
}

kernel void clear(global uint *counts) { counts[get_local_id(0)] = 0; }
