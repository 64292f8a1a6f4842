// A turned and scaled picture, three bytes to a pixel, each mixed from four; what lies outside is black.
kernel void image_warp(int width, int height, float xx, float xy, float x0, float yx, float yy, float y0,
                       global const uchar *in, global uchar *out) {
    size_t x = get_global_id(0), y = get_global_id(1);
    if (x >= width || y >= height) return;
    float from_x = xx * x + xy * y + x0, from_y = yx * x + yy * y + y0;
    int left = floor(from_x), top = floor(from_y);
    float right_part = from_x - left, lower_part = from_y - top;
    for (int channel = 0; channel < 3; channel++) {
        float value = 0;
        if (left >= 0 && left < width - 1 && top >= 0 && top < height - 1) {
            global const uchar *pixel = in + (top * width + left) * 3 + channel;
            float above = pixel[0] + right_part * (pixel[3] - pixel[0]);
            float below = pixel[width * 3] + right_part * (pixel[width * 3 + 3] - pixel[width * 3]);
            value = above + lower_part * (below - above);
        }
        out[(y * width + x) * 3 + channel] = value + 0.5f;
    }
}
