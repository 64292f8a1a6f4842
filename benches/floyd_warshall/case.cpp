#include "../common/case.h"

void floyd_warshall(int n, const float *in, float *out);

static Case make(int n) {
    Case c;
    std::vector<float> lengths = random_values(size_t(n) * n, 1, 100);
    for (int i = 0; i < n; i++) lengths[size_t(i) * n + i] = 0;
    auto in = c.input(lengths);
    auto other = c.scratch<float>(size_t(n) * n);
    auto out = c.output<float>(size_t(n) * n);  // sums of the same lengths in the same order: no tolerance
    for (int k = 0; k < n; k++) {
        const auto from = k == 0 ? in : k % 2 ? other : out, to = k % 2 ? out : other;
        c.launch("shorten", {blocks(size_t(n), 32), blocks(size_t(n), 8)}, {32, 8}, n, k, from, to);
    }
    c.reference = [=](Memory &m) { floyd_warshall(n, m[in], m[out]); };
    c.work = 2.0 * n * n * n;
    return c;
}

const std::vector<Entry> cases = {
    {"floyd_warshall", "Floyd-Warshall 512", "GFlop/s", [](bool small) { return make(small ? 64 : 512); }},
};
