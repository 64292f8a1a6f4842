#include "../common/case.h"

void transpose(int n, const float *in, float *out);

static Case make(int n) {
    Case c;
    auto in = c.input(random_values(size_t(n) * n, -1, 1));
    auto out = c.output<float>(size_t(n) * n);
    c.launch("transpose", {unsigned(n) / 32, unsigned(n) / 32}, {32, 8}, n, in, out);
    c.reference = [=](Memory &m) { transpose(n, m[in], m[out]); };
    c.work = 8.0 * n * n;
    return c;
}

const std::vector<Entry> cases = {
    {"transpose", "transpose 2048²", "GB/s", [](bool small) { return make(small ? 96 : 2048); }, false, Bound::memory},
};
