#include "../common/case.h"

void mandelbrot(int width, int height, int limit, float step, float *out);

static Case make(int size, int limit) {
    const float step = 2.5f / float(size);
    Case c;
    // When a point escapes hangs on rounding near the edge: one in a hundred may differ.
    auto out = c.output<float>(size_t(size) * size, {0, 1, 0.01});
    c.launch("mandelbrot", {blocks(size_t(size), 32), blocks(size_t(size), 8)}, {32, 8}, size, size, limit, step, out);
    c.reference = [=](Memory &m) { mandelbrot(size, size, limit, step, m[out]); };
    c.work = double(size) * size;
    return c;
}

const std::vector<Entry> cases = {
    {"mandelbrot", "Mandelbrot 1024², 256", "Gpixel/s", [](bool small) { return make(small ? 100 : 1024, 256); }},
    {"mandelbrot_4096", "Mandelbrot 4096², 256", "Gpixel/s", [](bool small) { return make(small ? 130 : 4096, 256); }, true},
};
