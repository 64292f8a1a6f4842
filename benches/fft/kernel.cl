// Transforms of 1024 complex numbers, each by a group in local memory, with a table of roots of unity.
#define SIZE 1024
#define STEPS 10

uint reversed(uint i) {
    i = (i >> 1 & 0x55555555) | (i & 0x55555555) << 1;
    i = (i >> 2 & 0x33333333) | (i & 0x33333333) << 2;
    i = (i >> 4 & 0x0f0f0f0f) | (i & 0x0f0f0f0f) << 4;
    i = (i >> 8 & 0x00ff00ff) | (i & 0x00ff00ff) << 8;
    return (i >> 16 | i << 16) >> (32 - STEPS);
}

kernel void fft(global const float2 *in, global const float2 *roots, global float2 *out) {
    local float2 own[SIZE];
    size_t t = get_local_id(0), start = get_group_id(0) * SIZE;
    for (size_t i = t; i < SIZE; i += get_local_size(0)) own[reversed(i)] = in[start + i];
    for (size_t half_ = 1; half_ < SIZE; half_ *= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        size_t low = t & (half_ - 1), i = 2 * t - low;
        float2 root = roots[low * (SIZE / 2 / half_)], a = own[i], b = own[i + half_];
        float2 turned = (float2)(b.x * root.x - b.y * root.y, b.x * root.y + b.y * root.x);
        own[i] = a + turned;
        own[i + half_] = a - turned;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (size_t i = t; i < SIZE; i += get_local_size(0)) out[start + i] = own[i];
}
