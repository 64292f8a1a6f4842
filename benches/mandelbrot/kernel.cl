kernel void mandelbrot(int width, int height, int limit, float step, global float *out) {
    size_t px = get_global_id(0), py = get_global_id(1);
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
