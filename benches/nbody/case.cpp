#include "../common/case.h"

void nbody(int n, float softening, const float *bodies, float *accelerations);

static Case make(int n) {
    const float softening = 0.01f;
    Case c;
    auto bodies = c.input(random_values(size_t(n) * 4, 0, 1));
    auto out = c.output<float>(size_t(n) * 4, {1e-3, 1e-4 * n});
    c.launch("nbody", {unsigned(n) / 256}, {256}, n, softening, bodies, out);
    c.reference = [=](Memory &m) { nbody(n, softening, m[bodies], m[out]); };
    c.work = 20.0 * n * n;
    return c;
}

const std::vector<Entry> cases = {
    {"nbody", "n-body 4096", "GFlop/s", [](bool small) { return make(small ? 512 : 4096); }},
    {"nbody_32k", "n-body 32 Ki", "GFlop/s", [](bool small) { return make(small ? 768 : 1 << 15); }, true},
};
