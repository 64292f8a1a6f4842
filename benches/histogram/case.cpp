#include "../common/case.h"

void histogram(int n, const unsigned char *values, unsigned *counts);

static Case make(int n) {
    Case c;
    // Darker values are more frequent, as in pictures.
    std::vector<unsigned char> pixels(static_cast<size_t>(n));
    Random random;
    for (unsigned char &pixel : pixels) {
        const float value = random.uniform(0, 1);
        pixel = static_cast<unsigned char>(value * value * 255);
    }
    auto values = c.input(pixels);
    auto counts = c.output<unsigned>(256);
    c.launch("clear", {1}, {256}, counts);
    c.launch("histogram", {64}, {256}, n, values, counts);
    c.reference = [=](Memory &m) { histogram(n, m[values], m[counts]); };
    c.work = double(n);
    return c;
}

const std::vector<Entry> cases = {
    {"histogram", "histogram 4 Mi bytes", "GB/s", [](bool small) { return make(small ? 10007 : 1 << 22); }},
};
