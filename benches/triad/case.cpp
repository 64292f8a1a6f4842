#include "../common/case.h"

void triad(int n, double a, const double *x, const double *y, double *z);

static Case make(int n) {
    Case c;
    auto x = c.input(random_values<double>(size_t(n), -1, 1)), y = c.input(random_values<double>(size_t(n), 1, 2, 7));
    auto z = c.output<double>(size_t(n), {1e-14, 1e-14});
    c.launch("triad", {256}, {256}, n, 3.0, x, y, z);
    c.reference = [=](Memory &m) { triad(n, 3.0, m[x], m[y], m[z]); };
    c.work = 24.0 * n;
    return c;
}

const std::vector<Entry> cases = {
    {"triad", "triad, 8 Mi doubles, grid-stride loop", "GB/s", [](bool small) { return make(small ? 100001 : 1 << 23); }, false, Bound::memory},
};
