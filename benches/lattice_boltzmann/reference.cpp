static inline float relaxed(float f, float weight, float density, float along, float square, float rate) {
    float equilibrium = weight * density * (1 + 3 * along + 4.5f * along * along - 1.5f * square);
    return f + rate * (equilibrium - f);
}

static inline __attribute__((always_inline)) void cell_at(const float *__restrict from, float *__restrict to, int width, int size,
                                                          float rate, int y, int above, int below, int x, int left, int right) {
    float f0 = from[y * width + x];
    float f1 = from[size + y * width + left], f2 = from[2 * size + above * width + x];
    float f3 = from[3 * size + y * width + right], f4 = from[4 * size + below * width + x];
    float f5 = from[5 * size + above * width + left], f6 = from[6 * size + above * width + right];
    float f7 = from[7 * size + below * width + right], f8 = from[8 * size + below * width + left];
    float density = f0 + f1 + f2 + f3 + f4 + f5 + f6 + f7 + f8;
    float u = (f1 + f5 + f8 - f3 - f6 - f7) / density, v = (f2 + f5 + f6 - f4 - f7 - f8) / density;
    float square = u * u + v * v;
    int cell = y * width + x;
    to[cell] = relaxed(f0, 4 / 9.0f, density, 0, square, rate);
    to[size + cell] = relaxed(f1, 1 / 9.0f, density, u, square, rate);
    to[2 * size + cell] = relaxed(f2, 1 / 9.0f, density, v, square, rate);
    to[3 * size + cell] = relaxed(f3, 1 / 9.0f, density, -u, square, rate);
    to[4 * size + cell] = relaxed(f4, 1 / 9.0f, density, -v, square, rate);
    to[5 * size + cell] = relaxed(f5, 1 / 36.0f, density, u + v, square, rate);
    to[6 * size + cell] = relaxed(f6, 1 / 36.0f, density, v - u, square, rate);
    to[7 * size + cell] = relaxed(f7, 1 / 36.0f, density, -u - v, square, rate);
    to[8 * size + cell] = relaxed(f8, 1 / 36.0f, density, u - v, square, rate);
}

void relax(int width, int height, float rate, const float *__restrict from, float *__restrict to) {
    const int size = width * height;
#pragma omp parallel for
    for (int y = 0; y < height; y++) {
        const int above = y == 0 ? height - 1 : y - 1, below = y == height - 1 ? 0 : y + 1;
        cell_at(from, to, width, size, rate, y, above, below, 0, width - 1, 1);
#pragma omp simd
        for (int x = 1; x < width - 1; x++) cell_at(from, to, width, size, rate, y, above, below, x, x - 1, x + 1);
        cell_at(from, to, width, size, rate, y, above, below, width - 1, width - 2, 0);
    }
}
