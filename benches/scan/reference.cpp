#include <stddef.h>

#include <algorithm>
#include <vector>

// Each piece by itself, then what stands before each: two passes, as one processor needs one. Pieces fit a cache.
void scan(int n, const int *in, int *out) {
    constexpr int piece = 1 << 15;
    const int pieces = (n + piece - 1) / piece;
    std::vector<int> before(size_t(pieces) + 1);
#pragma omp parallel
    {
#pragma omp for
        for (int p = 0; p < pieces; p++) {
            int sum = 0;
#pragma omp simd reduction(+ : sum)
            for (int i = p * piece; i < std::min(n, (p + 1) * piece); i++) sum += in[i];
            before[size_t(p) + 1] = sum;
        }
#pragma omp single
        for (int p = 0; p < pieces; p++) before[size_t(p) + 1] += before[size_t(p)];
#pragma omp for
        for (int p = 0; p < pieces; p++) {
            int sum = before[size_t(p)];
            for (int i = p * piece; i < std::min(n, (p + 1) * piece); i++) out[i] = sum += in[i];
        }
    }
}
