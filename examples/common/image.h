// Pictures for the examples: 8-bit RGB in memory; PNG and binary PPM files.
#pragma once

#include <stdint.h>
#include <string.h>
#include <zlib.h>

#include <fstream>
#include <string>
#include <vector>

#include "example.h"

struct Image {
    int width = 0, height = 0;
    std::vector<uint8_t> rgb;  // rows from the top, three bytes a pixel

    Image() = default;
    Image(int width, int height) : width(width), height(height), rgb(size_t(width) * height * 3) {}

    uint8_t *at(int x, int y) { return &rgb[(size_t(y) * width + x) * 3]; }
    const uint8_t *at(int x, int y) const { return &rgb[(size_t(y) * width + x) * 3]; }
};

// Pictures larger than this are refused: width and height come from a file.
constexpr uint32_t max_side = 1 << 15;

// A picture for runs without a file: smooth colours, a grid, a disc.
inline Image synthetic_image(int width, int height) {
    Image image(width, height);
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++) {
            uint8_t *pixel = image.at(x, y);
            bool line = x % 32 == 0 || y % 32 == 0;
            int dx = x - width / 2, dy = y - height / 2;
            bool disc = dx * dx + dy * dy < width * height / 25;
            pixel[0] = line ? 255 : uint8_t(x * 255 / width);
            pixel[1] = line ? 255 : uint8_t(y * 255 / height);
            pixel[2] = disc ? 230 : 60;
        }
    return image;
}

namespace png {

inline uint32_t read_u32(const uint8_t *p) {
    return uint32_t(p[0]) << 24 | uint32_t(p[1]) << 16 | uint32_t(p[2]) << 8 | p[3];
}

inline void put_u32(std::string &out, uint32_t value) {
    for (int shift = 24; shift >= 0; shift -= 8) out += char(value >> shift);
}

inline void put_chunk(std::string &out, const char *type, const std::string &data) {
    put_u32(out, uint32_t(data.size()));
    std::string body = type + data;
    out += body;
    put_u32(out, uint32_t(crc32(0, (const Bytef *)body.data(), uInt(body.size()))));
}

// The predictor of filter type 4: whichever of left, above and above-left is nearest to left + above - above-left.
inline int paeth(int left, int above, int corner) {
    int estimate = left + above - corner;
    int to_left = abs(estimate - left), to_above = abs(estimate - above), to_corner = abs(estimate - corner);
    if (to_left <= to_above && to_left <= to_corner) return left;
    return to_above <= to_corner ? above : corner;
}

// Undoes the row filters in place: each row is its filter's number and then `stride` bytes.
inline void unfilter(std::vector<uint8_t> &rows, size_t stride, size_t height, size_t pixel) {
    for (size_t y = 0; y < height; y++) {
        uint8_t *row = &rows[y * (stride + 1)] + 1;
        const uint8_t *previous = y ? row - (stride + 1) : nullptr;
        for (size_t i = 0; i < stride; i++) {
            int left = i >= pixel ? row[i - pixel] : 0;
            int above = previous ? previous[i] : 0;
            int corner = previous && i >= pixel ? previous[i - pixel] : 0;
            switch (row[-1]) {
                case 0: break;
                case 1: row[i] += uint8_t(left); break;
                case 2: row[i] += uint8_t(above); break;
                case 3: row[i] += uint8_t((left + above) / 2); break;
                case 4: row[i] += uint8_t(paeth(left, above, corner)); break;
                default: fail("this PNG has an unknown row filter");
            }
            if (i + 1 == stride) row[-1] = 0;
        }
    }
}

inline Image decode(const std::string &file) {
    const uint8_t *bytes = (const uint8_t *)file.data();
    uint32_t width = 0, height = 0;
    size_t channels = 0;
    std::string packed;
    for (size_t at = 8; at + 12 <= file.size();) {
        uint32_t length = read_u32(bytes + at);
        if (length > file.size() - at - 12) fail("this PNG is cut short");
        const uint8_t *data = bytes + at + 8;
        std::string type(file, at + 4, 4);
        if (type == "IHDR" && length >= 13) {
            width = read_u32(data), height = read_u32(data + 4);
            channels = data[9] == 0 ? 1 : data[9] == 2 ? 3 : data[9] == 6 ? 4 : 0;
            if (data[8] != 8 || !channels || data[12]) fail("only plain 8-bit grey, RGB and RGBA PNGs are read");
        } else if (type == "IDAT") {
            packed.append((const char *)data, length);
        }
        at += 12 + size_t(length);
    }
    if (!width || !height || width > max_side || height > max_side) fail("this PNG has no usable size");
    size_t stride = width * channels;
    std::vector<uint8_t> rows((stride + 1) * height);
    uLongf size = rows.size();
    if (uncompress(rows.data(), &size, (const Bytef *)packed.data(), packed.size()) != Z_OK || size != rows.size())
        fail("this PNG does not decompress");
    unfilter(rows, stride, height, channels);
    Image image{int(width), int(height)};
    for (uint32_t y = 0; y < height; y++)
        for (uint32_t x = 0; x < width; x++) {
            const uint8_t *from = &rows[y * (stride + 1) + 1 + x * channels];
            for (size_t c = 0; c < 3; c++) image.at(int(x), int(y))[c] = from[channels >= 3 ? c : 0];
        }
    return image;
}

inline std::string encode(const Image &image) {
    std::string header, rows;
    put_u32(header, uint32_t(image.width));
    put_u32(header, uint32_t(image.height));
    header += std::string("\x08\x02\x00\x00\x00", 5);  // 8 bits, RGB, not interlaced
    for (int y = 0; y < image.height; y++) {
        rows += '\0';
        rows.append((const char *)image.at(0, y), size_t(image.width) * 3);
    }
    uLongf size = compressBound(rows.size());
    std::string packed(size, '\0');
    if (compress((Bytef *)&packed[0], &size, (const Bytef *)rows.data(), rows.size()) != Z_OK) fail("compress");
    packed.resize(size);
    std::string out = "\x89PNG\r\n\x1a\n";
    put_chunk(out, "IHDR", header);
    put_chunk(out, "IDAT", packed);
    put_chunk(out, "IEND", "");
    return out;
}

}  // namespace png

