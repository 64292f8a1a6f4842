// One round of k-means: each point to the nearest of 16 centres, sums in shared memory, and the new centres.
#define CENTRES 16
#define DIMENSIONS 4

extern "C" __global__ void clear(float *sums, int *counts) {
    if (threadIdx.x < CENTRES * DIMENSIONS) sums[threadIdx.x] = 0;
    if (threadIdx.x < CENTRES) counts[threadIdx.x] = 0;
}

extern "C" __global__ void assign(int n, const float *points, const float *centres, int *labels, float *sums, int *counts) {
    __shared__ float own_sums[CENTRES * DIMENSIONS], own_centres[CENTRES * DIMENSIONS];
    __shared__ int own_counts[CENTRES];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    if (t < CENTRES * DIMENSIONS) {
        own_sums[t] = 0;
        own_centres[t] = centres[t];
    }
    if (t < CENTRES) own_counts[t] = 0;
    __syncthreads();
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
        for (int d = 0; d < DIMENSIONS; d++) atomicAdd(&own_sums[label * DIMENSIONS + d], point[d]);
        atomicAdd(&own_counts[label], 1);
    }
    __syncthreads();
    if (t < CENTRES * DIMENSIONS) atomicAdd(&sums[t], own_sums[t]);
    if (t < CENTRES) atomicAdd(&counts[t], own_counts[t]);
}

extern "C" __global__ void centre(const float *sums, const int *counts, float *centres) {
    int count = counts[threadIdx.x / DIMENSIONS];
    centres[threadIdx.x] = count > 0 ? sums[threadIdx.x] / count : 0;
}
