// Matrix multiplication, naive and tiled.
//
//     matrix_multiply [SIZE]

#include <math.h>

#include <vector>

#include "example.h"

constexpr int tile = 16;

// One thread for each element of the product, reading a row and a column from memory.
__global__ void multiply_naive(const float *a, const float *b, float *product, int n) {
    int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= n || column >= n) return;
    float sum = 0;
    for (int k = 0; k < n; k++) sum += a[row * n + k] * b[k * n + column];
    product[row * n + column] = sum;
}

// The threads of a block load a tile of each matrix into shared memory and all use it: every element is read
// `tile` times less often. Tiles reaching over the edge are filled with zeros.
__global__ void multiply_tiled(const float *a, const float *b, float *product, int n) {
    __shared__ float tile_a[tile][tile], tile_b[tile][tile];
    int x = threadIdx.x, y = threadIdx.y;
    int column = blockIdx.x * tile + x, row = blockIdx.y * tile + y;
    float sum = 0;
    for (int start = 0; start < n; start += tile) {
        tile_a[y][x] = row < n && start + x < n ? a[row * n + start + x] : 0;
        tile_b[y][x] = column < n && start + y < n ? b[(start + y) * n + column] : 0;
        __syncthreads();
        for (int k = 0; k < tile; k++) sum += tile_a[y][k] * tile_b[k][x];
        __syncthreads();
    }
    if (row < n && column < n) product[row * n + column] = sum;
}

int main(int argc, char **argv) {
    const int n = argc > 1 ? atoi(argv[1]) : 150;  // not a multiple of the tile
    REQUIRE(n > 0 && n <= 8192, "the size must be from 1 to 8192");
    const size_t elements = size_t(n) * n, bytes = elements * sizeof(float);
    std::vector<float> a(elements), b(elements), product(elements);
    unsigned random = 1;
    for (size_t i = 0; i < elements; i++) {
        random = random * 1664525 + 1013904223;
        a[i] = float(random >> 8) / (1 << 23) - 1;
        random = random * 1664525 + 1013904223;
        b[i] = float(random >> 8) / (1 << 23) - 1;
    }
    float *device_a, *device_b, *device_product;
    CUDA_CHECK(cudaMalloc(&device_a, bytes));
    CUDA_CHECK(cudaMalloc(&device_b, bytes));
    CUDA_CHECK(cudaMalloc(&device_product, bytes));
    CUDA_CHECK(cudaMemcpy(device_a, a.data(), bytes, cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaMemcpy(device_b, b.data(), bytes, cudaMemcpyHostToDevice));

    // The host computes sampled rows in double precision: the error of n additions of products up to 1 stays far
    // below n * n * 2^-24.
    const double bound = double(n) * n / (1 << 24) + 1e-6;
    double worst = 0;
    auto check = [&](const char *name) {
        for (int row = 0; row < n; row += (n + 15) / 16)
            for (int column = 0; column < n; column++) {
                double sum = 0;
                for (int k = 0; k < n; k++) sum += double(a[size_t(row) * n + k]) * b[size_t(k) * n + column];
                double error = fabs(product[size_t(row) * n + column] - sum);
                REQUIRE(error <= bound, "%s, row %d, column %d: off by %g", name, row, column, error);
                worst = fmax(worst, error);
            }
    };
    const dim3 threads(tile, tile), blocks((n + tile - 1) / tile, (n + tile - 1) / tile);
    auto run = [&](const char *name, void (*kernel)(const float *, const float *, float *, int)) {
        auto once = [&] {
            kernel<<<blocks, threads>>>(device_a, device_b, device_product, n);
            CUDA_CHECK(cudaGetLastError());
            CUDA_CHECK(cudaDeviceSynchronize());
        };
        once();  // the first launch compiles
        CUDA_CHECK(cudaMemset(device_product, 0xff, bytes));
        double time = milliseconds(once);
        CUDA_CHECK(cudaMemcpy(product.data(), device_product, bytes, cudaMemcpyDeviceToHost));
        check(name);
        printf("%-5s %9.2f ms %7.1f GFlop/s\n", name, time, 2.0 * n * n * n / time / 1e6);
    };
    run("naive", multiply_naive);
    run("tiled", multiply_tiled);
    CUDA_CHECK(cudaFree(device_a));
    CUDA_CHECK(cudaFree(device_b));
    CUDA_CHECK(cudaFree(device_product));
    succeed("%d x %d, largest error %.1e", n, n, worst);
}
