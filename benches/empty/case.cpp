#include "../common/case.h"

void empty();

static Case make() {
    Case c;
    c.launch("empty", {1}, {1});
    c.reference = [](Memory &) { empty(); };
    return c;
}

const std::vector<Entry> cases = {
    {"empty", "empty kernel, batched", "", [](bool) { return make(); }},
};
