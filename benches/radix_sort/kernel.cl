// Four bits in a pass: how often each digit is in each block of 1024 keys, where each begins, and the keys to their places.
#define KEYS 1024

kernel void radix_count(int shift, global const uint *keys, global int *counts) {
    local int own[16];
    size_t thread = get_local_id(0), group = get_group_id(0);
    if (thread < 16) own[thread] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (size_t i = thread; i < KEYS; i += get_local_size(0)) atomic_inc(&own[keys[group * KEYS + i] >> shift & 15]);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (thread < 16) counts[thread * get_num_groups(0) + group] = own[thread];
}

// The exclusive sum over the items of a group; the total follows in sums[size].
int group_scan(int own, local int *sums) {
    size_t thread = get_local_id(0), size = get_local_size(0);
    sums[thread] = own;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (size_t distance = 1; distance < size; distance *= 2) {
        int left = thread >= distance ? sums[thread - distance] : 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        sums[thread] += left;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    return sums[thread] - own;
}

// The exclusive sum of all counts, by one group.
kernel void radix_scan(int n, global int *counts) {
    local int sums[1024];
    int before = 0;
    for (int start = 0; start < n; start += 1024) {
        int i = start + (int)get_local_id(0);
        int own = i < n ? counts[i] : 0;
        int value = group_scan(own, sums);
        if (i < n) counts[i] = before + value;
        before += sums[1023];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

// Four keys in a row to each of 256 items, which count their digits by themselves.
kernel void radix_scatter(int shift, global const uint *keys, global const int *begins, global uint *out) {
    local int places[16 * 256], sums[256], first[16];
    size_t thread = get_local_id(0), group = get_group_id(0);
    uint own[4];
    for (int digit = 0; digit < 16; digit++) places[digit * 256 + thread] = 0;
    for (int i = 0; i < 4; i++) {
        own[i] = keys[group * KEYS + thread * 4 + i];
        places[(own[i] >> shift & 15) * 256 + thread]++;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    int sum = 0;
    for (int i = 0; i < 16; i++) sum += places[thread * 16 + i];
    int before = group_scan(sum, sums);
    for (int i = 0; i < 16; i++) {
        int count = places[thread * 16 + i];
        places[thread * 16 + i] = before;
        before += count;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (thread < 16) first[thread] = begins[thread * get_num_groups(0) + group] - places[thread * 256];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = 0; i < 4; i++) {
        uint digit = own[i] >> shift & 15;
        out[first[digit] + places[digit * 256 + thread]++] = own[i];
    }
}
