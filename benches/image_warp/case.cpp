#include "../common/case.h"

void image_warp(int width, int height, float xx, float xy, float x0, float yx, float yy, float y0, const unsigned char *in,
                unsigned char *out);

static Case make(int size) {
    const size_t count = size_t(size) * size * 3;
    const float xx = 0.8f, xy = 0.3f, x0 = -0.05f * float(size), yx = -0.3f, yy = 0.8f, y0 = 0.25f * float(size);
    Case c;
    auto in = c.input(random_values<unsigned char>(count, 0, 255));
    // A place that is rounded otherwise gives the neighbour's value, at the picture's edge another one.
    auto out = c.output<unsigned char>(count, {0, 1, 1e-3});
    c.launch("image_warp", {blocks(size_t(size), 32), blocks(size_t(size), 8)}, {32, 8}, size, size, xx, xy, x0, yx, yy, y0,
             in, out);
    c.reference = [=](Memory &m) { image_warp(size, size, xx, xy, x0, yx, yy, y0, m[in], m[out]); };
    c.work = double(size) * size;
    return c;
}

const std::vector<Entry> cases = {
    {"image_warp", "bilinear warp 1024², RGB", "Gpixel/s", [](bool small) { return make(small ? 100 : 1024); }},
};
