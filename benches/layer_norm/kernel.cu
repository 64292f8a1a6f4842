// A row to a block: its mean, its variance, and the row made even, times gamma plus beta.
__device__ float block_sum(float value, float *parts) {
    for (int distance = 16; distance > 0; distance /= 2) value += __shfl_xor_sync(0xffffffffu, value, distance);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
    __syncthreads();
    value = parts[0];
    for (int i = 1; i < blockDim.x / 32; i++) value += parts[i];
    __syncthreads();
    return value;
}

extern "C" __global__ void layer_norm(int columns, float epsilon, const float *gamma, const float *beta, const float *in,
                                      float *out) {
    __shared__ float parts[32];
    const float *row = in + blockIdx.x * columns;
    float *result = out + blockIdx.x * columns;
    float sum = 0, squares = 0;
    for (int i = threadIdx.x; i < columns; i += blockDim.x) sum += row[i];
    float mean = block_sum(sum, parts) / columns;
    for (int i = threadIdx.x; i < columns; i += blockDim.x) squares += (row[i] - mean) * (row[i] - mean);
    float scale = rsqrtf(block_sum(squares, parts) / columns + epsilon);
    for (int i = threadIdx.x; i < columns; i += blockDim.x) result[i] = (row[i] - mean) * scale * gamma[i] + beta[i];
}
