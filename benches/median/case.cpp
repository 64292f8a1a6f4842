#include "../common/case.h"

void median(int width, int height, const unsigned char *in, unsigned char *out);

static Case make(int size) {
    const size_t count = size_t(size) * size;
    Case c;
    auto in = c.input(random_values<unsigned char>(count, 0, 255));
    auto out = c.output<unsigned char>(count);
    c.launch("median", {blocks(size_t(size), 32), blocks(size_t(size), 8)}, {32, 8}, size, size, in, out);
    c.reference = [=](Memory &m) { median(size, size, m[in], m[out]); };
    c.work = double(count);
    return c;
}

const std::vector<Entry> cases = {
    {"median", "median filter 2048², 3×3", "Gpixel/s", [](bool small) { return make(small ? 100 : 2048); }},
};
