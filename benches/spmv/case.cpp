#include "../common/case.h"

void spmv(int rows, const int *begins, const int *columns, const float *values, const float *x, float *y);

// Eight to 71 elements in a row, near the diagonal and anywhere.
static Case make(int rows) {
    Random random;
    std::vector<int> begins = {0}, columns;
    for (int row = 0; row < rows; row++) {
        const int count = 8 + int(random.next() % 64);
        for (int i = 0; i < count; i++) {
            const int near = row + i - count / 2, any = int(random.next() % unsigned(rows));
            columns.push_back(i % 4 == 0 || near < 0 || near >= rows ? any : near);
        }
        begins.push_back(int(columns.size()));
    }
    const size_t count = columns.size();
    Case c;
    auto b = c.input(begins), k = c.input(columns);
    auto v = c.input(random_values(count, -1, 1)), x = c.input(random_values(size_t(rows), -1, 1, 7));
    auto y = c.output<float>(size_t(rows), {1e-4, 1e-4});
    c.launch("spmv", {blocks(size_t(rows) * 32, 256)}, {256}, rows, b, k, v, x, y);
    c.reference = [=](Memory &m) { spmv(rows, m[b], m[k], m[v], m[x], m[y]); };
    c.work = 2.0 * double(count);
    return c;
}

const std::vector<Entry> cases = {
    {"spmv", "sparse matrix × vector, 64 Ki rows", "GFlop/s", [](bool small) { return make(small ? 1000 : 1 << 16); }},
};
