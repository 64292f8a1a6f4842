#include "../common/case.h"

void convolution(int width, int height, const float *filter, const float *in, float *out);

static Case make(int size) {
    Case c;
    auto filter = c.input(random_values(49, -1, 1, 7)), in = c.input(random_values(size_t(size) * size, 0, 1));
    auto out = c.output<float>(size_t(size) * size, {1e-5, 1e-5});
    c.launch("convolution", {blocks(size_t(size), 16), blocks(size_t(size), 16)}, {16, 16}, size, size, filter, in, out);
    c.reference = [=](Memory &m) { convolution(size, size, m[filter], m[in], m[out]); };
    c.work = 2.0 * 49 * size * size;
    return c;
}

const std::vector<Entry> cases = {
    {"convolution", "convolution 1024², 7×7", "GFlop/s", [](bool small) { return make(small ? 100 : 1024); }},
    {"convolution_4096", "convolution 4096², 7×7", "GFlop/s", [](bool small) { return make(small ? 130 : 4096); }, true},
};
