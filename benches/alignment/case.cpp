#include "../common/case.h"

void align(int pairs, const char *first, const char *second, int *scores);

static Case make(int pairs) {
    const size_t length = 128;
    Random random;
    std::vector<char> a(length * size_t(pairs)), b(a.size());
    for (size_t i = 0; i < a.size(); i++) {
        a[i] = "ACGT"[random.next() % 4];
        b[i] = random.next() % 4 ? a[i] : "ACGT"[random.next() % 4];
    }
    Case c;
    auto first = c.input(a), second = c.input(b);
    auto scores = c.output<int>(size_t(pairs));
    c.launch("align", {unsigned(pairs)}, {unsigned(length)}, first, second, scores);
    c.reference = [=](Memory &m) { align(pairs, m[first], m[second], m[scores]); };
    c.work = double(length) * double(length) * pairs;
    return c;
}

const std::vector<Entry> cases = {
    {"alignment", "alignments of 1024 pairs of 128 letters", "Gcell/s", [](bool small) { return make(small ? 5 : 1024); }},
};
