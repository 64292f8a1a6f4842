#include "../common/case.h"

void sgemm(int n, const float *a, const float *b, float *c);

static Case make(const char *kernel, unsigned tile, int n) {
    Case c;
    auto a = c.input(random_values(size_t(n) * n, -1, 1)), b = c.input(random_values(size_t(n) * n, 0, 1, 7));
    auto out = c.output<float>(size_t(n) * n, {1e-4, 1e-3});
    c.launch(kernel, {unsigned(n) / tile, unsigned(n) / tile}, {tile, tile}, n, a, b, out);
    c.reference = [=](Memory &m) { sgemm(n, m[a], m[b], m[out]); };
    c.product = {n, false, a.index, b.index, out.index};
    c.work = 2.0 * n * n * n;
    return c;
}

const std::vector<Entry> cases = {
    {"sgemm16", "sgemm 512, 16×16 tiles", "GFlop/s", [](bool small) { return make("sgemm16", 16, small ? 64 : 512); }},
    {"sgemm32", "sgemm 512, 32×32 tiles", "GFlop/s", [](bool small) { return make("sgemm32", 32, small ? 64 : 512); }},
    {"sgemm32_2048", "sgemm 2048, 32×32 tiles", "GFlop/s", [](bool small) { return make("sgemm32", 32, small ? 128 : 2048); }, true},
};
