// What follows a detection network: its raw numbers are decoded to boxes, weak ones are dropped, the rest sorted, and of
// boxes that overlap only the best is kept (non-maximum suppression). All of it on the device.
//
//     detection [PICTURE]         a PNG or PPM file; the boxes are drawn into PICTURE-boxes.png beside it

#include <algorithm>

#include "scene.h"

constexpr float min_score = 0.45f;    // weaker predictions are dropped
constexpr float max_overlap = 0.35f;  // of two boxes of one class that share more, the weaker goes

struct Box {
    float x0, y0, x1, y1, area, score;
    int kind, prediction;
};

// The order of the result: best score first; equal ones as the network has them.
__host__ __device__ inline bool comes_before(const Box &a, const Box &b) {
    return a.score > b.score || (a.score == b.score && a.prediction < b.prediction);
}

// Whether a box stands in the way of another. The explicit fmaf keeps host and device at the same number.
__host__ __device__ inline bool suppresses(const Box &a, const Box &b) {
    if (a.kind != b.kind) return false;
    const float width = fminf(a.x1, b.x1) - fmaxf(a.x0, b.x0), height = fminf(a.y1, b.y1) - fmaxf(a.y0, b.y0);
    if (width <= 0 || height <= 0) return false;
    const float both = fmaf(-width, height, a.area + b.area);
    return width * height > max_overlap * both;
}

__host__ __device__ inline float sigmoid(float x) { return 1 / (1 + expf(-x)); }

// One prediction of the head as a box in pixels.
__host__ __device__ inline Box decode_one(const float *head, int prediction, int width, int height) {
    const int anchor = prediction / (cells * cells), cell = prediction % (cells * cells);
    float raw[channels];
    for (int channel = 0; channel < channels; channel++) raw[channel] = head[head_index(anchor, channel, cell)];
    int kind = 0;
    for (int c = 1; c < classes; c++)
        if (raw[5 + c] > raw[5 + kind]) kind = c;
    const float side = float(width < height ? width : height);
    const float x = (cell % cells + 2 * sigmoid(raw[0]) - 0.5f) * width / cells;
    const float y = (cell / cells + 2 * sigmoid(raw[1]) - 0.5f) * height / cells;
    const float stretch_w = 2 * sigmoid(raw[2]), stretch_h = 2 * sigmoid(raw[3]);
    const float w = stretch_w * stretch_w * anchor_width(anchor) * side;
    const float h = stretch_h * stretch_h * anchor_height(anchor) * side;
    const float x0 = x - w / 2, x1 = x + w / 2, y0 = y - h / 2, y1 = y + h / 2;
    return {x0, y0, x1, y1, (x1 - x0) * (y1 - y0), sigmoid(raw[4]) * sigmoid(raw[5 + kind]), kind, prediction};
}

// Decodes every prediction and appends those worth keeping, in no particular order.
__global__ void decode(const float *head, int width, int height, Box *boxes, int *count) {
    const int prediction = blockIdx.x * blockDim.x + threadIdx.x;
    if (prediction >= predictions) return;
    const Box box = decode_one(head, prediction, width, height);
    if (box.score >= min_score) boxes[atomicAdd(count, 1)] = box;
}

// Each box finds its own place by counting those before it.
__global__ void sort(const Box *boxes, int count, Box *sorted) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    int place = 0;
    for (int j = 0; j < count; j++) place += comes_before(boxes[j], boxes[i]);
    sorted[place] = boxes[i];
}

// Bit j of word w in row i: box i suppresses box 32 w + j, which comes after it.
__global__ void find_overlaps(const Box *boxes, int count, unsigned *overlaps) {
    const int i = blockIdx.y * blockDim.y + threadIdx.y, j = blockIdx.x * 32 + threadIdx.x;
    const bool hit = i < count && j < count && j > i && suppresses(boxes[i], boxes[j]);
    const unsigned word = __ballot_sync(0xffffffff, hit);
    if (i < count && threadIdx.x == 0) overlaps[i * gridDim.x + blockIdx.x] = word;
}

// Goes through the boxes from the best on: one that nothing suppressed is kept, and suppresses others. One block; each
// thread owns one word of the suppressed set.
__global__ void keep_best(const unsigned *overlaps, int count, int words, int *kept, int *kept_count) {
    __shared__ unsigned suppressed[(predictions + 31) / 32];
    for (int word = threadIdx.x; word < words; word += blockDim.x) suppressed[word] = 0;
    int found = 0;
    for (int i = 0; i < count; i++) {
        __syncthreads();
        const bool keep = !(suppressed[i / 32] >> i % 32 & 1);
        __syncthreads();
        if (!keep) continue;
        if (threadIdx.x == 0) kept[found] = i;
        found++;
        for (int word = threadIdx.x; word < words; word += blockDim.x) suppressed[word] |= overlaps[i * words + word];
    }
    if (threadIdx.x == 0) *kept_count = found;
}

template <class T>
T *device_array(size_t count) {
    T *pointer;
    CUDA_CHECK(cudaMalloc(&pointer, count * sizeof(T)));
    return pointer;
}

template <class T>
std::vector<T> to_host(const T *pointer, size_t count) {
    std::vector<T> values(count);
    CUDA_CHECK(cudaMemcpy(values.data(), pointer, count * sizeof(T), cudaMemcpyDeviceToHost));
    return values;
}

