#include "../common/case.h"

void layer_norm(int rows, int columns, float epsilon, const float *gamma, const float *beta, const float *in, float *out);

static Case make(int rows, int columns) {
    const size_t width = size_t(columns), count = size_t(rows) * width;
    const float epsilon = 1e-5f;
    Case c;
    auto gamma = c.input(random_values(width, 0.5f, 1.5f, 7)), beta = c.input(random_values(width, -1, 1, 9));
    auto in = c.input(random_values(count, -5, 5));
    auto out = c.output<float>(count, {1e-4, 1e-4});
    c.launch("layer_norm", {unsigned(rows)}, {256}, columns, epsilon, gamma, beta, in, out);
    c.reference = [=](Memory &m) { layer_norm(rows, columns, epsilon, m[gamma], m[beta], m[in], m[out]); };
    c.work = 8.0 * double(count);
    return c;
}

const std::vector<Entry> cases = {
    {"layer_norm", "layer norm, 1024 rows of 1024", "GB/s", [](bool small) { return small ? make(20, 1000) : make(1024, 1024); }},
};
