// The inclusive sum of blocks of 1024, the exclusive sum of their totals by one block, and the two together.
__device__ int warp_scan(int value) {
    for (int distance = 1; distance < 32; distance *= 2) {
        int left = __shfl_up_sync(0xffffffffu, value, distance);
        if (threadIdx.x % 32 >= distance) value += left;
    }
    return value;
}

__device__ int block_scan(int value, int *totals) {
    value = warp_scan(value);
    if (threadIdx.x % 32 == 31) totals[threadIdx.x / 32] = value;
    __syncthreads();
    if (threadIdx.x < 32) totals[threadIdx.x] = warp_scan(totals[threadIdx.x]);
    __syncthreads();
    return threadIdx.x < 32 ? value : value + totals[threadIdx.x / 32 - 1];
}

extern "C" __global__ void scan_blocks(int n, const int *in, int *out, int *sums) {
    __shared__ int totals[32];
    int i = blockIdx.x * 1024 + threadIdx.x;
    int value = block_scan(i < n ? in[i] : 0, totals);
    if (i < n) out[i] = value;
    if (threadIdx.x == 1023) sums[blockIdx.x] = value;
}

extern "C" __global__ void scan_sums(int n, int *sums) {
    __shared__ int totals[32];
    int before = 0;
    for (int start = 0; start < n; start += 1024) {
        int i = start + threadIdx.x;
        int own = i < n ? sums[i] : 0;
        int value = block_scan(own, totals);
        if (i < n) sums[i] = before + value - own;
        before += totals[31];
        __syncthreads();
    }
}

extern "C" __global__ void scan_add(int n, const int *sums, int *out) {
    int i = blockIdx.x * 1024 + threadIdx.x;
    if (i < n) out[i] += sums[blockIdx.x];
}
