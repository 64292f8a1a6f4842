// Vector addition with the runtime API: the smallest complete program.

#include <vector>

#include "example.h"

__global__ void add(const float *a, const float *b, float *sum, size_t n) {
    size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < n) sum[i] = a[i] + b[i];  // the last block has more threads than elements are left
}

int main() {
    const size_t n = (1 << 20) + 3, bytes = n * sizeof(float);
    std::vector<float> a(n), b(n), sum(n);
    for (size_t i = 0; i < n; i++) {
        a[i] = float(i) * 0.5f;
        b[i] = 1.0f / float(i + 1);
    }

    float *device_a, *device_b, *device_sum;
    CUDA_CHECK(cudaMalloc(&device_a, bytes));
    CUDA_CHECK(cudaMalloc(&device_b, bytes));
    CUDA_CHECK(cudaMalloc(&device_sum, bytes));
    CUDA_CHECK(cudaMemcpy(device_a, a.data(), bytes, cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaMemcpy(device_b, b.data(), bytes, cudaMemcpyHostToDevice));

    const unsigned threads = 256, blocks = unsigned((n + threads - 1) / threads);
    add<<<blocks, threads>>>(device_a, device_b, device_sum, n);
    CUDA_CHECK(cudaGetLastError());  // a launch itself answers nothing: this asks whether it was accepted

    CUDA_CHECK(cudaMemcpy(sum.data(), device_sum, bytes, cudaMemcpyDeviceToHost));  // waits for the kernel
    for (size_t i = 0; i < n; i++) REQUIRE(sum[i] == a[i] + b[i], "element %zu: %g", i, sum[i]);

    CUDA_CHECK(cudaFree(device_a));
    CUDA_CHECK(cudaFree(device_b));
    CUDA_CHECK(cudaFree(device_sum));
    succeed("%zu sums, each equal to the host's", n);
}
