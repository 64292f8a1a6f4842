// A histogram for each block in shared memory, then all of them into one.
extern "C" __global__ void histogram(int n, const unsigned char *values, unsigned *counts) {
    __shared__ unsigned own[256];
    own[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&own[values[i]], 1);
    __syncthreads();
    atomicAdd(&counts[threadIdx.x], own[threadIdx.x]);
}

extern "C" __global__ void clear(unsigned *counts) { counts[threadIdx.x] = 0; }
