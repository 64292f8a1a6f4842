#include <math.h>
#include <stddef.h>

void image_warp(int width, int height, float xx, float xy, float x0, float yx, float yy, float y0, const unsigned char *in,
                unsigned char *out) {
#pragma omp parallel for
    for (int y = 0; y < height; y++)
#pragma omp simd
        for (int x = 0; x < width; x++) {
            const float from_x = xx * x + xy * y + x0, from_y = yx * x + yy * y + y0;
            const int left = int(floorf(from_x)), top = int(floorf(from_y));
            const float right_part = from_x - left, lower_part = from_y - top;
            const bool inside = left >= 0 && left < width - 1 && top >= 0 && top < height - 1;
            for (int channel = 0; channel < 3; channel++) {
                float value = 0;
                if (inside) {
                    const unsigned char *pixel = in + (size_t(top) * width + left) * 3 + channel;
                    const float above = pixel[0] + right_part * (pixel[3] - pixel[0]);
                    const float below = pixel[width * 3] + right_part * (pixel[width * 3 + 3] - pixel[width * 3]);
                    value = above + lower_part * (below - above);
                }
                out[(size_t(y) * width + x) * 3 + channel] = static_cast<unsigned char>(value + 0.5f);
            }
        }
}
