// Compiled to kernel.ptx; `extern "C"` keeps the name that the host asks for.
extern "C" __global__ void add(const float *a, const float *b, float *sum, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) sum[i] = a[i] + b[i];
}
