#include "../common/case.h"

void sgemm_registers(int n, const float *a, const float *b, float *c);

static Case make(int n) {
    Case c;
    auto a = c.input(random_values(size_t(n) * n, -1, 1)), b = c.input(random_values(size_t(n) * n, 0, 1, 7));
    auto out = c.output<float>(size_t(n) * n, {1e-4, 1e-3});
    c.launch("sgemm_registers", {unsigned(n) / 64, unsigned(n) / 64}, {256}, n, a, b, out);
    c.reference = [=](Memory &m) { sgemm_registers(n, m[a], m[b], m[out]); };
    c.product = {n, false, a.index, b.index, out.index};
    c.work = 2.0 * n * n * n;
    return c;
}

const std::vector<Entry> cases = {
    {"sgemm_registers", "sgemm 1024, 4×4 in registers", "GFlop/s", [](bool small) { return make(small ? 128 : 1024); }},
};
