#include "../common/case.h"

void nms(int n, float threshold, const float *boxes, int *kept);

static Case make(int n) {
    const float threshold = 0.5f;
    const unsigned words = blocks(size_t(n), 64);
    Case c;
    // Around one centre for ten boxes, as a detector answers.
    std::vector<float> corners;
    Random random;
    std::vector<float> centres = random_values(size_t(n) / 10 * 2 + 2, 0, 1000, 7);
    for (int i = 0; i < n; i++) {
        const size_t centre = random.next() % (centres.size() / 2);
        const float x = centres[centre * 2] + random.uniform(-3, 3), y = centres[centre * 2 + 1] + random.uniform(-3, 3);
        const float width = random.uniform(20, 40), height = random.uniform(20, 40);
        corners.insert(corners.end(), {x, y, x + width, y + height});
    }
    auto boxes = c.input(corners);
    auto masks = c.scratch<uint64_t>(size_t(n) * words);
    auto kept = c.output<int>(size_t(n), {0, 0, 2e-3});
    c.launch("overlaps", {words, words}, {64}, n, threshold, boxes, masks);
    c.launch("keep", {1}, {64}, n, int(words), masks, kept);
    c.reference = [=](Memory &m) { nms(n, threshold, m[boxes], m[kept]); };
    c.work = double(n);
    return c;
}

const std::vector<Entry> cases = {
    {"nms", "boxes that overlap (NMS), 2000", "Gbox/s", [](bool small) { return make(small ? 200 : 2000); }},
};
