extern "C" __global__ void mandelbrot(int width, int height, int limit, float step, float *out) {
    int px = blockIdx.x * blockDim.x + threadIdx.x, py = blockIdx.y * blockDim.y + threadIdx.y;
    if (px >= width || py >= height) return;
    float cx = -2.0f + px * step, cy = -1.25f + py * step, x = 0, y = 0;
    int count = 0;
    while (count < limit && x * x + y * y <= 4.0f) {
        float next = x * x - y * y + cx;
        y = 2 * x * y + cy;
        x = next;
        count++;
    }
    out[py * width + px] = count;
}
