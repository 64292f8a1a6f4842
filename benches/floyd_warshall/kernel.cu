// Lengths of all shortest ways: a launch for each node that a way may lead through.
extern "C" __global__ void shorten(int n, int k, const float *from, float *to) {
    int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= n || j >= n) return;
    to[i * n + j] = fminf(from[i * n + j], from[i * n + k] + from[k * n + j]);
}
