// Boxes in the order of their scores; a box falls to an earlier one that stays and overlaps it. First all pairs, 64 bits to
// a thread, then one block goes through the boxes.
extern "C" __global__ void overlaps(int n, float threshold, const float4 *boxes, unsigned long long *masks) {
    __shared__ float4 others[64];
    int start = blockIdx.x * 64, i = blockIdx.y * 64 + threadIdx.x;
    if (start + threadIdx.x < n) others[threadIdx.x] = boxes[start + threadIdx.x];
    __syncthreads();
    if (i >= n) return;
    float4 own = boxes[i];
    float area = (own.z - own.x) * (own.w - own.y);
    unsigned long long mask = 0;
    for (int j = 0; j < min(64, n - start); j++) {
        if (start + j <= i) continue;
        float4 other = others[j];
        float width = fmaxf(fminf(own.z, other.z) - fmaxf(own.x, other.x), 0);
        float height = fmaxf(fminf(own.w, other.w) - fmaxf(own.y, other.y), 0);
        float common = width * height;
        float all = area + (other.z - other.x) * (other.w - other.y) - common;
        if (common > threshold * all) mask |= 1ull << j;
    }
    masks[i * gridDim.x + blockIdx.x] = mask;
}

extern "C" __global__ void keep(int n, int words, const unsigned long long *masks, int *kept) {
    __shared__ unsigned long long removed[64];
    if (threadIdx.x < words) removed[threadIdx.x] = 0;
    __syncthreads();
    for (int i = 0; i < n; i++) {
        bool stays = !(removed[i / 64] >> (i % 64) & 1);
        __syncthreads();
        if (stays && threadIdx.x < words) removed[threadIdx.x] |= masks[i * words + threadIdx.x];
        if (threadIdx.x == 0) kept[i] = stays;
        __syncthreads();
    }
}
