kernel void stencil2d(int width, int height, global const float *in, global float *out) {
    size_t x = get_global_id(0), y = get_global_id(1);
    if (x > 0 && x < width - 1 && y > 0 && y < height - 1) {
        size_t i = y * width + x;
        out[i] = 0.5f * in[i] + 0.125f * (in[i - 1] + in[i + 1] + in[i - width] + in[i + width]);
    }
}
