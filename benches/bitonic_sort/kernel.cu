// Blocks of 1024 elements in shared memory, by 512 threads; what is further apart, one step to a launch.
#define SIZE 1024

__device__ void exchange(unsigned *a, unsigned *b, bool up) {
    if ((*a > *b) == up) {
        unsigned t = *a;
        *a = *b;
        *b = t;
    }
}

extern "C" __global__ void bitonic_block(const unsigned *in, unsigned *out) {
    __shared__ unsigned own[SIZE];
    int t = threadIdx.x, start = blockIdx.x * SIZE;
    own[t] = in[start + t];
    own[t + SIZE / 2] = in[start + t + SIZE / 2];
    for (int k = 2; k <= SIZE; k *= 2)
        for (int j = k / 2; j > 0; j /= 2) {
            __syncthreads();
            int i = 2 * t - (t & (j - 1));
            exchange(&own[i], &own[i + j], ((start + i) & k) == 0);
        }
    __syncthreads();
    out[start + t] = own[t];
    out[start + t + SIZE / 2] = own[t + SIZE / 2];
}

extern "C" __global__ void bitonic_step(int k, int j, unsigned *values) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    int i = 2 * t - (t & (j - 1));
    exchange(&values[i], &values[i + j], (i & k) == 0);
}

extern "C" __global__ void bitonic_merge(int k, unsigned *values) {
    __shared__ unsigned own[SIZE];
    int t = threadIdx.x, start = blockIdx.x * SIZE;
    own[t] = values[start + t];
    own[t + SIZE / 2] = values[start + t + SIZE / 2];
    for (int j = SIZE / 2; j > 0; j /= 2) {
        __syncthreads();
        int i = 2 * t - (t & (j - 1));
        exchange(&own[i], &own[i + j], (start & k) == 0);
    }
    __syncthreads();
    values[start + t] = own[t];
    values[start + t + SIZE / 2] = own[t + SIZE / 2];
}
