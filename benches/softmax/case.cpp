#include "../common/case.h"

void softmax(int rows, int columns, const float *in, float *out);

static Case make(int rows, int columns) {
    const size_t count = size_t(rows) * size_t(columns);
    Case c;
    auto in = c.input(random_values(count, -5, 5));
    auto out = c.output<float>(count, {1e-4, 1e-9});
    c.launch("softmax", {unsigned(rows)}, {256}, columns, in, out);
    c.reference = [=](Memory &m) { softmax(rows, columns, m[in], m[out]); };
    c.work = 8.0 * double(count);
    return c;
}

const std::vector<Entry> cases = {
    {"softmax", "softmax, 1024 rows of 1024", "GB/s", [](bool small) { return small ? make(20, 1000) : make(1024, 1024); }},
};
