// What stands in for a neural network here: it looks for patches of one colour and answers in the form that a
// one-stage detector's last layer has, so that what follows on the device is the real thing.
#pragma once

#include <math.h>

#include "image.h"

constexpr int cells = 32;  // the picture is divided into cells x cells
constexpr int anchors = 3, classes = 3;
constexpr int channels = 5 + classes;  // x, y, width, height, objectness, one for each class
constexpr int predictions = anchors * cells * cells;

const char *const class_names[classes] = {"skin", "red", "blue"};

// Sizes of the boxes that the three predictions of a cell start from, as parts of the picture's shorter side.
__host__ __device__ inline float anchor_width(int anchor) { return anchor == 0 ? 0.12f : anchor == 1 ? 0.24f : 0.42f; }
__host__ __device__ inline float anchor_height(int anchor) { return anchor == 0 ? 0.14f : anchor == 1 ? 0.30f : 0.42f; }

// The layout of the head: all cells of a channel lie together, so neighbouring threads read neighbours.
__host__ __device__ inline int head_index(int anchor, int channel, int cell) {
    return (anchor * channels + channel) * cells * cells + cell;
}

// The class of a pixel by its colour, or -1.
inline int colour_class(const uint8_t *p) {
    const float r = p[0], g = p[1], b = p[2];
    const float y = 0.299f * r + 0.587f * g + 0.114f * b;
    const float cb = 128 + 0.564f * (b - y), cr = 128 + 0.713f * (r - y);
    if (r > 140 && r > 1.7f * g && r > 1.7f * b) return 1;
    if (b > 80 && b > 1.3f * r && b > 1.15f * g) return 2;
    if (y > 90 && cb > 85 && cb < 122 && cr > 138 && cr < 165) return 0;
    return -1;
}

// Sums over all pixels above and to the left, so that the sum over any rectangle takes four reads.
class Integral {
public:
    Integral(const Image &image, int wanted) : width_(image.width), height_(image.height) {
        sums_.resize(size_t(width_ + 1) * (height_ + 1));
        for (int y = 0; y < height_; y++)
            for (int x = 0, row = 0; x < width_; x++) {
                row += colour_class(image.at(x, y)) == wanted;
                at(x + 1, y + 1) = at(x + 1, y) + row;
            }
    }

    // The part of a rectangle's pixels that belong to the class; what lies outside the picture does not.
    float share(float x0, float y0, float x1, float y1) {
        const int left = clamp(x0, width_), right = clamp(x1, width_);
        const int top = clamp(y0, height_), bottom = clamp(y1, height_);
        const int inside = at(right, bottom) - at(left, bottom) - at(right, top) + at(left, top);
        return float(inside) / fmaxf(1, (x1 - x0) * (y1 - y0));
    }

private:
    int &at(int x, int y) { return sums_[size_t(y) * (width_ + 1) + x]; }
    static int clamp(float value, int top) { return int(fminf(fmaxf(value, 0), float(top))); }
    int width_, height_;
    std::vector<int> sums_;
};

// A box scores high when it is full of a colour and its surroundings are not.
inline std::vector<float> make_head(const Image &image) {
    std::vector<float> head(size_t(anchors) * channels * cells * cells);
    std::vector<Integral> integrals;
    for (int c = 0; c < classes; c++) integrals.emplace_back(image, c);
    const float side = float(image.width < image.height ? image.width : image.height);
    for (int anchor = 0; anchor < anchors; anchor++)
        for (int cell = 0; cell < cells * cells; cell++) {
            const float x = (cell % cells + 0.5f) * image.width / cells, w = anchor_width(anchor) * side;
            const float y = (cell / cells + 0.5f) * image.height / cells, h = anchor_height(anchor) * side;
            float best = -1, lean_x = 0, lean_y = 0;
            for (int c = 0; c < classes; c++) {
                Integral &integral = integrals[c];
                const float inside = integral.share(x - w / 2, y - h / 2, x + w / 2, y + h / 2);
                const float around = (integral.share(x - w, y - h, x + w, y + h) * 4 - inside) / 3;
                const float fit = inside - 1.5f * around;
                head[head_index(anchor, 5 + c, cell)] = 10 * (inside - 0.4f);
                if (fit > best) {
                    best = fit;
                    // Towards the half that has more of the colour.
                    lean_x = integral.share(x, y - h / 2, x + w / 2, y + h / 2) -
                             integral.share(x - w / 2, y - h / 2, x, y + h / 2);
                    lean_y = integral.share(x - w / 2, y, x + w / 2, y + h / 2) -
                             integral.share(x - w / 2, y - h / 2, x + w / 2, y);
                }
            }
            head[head_index(anchor, 0, cell)] = lean_x;
            head[head_index(anchor, 1, cell)] = lean_y;
            head[head_index(anchor, 2, cell)] = best - 0.5f;
            head[head_index(anchor, 3, cell)] = best - 0.5f;
            head[head_index(anchor, 4, cell)] = 14 * (best - 0.35f);
        }
    return head;
}

struct Disc {
    int x, y, radius, kind;
};

// A picture for runs without a file, and what is in it.
const Disc discs[] = {{60, 70, 30, 0}, {200, 60, 22, 1}, {130, 190, 55, 2}, {280, 200, 34, 1}};

inline Image scene_with_discs() {
    const uint8_t colours[classes][3] = {{224, 172, 140}, {220, 40, 30}, {30, 50, 210}};
    Image image(360, 280);
    unsigned random = 1;
    for (int y = 0; y < image.height; y++)
        for (int x = 0; x < image.width; x++) {
            random = random * 1664525 + 1013904223;
            const int grey = 100 + int(random >> 27);
            uint8_t *pixel = image.at(x, y);
            for (int c = 0; c < 3; c++) pixel[c] = uint8_t(grey);
            for (const Disc &disc : discs)
                if ((x - disc.x) * (x - disc.x) + (y - disc.y) * (y - disc.y) < disc.radius * disc.radius)
                    for (int c = 0; c < 3; c++) pixel[c] = colours[disc.kind][c];
        }
    return image;
}