inline Image decode_ppm(const std::string &file) {
    unsigned width = 0, height = 0, top = 0;
    int used = 0;
    if (sscanf(file.c_str(), "P6 %u %u %u%n", &width, &height, &top, &used) != 3 || top != 255)
        fail("only 8-bit binary PPM files are read");
    if (!width || !height || width > max_side || height > max_side) fail("this PPM has no usable size");
    Image image{int(width), int(height)};
    size_t start = size_t(used) + 1;  // one white-space byte ends the header
    if (file.size() < start || file.size() - start < image.rgb.size()) fail("this PPM is cut short");
    memcpy(image.rgb.data(), file.data() + start, image.rgb.size());
    return image;
}

// Reads a PNG or PPM file, told apart by their first bytes.
inline Image load_image(const std::string &path) {
    std::string file = read_file(path);
    if (file.compare(0, 4, "\x89PNG") == 0) return png::decode(file);
    if (file.compare(0, 2, "P6") == 0) return decode_ppm(file);
    fail("%s is neither a PNG nor a PPM file", path.c_str());
}

inline void save_png(const std::string &path, const Image &image) {
    std::ofstream file(path, std::ios::binary);
    file << png::encode(image);
    if (!file.flush()) fail("cannot write %s", path.c_str());
}

// "folder/photo.png" and "-warped" give "folder/photo-warped.png".
inline std::string with_suffix(const std::string &path, const char *suffix) {
    size_t dot = path.rfind('.'), slash = path.rfind('/');
    bool extension = dot != std::string::npos && (slash == std::string::npos || dot > slash);
    return path.substr(0, extension ? dot : path.size()) + suffix + ".png";
}
