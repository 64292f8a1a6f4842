#include <stddef.h>

void live(int width, int height, const unsigned char *from, unsigned char *to) {
#pragma omp parallel for
    for (int y = 0; y < height; y++) {
        const unsigned char *above = from + size_t((y + height - 1) % height) * width;
        const unsigned char *here = from + size_t(y) * width;
        const unsigned char *below = from + size_t((y + 1) % height) * width;
        unsigned char *out = to + size_t(y) * width;
        const auto cell = [=](int left, int x, int right) {
            const unsigned char neighbours = above[left] + above[x] + above[right] + here[left] + here[right] +
                                             below[left] + below[x] + below[right];
            return (unsigned char)((neighbours == 3) | ((neighbours == 2) & here[x]));
        };
        out[0] = cell(width - 1, 0, 1 % width);
#pragma omp simd
        for (int x = 1; x < width - 1; x++) out[x] = cell(x - 1, x, x + 1);
        if (width > 1) out[width - 1] = cell(width - 2, width - 1, 0);
    }
}
