#include <stddef.h>

void transpose(int n, const float *in, float *out) {
    constexpr int tile = 16;
#pragma omp parallel for collapse(2)
    for (int row = 0; row < n; row += tile)
        for (int column = 0; column < n; column += tile)
            for (int y = 0; y < tile; y++)
                for (int x = 0; x < tile; x++) out[size_t(column + y) * n + row + x] = in[size_t(row + x) * n + column + y];
}
