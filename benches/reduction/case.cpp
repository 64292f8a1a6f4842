#include "../common/case.h"

void reduce(int n, const float *x, float *out);

static Case make(int n) {
    const int parts = 64;
    Case c;
    // Multiples of 1/16: the sum is exact in whatever order, up to its last bits.
    std::vector<float> values(static_cast<size_t>(n));
    Random random;
    for (float &value : values) value = float(random.next() % 16) / 16;
    auto x = c.input(values);
    auto partial = c.scratch<float>(parts);
    auto sum = c.output<float>(1, {1e-6, 0});
    c.launch("reduce", {parts}, {256}, n, x, partial);
    c.launch("reduce", {1}, {256}, parts, partial, sum);
    c.reference = [=](Memory &m) { reduce(n, m[x], m[sum]); };
    c.work = 4.0 * n;
    return c;
}

const std::vector<Entry> cases = {
    {"reduction", "reduction 1 Mi", "GB/s", [](bool small) { return make(small ? 10007 : 1 << 20); }},
};
