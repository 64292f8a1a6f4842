#include "../common/case.h"

void sort(int n, const unsigned *in, unsigned *out);

static Case make(int n) {
    const unsigned groups = unsigned(n) / 1024;
    Case c;
    std::vector<unsigned> values(static_cast<size_t>(n));
    Random random;
    for (unsigned &value : values) value = random.next() << 16 ^ random.next();
    auto in = c.input(values);
    auto out = c.output<unsigned>(size_t(n));
    c.launch("bitonic_block", {groups}, {512}, in, out);
    for (int k = 2048; k <= n; k *= 2) {
        for (int j = k / 2; j >= 1024; j /= 2) c.launch("bitonic_step", {groups * 2}, {256}, k, j, out);
        c.launch("bitonic_merge", {groups}, {512}, k, out);
    }
    c.reference = [=](Memory &m) { sort(n, m[in], m[out]); };
    c.work = double(n);
    return c;
}

const std::vector<Entry> cases = {
    {"bitonic_sort", "bitonic sort 256 Ki", "Gkey/s", [](bool small) { return make(small ? 8 << 10 : 1 << 18); }},
};
