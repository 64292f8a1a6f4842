#include "../common/case.h"

void relax(int width, int height, float rate, const float *from, float *to);

static Case make(int width, int height) {
    const size_t size = 9 * size_t(width) * size_t(height);
    const float rate = 1.2f;
    Case c;
    auto from = c.input(random_values(size, 0.05f, 0.15f));
    auto to = c.output<float>(size, {1e-4, 1e-6});
    c.launch("relax", {blocks(size_t(width), 32), blocks(size_t(height), 8)}, {32, 8}, width, height, rate, from, to);
    c.reference = [=](Memory &m) { relax(width, height, rate, m[from], m[to]); };
    c.work = 2.0 * 4 * double(size);
    return c;
}

const std::vector<Entry> cases = {
    {"lattice_boltzmann", "lattice Boltzmann, 1024², 9 speeds", "GB/s",
     [](bool small) { return small ? make(70, 20) : make(1024, 1024); }, false, Bound::memory},
};
