// One round of k-means: each point to the nearest of 16 centres, sums in local memory, and the new centres.
#define CENTRES 16
#define DIMENSIONS 4

// OpenCL 1.2 adds no floats atomically: by comparing and exchanging.
#define ADD(space, name)                                                              \
    void name(volatile space float *to, float value) {                                \
        volatile space int *bits = (volatile space int *)to;                          \
        int old = *bits, seen;                                                        \
        while ((seen = atomic_cmpxchg(bits, old, as_int(as_float(old) + value))) != old) old = seen; \
    }

ADD(local, add_local)
ADD(global, add_global)

kernel void clear(global float *sums, global int *counts) {
    size_t t = get_local_id(0);
    if (t < CENTRES * DIMENSIONS) sums[t] = 0;
    if (t < CENTRES) counts[t] = 0;
}

kernel void assign(int n, global const float *points, global const float *centres, global int *labels, global float *sums,
                   global int *counts) {
    local float own_sums[CENTRES * DIMENSIONS], own_centres[CENTRES * DIMENSIONS];
    local int own_counts[CENTRES];
    size_t t = get_local_id(0), i = get_global_id(0);
    if (t < CENTRES * DIMENSIONS) {
        own_sums[t] = 0;
        own_centres[t] = centres[t];
    }
    if (t < CENTRES) own_counts[t] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (i < n) {
        float point[DIMENSIONS], best = 1e30f;
        int label = 0;
        for (int d = 0; d < DIMENSIONS; d++) point[d] = points[d * n + i];
        for (int k = 0; k < CENTRES; k++) {
            float distance = 0;
            for (int d = 0; d < DIMENSIONS; d++) {
                float difference = point[d] - own_centres[k * DIMENSIONS + d];
                distance += difference * difference;
            }
            if (distance < best) {
                best = distance;
                label = k;
            }
        }
        labels[i] = label;
        for (int d = 0; d < DIMENSIONS; d++) add_local(&own_sums[label * DIMENSIONS + d], point[d]);
        atomic_inc(&own_counts[label]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (t < CENTRES * DIMENSIONS) add_global(&sums[t], own_sums[t]);
    if (t < CENTRES) atomic_add(&counts[t], own_counts[t]);
}

kernel void centre(global const float *sums, global const int *counts, global float *centres) {
    size_t t = get_local_id(0);
    int count = counts[t / DIMENSIONS];
    centres[t] = count > 0 ? sums[t] / count : 0;
}
