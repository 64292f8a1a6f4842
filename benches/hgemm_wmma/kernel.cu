// Matrices of halves by tensor cores: 16 by 16 elements of the product to a warp, four warps to a block.
#include <mma.h>

using namespace nvcuda;

extern "C" __global__ void hgemm_wmma(int n, const half *a, const half *b, float *c) {
    int row = (blockIdx.y * 2 + threadIdx.x / 64) * 16, column = (blockIdx.x * 2 + threadIdx.x / 32 % 2) * 16;
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> right;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
    wmma::fill_fragment(sum, 0.0f);
    for (int k = 0; k < n; k += 16) {
        wmma::load_matrix_sync(left, a + row * n + k, n);
        wmma::load_matrix_sync(right, b + k * n + column, n);
        wmma::mma_sync(sum, left, right, sum);
    }
    wmma::store_matrix_sync(c + row * n + column, sum, n, wmma::mem_row_major);
}
