#include "../common/case.h"

void scan(int n, const int *in, int *out);

static Case make(int n) {
    const unsigned parts = blocks(size_t(n), 1024);
    Case c;
    auto in = c.input(random_values<int>(size_t(n), -100, 100));
    auto out = c.output<int>(size_t(n));
    auto sums = c.scratch<int>(parts);
    c.launch("scan_blocks", {parts}, {1024}, n, in, out, sums);
    c.launch("scan_sums", {1}, {1024}, int(parts), sums);
    c.launch("scan_add", {parts}, {1024}, n, sums, out);
    c.reference = [=](Memory &m) { scan(n, m[in], m[out]); };
    c.work = 8.0 * n;
    return c;
}

const std::vector<Entry> cases = {
    {"scan", "scan 1 Mi", "GB/s", [](bool small) { return make(small ? 10007 : 1 << 20); }},
};
