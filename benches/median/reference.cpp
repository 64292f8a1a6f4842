#include <stddef.h>

#include <algorithm>

static inline void order(unsigned char &a, unsigned char &b) {
    const unsigned char least = std::min(a, b);
    b = std::max(a, b);
    a = least;
}

void median(int width, int height, const unsigned char *in, unsigned char *out) {
#pragma omp parallel for
    for (int y = 0; y < height; y++) {
        const unsigned char *rows[3] = {in + size_t(std::max(y - 1, 0)) * width, in + size_t(y) * width,
                                        in + size_t(std::min(y + 1, height - 1)) * width};
        const auto at = [&](int x, int left, int right) {
            unsigned char p[9];
            for (int row = 0; row < 3; row++) {
                p[3 * row] = rows[row][left];
                p[3 * row + 1] = rows[row][x];
                p[3 * row + 2] = rows[row][right];
            }
            order(p[1], p[2]), order(p[4], p[5]), order(p[7], p[8]);
            order(p[0], p[1]), order(p[3], p[4]), order(p[6], p[7]);
            order(p[1], p[2]), order(p[4], p[5]), order(p[7], p[8]);
            order(p[0], p[3]), order(p[5], p[8]), order(p[4], p[7]);
            order(p[3], p[6]), order(p[1], p[4]), order(p[2], p[5]);
            order(p[4], p[7]), order(p[4], p[2]), order(p[6], p[4]);
            order(p[4], p[2]);
            return p[4];
        };
        unsigned char *to = out + size_t(y) * width;
        to[0] = at(0, 0, std::min(1, width - 1));
#pragma omp simd
        for (int x = 1; x < width - 1; x++) to[x] = at(x, x - 1, x + 1);
        to[width - 1] = at(width - 1, std::max(width - 2, 0), width - 1);
    }
}