// The boxes that are left, best first; `candidates` becomes what there was before the suppression.
std::vector<Box> detect(const std::vector<float> &head, int width, int height, std::vector<Box> &candidates) {
    float *device_head = device_array<float>(head.size());
    Box *boxes = device_array<Box>(predictions), *sorted = device_array<Box>(predictions);
    int *counts = device_array<int>(2);
    CUDA_CHECK(cudaMemcpy(device_head, head.data(), head.size() * sizeof(float), cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaMemset(counts, 0, 2 * sizeof(int)));

    decode<<<(predictions + 127) / 128, 128>>>(device_head, width, height, boxes, counts);
    CUDA_CHECK(cudaGetLastError());
    const int count = to_host(counts, 1)[0];
    REQUIRE(count > 0, "no box scores %g or more", min_score);

    const int words = (count + 31) / 32;
    unsigned *overlaps = device_array<unsigned>(size_t(count) * words);
    int *kept = device_array<int>(count);
    sort<<<(count + 127) / 128, 128>>>(boxes, count, sorted);
    find_overlaps<<<dim3(words, (count + 3) / 4), dim3(32, 4)>>>(sorted, count, overlaps);
    keep_best<<<1, 128>>>(overlaps, count, words, kept, counts + 1);
    CUDA_CHECK(cudaGetLastError());

    candidates = to_host(sorted, count);
    std::vector<Box> best;
    for (int i : to_host(kept, to_host(counts + 1, 1)[0])) best.push_back(candidates[i]);
    for (void *memory : {(void *)device_head, (void *)boxes, (void *)sorted, (void *)counts, (void *)overlaps,
                         (void *)kept})
        CUDA_CHECK(cudaFree(memory));
    return best;
}

// The same on the host, one box after another.
void check(const std::vector<float> &head, int width, int height, const std::vector<Box> &candidates,
           const std::vector<Box> &best) {
    // expf may differ in the last place, so scores and corners agree closely, not exactly.
    std::vector<bool> present(predictions);
    for (const Box &box : candidates) {
        const Box expected = decode_one(head.data(), box.prediction, width, height);
        const float corners = fmaxf(fmaxf(fabsf(box.x0 - expected.x0), fabsf(box.x1 - expected.x1)),
                                    fmaxf(fabsf(box.y0 - expected.y0), fabsf(box.y1 - expected.y1)));
        REQUIRE(corners < 1e-3f * float(width + height), "prediction %d: a corner off by %g", box.prediction, corners);
        REQUIRE(fabsf(box.score - expected.score) < 1e-5f && box.kind == expected.kind, "prediction %d: score %g, not %g",
                box.prediction, box.score, expected.score);
        REQUIRE(!present[box.prediction], "prediction %d is there twice", box.prediction);
        present[box.prediction] = true;
    }
    for (int prediction = 0; prediction < predictions; prediction++) {
        const float score = decode_one(head.data(), prediction, width, height).score;
        REQUIRE(present[prediction] || score < min_score + 1e-5f, "prediction %d is missing", prediction);
    }
    // From the device's own boxes on, everything is exact.
    REQUIRE(std::is_sorted(candidates.begin(), candidates.end(), comes_before), "the boxes are not in order");
    std::vector<Box> expected;
    for (const Box &box : candidates)
        if (std::none_of(expected.begin(), expected.end(), [&](const Box &better) { return suppresses(better, box); }))
            expected.push_back(box);
    REQUIRE(best.size() == expected.size(), "%zu boxes are left, not %zu", best.size(), expected.size());
    for (size_t i = 0; i < best.size(); i++)
        REQUIRE(best[i].prediction == expected[i].prediction, "box %zu is prediction %d", i, best[i].prediction);
}

void draw(Image &image, const Box &box) {
    const uint8_t colours[classes][3] = {{255, 255, 0}, {0, 255, 255}, {255, 0, 255}};
    const int x0 = std::max(0, int(box.x0)), x1 = std::min(image.width - 1, int(box.x1));
    const int y0 = std::max(0, int(box.y0)), y1 = std::min(image.height - 1, int(box.y1));
    for (int y = y0; y <= y1; y++)
        for (int x = x0; x <= x1; x++)
            if (x - x0 < 3 || x1 - x < 3 || y - y0 < 3 || y1 - y < 3)
                std::copy_n(colours[box.kind], 3, image.at(x, y));
}

int main(int argc, char **argv) {
    Image image = argc > 1 ? load_image(argv[1]) : scene_with_discs();
    const std::vector<float> head = make_head(image);
    std::vector<Box> candidates;
    const std::vector<Box> best = detect(head, image.width, image.height, candidates);
    check(head, image.width, image.height, candidates, best);

    for (const Box &box : best) {
        printf("%-4s %.2f at (%.0f, %.0f), %.0f x %.0f\n", class_names[box.kind], box.score, (box.x0 + box.x1) / 2,
               (box.y0 + box.y1) / 2, box.x1 - box.x0, box.y1 - box.y0);
        draw(image, box);
    }
    if (argc > 1) {
        save_png(with_suffix(argv[1], "-boxes"), image);
    } else {
        for (const Disc &disc : discs)
            REQUIRE(std::any_of(best.begin(), best.end(),
                                [&](const Box &box) {
                                    return box.kind == disc.kind && fabsf((box.x0 + box.x1) / 2 - disc.x) < disc.radius &&
                                           fabsf((box.y0 + box.y1) / 2 - disc.y) < disc.radius;
                                }),
                    "the disc at (%d, %d) was not found", disc.x, disc.y);
    }
    succeed("%zu candidates, %zu boxes left, as the host finds", candidates.size(), best.size());
}
