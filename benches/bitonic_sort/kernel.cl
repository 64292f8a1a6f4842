// Groups of 1024 elements in local memory, by 512 items; what is further apart, one step to a launch.
#define SIZE 1024

#define EXCHANGE(a, b, up)     \
    if (((a) > (b)) == (up)) { \
        uint t_ = (a);         \
        (a) = (b);             \
        (b) = t_;              \
    }

kernel void bitonic_block(global const uint *in, global uint *out) {
    local uint own[SIZE];
    size_t t = get_local_id(0), start = get_group_id(0) * SIZE;
    own[t] = in[start + t];
    own[t + SIZE / 2] = in[start + t + SIZE / 2];
    for (size_t k = 2; k <= SIZE; k *= 2)
        for (size_t j = k / 2; j > 0; j /= 2) {
            barrier(CLK_LOCAL_MEM_FENCE);
            size_t i = 2 * t - (t & (j - 1));
            EXCHANGE(own[i], own[i + j], ((start + i) & k) == 0);
        }
    barrier(CLK_LOCAL_MEM_FENCE);
    out[start + t] = own[t];
    out[start + t + SIZE / 2] = own[t + SIZE / 2];
}

kernel void bitonic_step(int k, int j, global uint *values) {
    size_t t = get_global_id(0);
    size_t i = 2 * t - (t & (j - 1));
    EXCHANGE(values[i], values[i + j], (i & k) == 0);
}

kernel void bitonic_merge(int k, global uint *values) {
    local uint own[SIZE];
    size_t t = get_local_id(0), start = get_group_id(0) * SIZE;
    own[t] = values[start + t];
    own[t + SIZE / 2] = values[start + t + SIZE / 2];
    for (size_t j = SIZE / 2; j > 0; j /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        size_t i = 2 * t - (t & (j - 1));
        EXCHANGE(own[i], own[i + j], (start & k) == 0);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    values[start + t] = own[t];
    values[start + t + SIZE / 2] = own[t + SIZE / 2];
}
