#include "../common/case.h"

void monte_carlo(int threads, unsigned seed, unsigned *count);

static Case make(int groups) {
    const int threads = groups * 256;
    const unsigned seed = 88172645;
    Case c;
    auto count = c.output<unsigned>(1);
    c.launch("clear", {1}, {1}, count);
    c.launch("inside", {unsigned(groups)}, {256}, seed, count);
    c.reference = [=](Memory &m) { monte_carlo(threads, seed, m[count]); };
    c.work = 256.0 * threads;
    return c;
}

const std::vector<Entry> cases = {
    {"monte_carlo", "Monte Carlo, 64 Mi points", "Gpoint/s", [](bool small) { return make(small ? 7 : 1024); }},
};
