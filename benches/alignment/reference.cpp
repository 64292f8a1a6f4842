#include <algorithm>

static constexpr int length = 128, match = 2, mismatch = -1, gap = 1;

void align(int pairs, const char *first, const char *second, int *scores) {
#pragma omp parallel for
    for (int pair = 0; pair < pairs; pair++) {
        const char *a = first + pair * length, *b = second + pair * length;
        int above[length + 1] = {}, most = 0;
        for (int row = 0; row < length; row++) {
            int left = 0, corner = 0;
            for (int column = 0; column < length; column++) {
                int score = corner + (a[row] == b[column] ? match : mismatch);
                corner = above[column + 1];
                score = std::max({score, left - gap, corner - gap, 0});
                above[column + 1] = left = score;
                most = std::max(most, score);
            }
        }
        scores[pair] = most;
    }
}
