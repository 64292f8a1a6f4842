// A row to a block: its largest element, the sum of the exponentials, and the quotients.
__device__ float block_max(float value, float *parts) {
    for (int distance = 16; distance > 0; distance /= 2)
        value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, distance));
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
    __syncthreads();
    value = parts[0];
    for (int i = 1; i < blockDim.x / 32; i++) value = fmaxf(value, parts[i]);
    __syncthreads();
    return value;
}

__device__ float block_sum(float value, float *parts) {
    for (int distance = 16; distance > 0; distance /= 2) value += __shfl_xor_sync(0xffffffffu, value, distance);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
    __syncthreads();
    value = parts[0];
    for (int i = 1; i < blockDim.x / 32; i++) value += parts[i];
    __syncthreads();
    return value;
}

extern "C" __global__ void softmax(int columns, const float *in, float *out) {
    __shared__ float parts[32];
    const float *row = in + blockIdx.x * columns;
    float *result = out + blockIdx.x * columns;
    float largest = -INFINITY, sum = 0;
    for (int i = threadIdx.x; i < columns; i += blockDim.x) largest = fmaxf(largest, row[i]);
    largest = block_max(largest, parts);
    for (int i = threadIdx.x; i < columns; i += blockDim.x) {
        float value = expf(row[i] - largest);
        result[i] = value;
        sum += value;
    }
    sum = block_sum(sum, parts);
    for (int i = threadIdx.x; i < columns; i += blockDim.x) result[i] /= sum;
}
