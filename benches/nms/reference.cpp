#include <stddef.h>

#include <algorithm>
#include <vector>

// Only boxes that stay are compared with those after them; the boxes by coordinates, so that this is a vector.
void nms(int n, float threshold, const float *boxes, int *kept) {
    const size_t count = size_t(n);
    std::vector<float> x0(count), y0(count), x1(count), y1(count), areas(count);
    for (size_t i = 0; i < count; i++) {
        x0[i] = boxes[i * 4];
        y0[i] = boxes[i * 4 + 1];
        x1[i] = boxes[i * 4 + 2];
        y1[i] = boxes[i * 4 + 3];
        areas[i] = (x1[i] - x0[i]) * (y1[i] - y0[i]);
        kept[i] = 1;
    }
    for (size_t i = 0; i < count; i++) {
        if (!kept[i]) continue;
        const float left = x0[i], top = y0[i], right = x1[i], bottom = y1[i], area = areas[i];
#pragma omp simd
        for (size_t j = i + 1; j < count; j++) {
            const float width = std::max(std::min(right, x1[j]) - std::max(left, x0[j]), 0.0f);
            const float height = std::max(std::min(bottom, y1[j]) - std::max(top, y0[j]), 0.0f);
            const float common = width * height;
            kept[j] &= !(common > threshold * (area + areas[j] - common));
        }
    }
}
