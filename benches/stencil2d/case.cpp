#include "../common/case.h"

void stencil2d(int width, int height, const float *in, float *out);

static Case make(int size) {
    Case c;
    auto in = c.input(random_values(size_t(size) * size, -1, 1));
    auto out = c.output<float>(size_t(size) * size, {0, 1e-6});
    c.launch("stencil2d", {blocks(size_t(size), 32), blocks(size_t(size), 8)}, {32, 8}, size, size, in, out);
    c.reference = [=](Memory &m) { stencil2d(size, size, m[in], m[out]); };
    c.work = 8.0 * size * size;
    return c;
}

const std::vector<Entry> cases = {
    {"stencil2d", "5-point stencil 1024²", "GB/s", [](bool small) { return make(small ? 100 : 1024); }, false, Bound::memory},
    {"stencil2d_8192", "5-point stencil 8192² (memory)", "GB/s", [](bool small) { return make(small ? 130 : 8192); }, true, Bound::memory},
};
