#include "../common/case.h"

void live(int width, int height, const unsigned char *from, unsigned char *to);

static Case make(int size) {
    const size_t count = size_t(size) * size;
    Case c;
    auto in = c.input(random_values<unsigned char>(count, 0, 1.9f));
    auto out = c.output<unsigned char>(count);
    c.launch("live", {blocks(size_t(size), 32), blocks(size_t(size), 8)}, {32, 8}, size, size, in, out);
    c.reference = [=](Memory &m) { live(size, size, m[in], m[out]); };
    c.work = double(count);
    return c;
}

const std::vector<Entry> cases = {
    {"game_of_life", "game of life 2048²", "Gcell/s", [](bool small) { return make(small ? 100 : 2048); }},
};
