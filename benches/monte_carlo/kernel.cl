// How many of many points lie in a quarter of a circle: each item draws its own, the sums of groups are added up.
#define DRAWS 256

kernel void clear(global uint *count) { *count = 0; }

kernel void inside(uint seed, global uint *count) {
    local uint sums[256];
    size_t t = get_local_id(0);
    uint state = ((uint)get_global_id(0) + 1) * 2654435761u ^ seed, found = 0;
    for (int i = 0; i < DRAWS; i++) {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        uint x = state & 0x7fff, y = state >> 16 & 0x7fff;
        if (x * x + y * y < 1u << 30) found++;
    }
    sums[t] = found;
    for (size_t half_ = get_local_size(0) / 2; half_ > 0; half_ /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (t < half_) sums[t] += sums[t + half_];
    }
    if (t == 0) atomic_add(count, sums[0]);
}
