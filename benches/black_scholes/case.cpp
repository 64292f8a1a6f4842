#include "../common/case.h"

void black_scholes(int n, float rate, float volatility, const float *price, const float *strike, const float *years,
                   float *call, float *put);

static Case make(int n) {
    const float rate = 0.02f, volatility = 0.3f;
    const Tolerance tolerance = {1e-4, 1e-3};
    Case c;
    auto price = c.input(random_values(size_t(n), 5, 30)), strike = c.input(random_values(size_t(n), 1, 100, 7));
    auto years = c.input(random_values(size_t(n), 0.25f, 10, 9));
    auto call = c.output<float>(size_t(n), tolerance), put = c.output<float>(size_t(n), tolerance);
    c.launch("black_scholes", {blocks(size_t(n), 256)}, {256}, n, rate, volatility, price, strike, years, call, put);
    c.reference = [=](Memory &m) {
        black_scholes(n, rate, volatility, m[price], m[strike], m[years], m[call], m[put]);
    };
    c.work = double(n);
    return c;
}

const std::vector<Entry> cases = {
    {"black_scholes", "Black-Scholes 256 Ki", "Goption/s", [](bool small) { return make(small ? 10007 : 1 << 18); }},
    {"black_scholes_4m", "Black-Scholes 4 Mi", "Goption/s", [](bool small) { return make(small ? 20011 : 1 << 22); }, true},
};
