#include "../common/case.h"

void stencil3d(int nx, int ny, int nz, const float *in, float *out);

static Case make(int size) {
    const size_t count = size_t(size) * size * size;
    Case c;
    auto in = c.input(random_values(count, -1, 1));
    auto out = c.output<float>(count, {0, 1e-6});
    c.launch("stencil3d", {blocks(size_t(size), 32), blocks(size_t(size), 4), blocks(size_t(size), 2)}, {32, 4, 2}, size, size,
             size, in, out);
    c.reference = [=](Memory &m) { stencil3d(size, size, size, m[in], m[out]); };
    c.work = 8.0 * double(count);
    return c;
}

const std::vector<Entry> cases = {
    {"stencil3d", "7-point stencil 160³", "GB/s", [](bool small) { return make(small ? 30 : 160); }, false, Bound::memory},
};
