// Transforms of 1024 complex numbers, each by a block in shared memory, with a table of roots of unity.
#define SIZE 1024
#define STEPS 10

extern "C" __global__ void fft(const float2 *in, const float2 *roots, float2 *out) {
    __shared__ float2 own[SIZE];
    int t = threadIdx.x, start = blockIdx.x * SIZE;
    for (int i = t; i < SIZE; i += blockDim.x) own[__brev(i) >> (32 - STEPS)] = in[start + i];
    for (int half = 1; half < SIZE; half *= 2) {
        __syncthreads();
        int low = t & (half - 1), i = 2 * t - low;
        float2 root = roots[low * (SIZE / 2 / half)], a = own[i], b = own[i + half];
        float2 turned = make_float2(b.x * root.x - b.y * root.y, b.x * root.y + b.y * root.x);
        own[i] = make_float2(a.x + turned.x, a.y + turned.y);
        own[i + half] = make_float2(a.x - turned.x, a.y - turned.y);
    }
    __syncthreads();
    for (int i = t; i < SIZE; i += blockDim.x) out[start + i] = own[i];
}
