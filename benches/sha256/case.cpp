#include "../common/case.h"

void sha256(int count, const unsigned *messages, unsigned *hashes);

static Case make(int count) {
    Random random;
    std::vector<unsigned> words(16 * size_t(count));
    for (unsigned &word : words) word = random.next() << 8 ^ random.next();
    Case c;
    auto messages = c.input(words);
    auto hashes = c.output<unsigned>(8 * size_t(count));
    c.launch("sha256", {blocks(size_t(count), 256)}, {256}, count, messages, hashes);
    c.reference = [=](Memory &m) { sha256(count, m[messages], m[hashes]); };
    c.work = count;
    return c;
}

const std::vector<Entry> cases = {
    {"sha256", "SHA-256 of 64 Ki messages", "Ghash/s", [](bool small) { return make(small ? 300 : 1 << 16); }},
};
