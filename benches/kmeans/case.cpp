#include "../common/case.h"

void kmeans(int n, const float *points, const float *from, int *labels, float *to);

static Case make(int n) {
    const size_t centres = 16, dimensions = 4;
    Case c;
    auto points = c.input(random_values(size_t(n) * dimensions, 0, 1));
    auto from = c.input(random_values(centres * dimensions, 0, 1, 7));
    // A point in the middle between two centres may go to either.
    auto labels = c.output<int>(size_t(n), {0, 0, 1e-3});
    auto to = c.output<float>(centres * dimensions, {1e-3, 1e-3});
    auto sums = c.scratch<float>(centres * dimensions);
    auto counts = c.scratch<int>(centres);
    c.launch("clear", {1}, {64}, sums, counts);
    c.launch("assign", {blocks(size_t(n), 256)}, {256}, n, points, from, labels, sums, counts);
    c.launch("centre", {1}, {64}, sums, counts, to);
    c.reference = [=](Memory &m) { kmeans(n, m[points], m[from], m[labels], m[to]); };
    c.work = double(n);
    return c;
}

const std::vector<Entry> cases = {
    {"kmeans", "k-means, 256 Ki points, 16 centres", "Gpoint/s", [](bool small) { return make(small ? 10007 : 1 << 18); }},
    {"kmeans_4m", "k-means, 4 Mi points, 16 centres", "Gpoint/s", [](bool small) { return make(small ? 20011 : 1 << 22); }, true},
};
