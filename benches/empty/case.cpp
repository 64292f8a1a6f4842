#include "../common/case.h"

void empty();

static Case make(bool waited) {
    Case c;
    c.waited = waited;
    c.launch("empty", {1}, {1});
    c.reference = [](Memory &) { empty(); };
    return c;
}

const std::vector<Entry> cases = {
    {"empty", "empty kernel, batched", "", [](bool) { return make(false); }, false, Bound::launch},
    {"empty_waited", "empty kernel, each waited for", "", [](bool) { return make(true); }, false, Bound::launch},
};
