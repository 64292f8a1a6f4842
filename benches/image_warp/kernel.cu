// A turned and scaled picture, three bytes to a pixel, each mixed from four; what lies outside is black.
extern "C" __global__ void image_warp(int width, int height, float xx, float xy, float x0, float yx, float yy, float y0,
                                      const unsigned char *in, unsigned char *out) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    float from_x = xx * x + xy * y + x0, from_y = yx * x + yy * y + y0;
    int left = floorf(from_x), top = floorf(from_y);
    float right_part = from_x - left, lower_part = from_y - top;
    for (int channel = 0; channel < 3; channel++) {
        float value = 0;
        if (left >= 0 && left < width - 1 && top >= 0 && top < height - 1) {
            const unsigned char *pixel = in + (top * width + left) * 3 + channel;
            float above = pixel[0] + right_part * (pixel[3] - pixel[0]);
            float below = pixel[width * 3] + right_part * (pixel[width * 3 + 3] - pixel[width * 3]);
            value = above + lower_part * (below - above);
        }
        out[(y * width + x) * 3 + channel] = value + 0.5f;
    }
}
