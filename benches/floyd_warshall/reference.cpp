#include <stddef.h>
#include <string.h>

void floyd_warshall(int n, const float *in, float *out) {
    memcpy(out, in, size_t(n) * n * sizeof *out);
#pragma omp parallel
    for (int k = 0; k < n; k++) {
        const float *through = out + size_t(k) * n;
#pragma omp for
        for (int i = 0; i < n; i++) {
            if (i == k) continue;
            float *row = out + size_t(i) * n;
            const float first = row[k];
#pragma omp simd
            for (int j = 0; j < n; j++) row[j] = row[j] < first + through[j] ? row[j] : first + through[j];
        }
    }
}
