#include "../common/case.h"

void attention(int heads, int length, float scale, const float *q, const float *k, const float *v, float *out);

static Case make(int heads, int length) {
    const int width = 64;
    const size_t count = size_t(heads) * length * width;
    const float scale = 0.125f;
    Case c;
    auto q = c.input(random_values(count, -2, 2)), k = c.input(random_values(count, -2, 2, 7));
    auto v = c.input(random_values(count, -1, 1, 9));
    auto out = c.output<float>(count, {1e-3, 1e-4});
    c.launch("attention", {unsigned(length) / 64, unsigned(heads)}, {64}, length, scale, q, k, v, out);
    c.reference = [=](Memory &m) { attention(heads, length, scale, m[q], m[k], m[v], m[out]); };
    c.work = 4.0 * length * length * width * heads;
    return c;
}

const std::vector<Entry> cases = {
    {"attention", "attention, 8 heads of 512 × 64", "GFlop/s", [](bool small) { return small ? make(2, 64) : make(8, 512); }},
    {"attention_64", "attention, 64 heads of 512 × 64", "GFlop/s", [](bool small) { return small ? make(3, 64) : make(64, 512); }, true},
};
