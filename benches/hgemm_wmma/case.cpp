#include "../common/case.h"

void hgemm(int n, const void *a, const void *b, float *c);

static Case make(int n) {
    Case c;
    auto a = c.input(random_values<Half>(size_t(n) * n, -1, 1)), b = c.input(random_values<Half>(size_t(n) * n, 0, 1, 7));
    auto out = c.output<float>(size_t(n) * n, {1e-3, 1e-2});
    c.launch("hgemm_wmma", {unsigned(n) / 32, unsigned(n) / 32}, {128}, n, a, b, out);
    c.reference = [=](Memory &m) { hgemm(n, m[a], m[b], m[out]); };
    c.work = 2.0 * n * n * n;
    return c;
}

const std::vector<Entry> cases = {
    {"hgemm_wmma", "gemm 512 of halves, wmma", "GFlop/s", [](bool small) { return make(small ? 64 : 512); }},
};
