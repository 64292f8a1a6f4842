#include "../common/case.h"

void fft(int count, const float *in, const float *roots, float *out);

static Case make(int count) {
    const size_t size = 1024, numbers = 2 * size * size_t(count);
    std::vector<float> turns(size);
    for (size_t i = 0; i < size / 2; i++) {
        const double angle = -2 * 3.14159265358979323846 * double(i) / double(size);
        turns[2 * i] = float(cos(angle));
        turns[2 * i + 1] = float(sin(angle));
    }
    Case c;
    auto in = c.input(random_values(numbers, -1, 1));
    auto roots = c.input(turns);
    auto out = c.output<float>(numbers, {1e-4, 1e-3});
    c.launch("fft", {unsigned(count)}, {512}, in, roots, out);
    c.reference = [=](Memory &m) { fft(count, m[in], m[roots], m[out]); };
    c.work = 5.0 * 10 * double(size) * count;
    return c;
}

const std::vector<Entry> cases = {
    {"fft", "512 FFTs of 1024 in shared memory", "GFlop/s", [](bool small) { return make(small ? 5 : 512); }},
};
