#include "../common/case.h"

void gemv(int rows, int columns, const float *a, const float *x, float *y);

static Case make(int rows, int columns) {
    Case c;
    auto a = c.input(random_values(size_t(rows) * columns, -1, 1)), x = c.input(random_values(size_t(columns), -1, 1, 7));
    auto y = c.output<float>(size_t(rows), {1e-4, 1e-4});
    c.launch("gemv", {blocks(size_t(rows) * 32, 256)}, {256}, rows, columns, a, x, y);
    c.reference = [=](Memory &m) { gemv(rows, columns, m[a], m[x], m[y]); };
    c.work = 2.0 * rows * columns;
    return c;
}

const std::vector<Entry> cases = {
    {"gemv", "matrix × vector, 1024 × 1000", "GFlop/s", [](bool small) { return make(small ? 100 : 1024, small ? 77 : 1000); }},
};
