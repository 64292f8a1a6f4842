#include "../common/case.h"

void radix_sort(int n, const unsigned *keys, unsigned *out);

static Case make(int n) {
    const unsigned groups = unsigned(n) / 1024;
    Case c;
    std::vector<unsigned> values(static_cast<size_t>(n));
    Random random;
    for (unsigned &value : values) value = random.next() << 16 ^ random.next();
    auto keys = c.input(values);
    auto other = c.scratch<unsigned>(size_t(n));
    auto out = c.output<unsigned>(size_t(n));
    auto counts = c.scratch<int>(groups * 16);
    for (int shift = 0; shift < 32; shift += 4) {
        const auto from = shift == 0 ? keys : shift % 8 ? other : out, to = shift % 8 ? out : other;
        c.launch("radix_count", {groups}, {256}, shift, from, counts);
        c.launch("radix_scan", {1}, {1024}, int(groups) * 16, counts);
        c.launch("radix_scatter", {groups}, {256}, shift, from, counts, to);
    }
    c.reference = [=](Memory &m) { radix_sort(n, m[keys], m[out]); };
    c.work = double(n);
    return c;
}

const std::vector<Entry> cases = {
    {"radix_sort", "radix sort 1 Mi", "Gkey/s", [](bool small) { return make(small ? 8 << 10 : 1 << 20); }},
};
