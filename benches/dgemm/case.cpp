#include "../common/case.h"

void dgemm(int n, const double *a, const double *b, double *c);

static Case make(int n) {
    Case c;
    auto a = c.input(random_values<double>(size_t(n) * n, -1, 1)), b = c.input(random_values<double>(size_t(n) * n, 0, 1, 7));
    auto out = c.output<double>(size_t(n) * n, {1e-12, 1e-11});
    c.launch("dgemm", {unsigned(n) / 16, unsigned(n) / 16}, {16, 16}, n, a, b, out);
    c.reference = [=](Memory &m) { dgemm(n, m[a], m[b], m[out]); };
    c.product = {n, true, a.index, b.index, out.index};
    c.work = 2.0 * n * n * n;
    return c;
}

const std::vector<Entry> cases = {
    {"dgemm", "dgemm 512, 16×16 tiles", "GFlop/s", [](bool small) { return make(small ? 64 : 512); }},
};
