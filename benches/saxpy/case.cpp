#include "../common/case.h"

void saxpy(int n, float a, const float *x, float *y);

static Case make(int n) {
    const float a = 1e-3f;
    Case c;
    auto x = c.input(random_values(size_t(n), -1, 1));
    auto y = c.result(random_values(size_t(n), 1, 2), {1e-6, 0});
    c.launch("saxpy", {blocks(size_t(n), 256)}, {256}, n, a, x, y);
    c.reference = [=](Memory &m) { saxpy(n, a, m[x], m[y]); };
    c.work = 12.0 * n;
    return c;
}

const std::vector<Entry> cases = {
    {"saxpy_64k", "saxpy, 64 Ki (cache)", "GB/s", [](bool small) { return make(small ? 1000 : 1 << 16); }, false, Bound::memory},
    {"saxpy_16m", "saxpy, 16 Mi (memory)", "GB/s", [](bool small) { return make(small ? 100000 : 1 << 24); }, false, Bound::memory},
};
