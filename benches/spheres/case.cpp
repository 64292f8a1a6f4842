#include "../common/case.h"

void spheres(int width, int height, int count, const float *spheres, float *out);

static Case make(int size, int count) {
    Random random;
    std::vector<float> each;
    for (int i = 0; i < count; i++)
        for (float value : {random.uniform(-2, 2), random.uniform(-2, 2), random.uniform(3, 9), random.uniform(0.1f, 0.5f)})
            each.push_back(value);
    Case c;
    auto in = c.input(each);
    // Which sphere a ray meets hangs on rounding at the edges: one in a hundred may differ.
    auto out = c.output<float>(size_t(size) * size, {1e-3, 1e-3, 0.01});
    c.launch("spheres", {blocks(size_t(size), 16), blocks(size_t(size), 16)}, {16, 16}, size, size, count, in, out);
    c.reference = [=](Memory &m) { spheres(size, size, count, m[in], m[out]); };
    c.work = double(size) * size * count;
    return c;
}

const std::vector<Entry> cases = {
    {"spheres", "rays through 1024², 64 spheres", "Gtest/s", [](bool small) { return make(small ? 100 : 1024, 64); }},
};
