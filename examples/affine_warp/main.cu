// An affine warp of a picture: turned, scaled and sheared about its centre, with bilinear interpolation.
//
//     affine_warp [PICTURE]       a PNG or PPM file; the result goes beside it, as PICTURE-warped.png

#include <math.h>

#include "image.h"

// Where in the source each pixel of the result comes from: (x, y) -> (xx x + xy y + x0, yx x + yy y + y0).
struct Affine {
    float xx, xy, x0, yx, yy, y0;
};

// The inverse of: shear, scale, turn by an angle, all about the centre of the picture.
Affine about_centre(int width, int height, double degrees, double scale, double shear) {
    const double angle = degrees * 3.14159265358979 / 180, c = cos(angle) * scale, s = sin(angle) * scale;
    const double forward[2][2] = {{c, c * shear - s}, {s, s * shear + c}};
    const double determinant = forward[0][0] * forward[1][1] - forward[0][1] * forward[1][0];
    const double xx = forward[1][1] / determinant, xy = -forward[0][1] / determinant;
    const double yx = -forward[1][0] / determinant, yy = forward[0][0] / determinant;
    const double cx = (width - 1) / 2.0, cy = (height - 1) / 2.0;
    return {float(xx), float(xy), float(cx - xx * cx - xy * cy), float(yx), float(yy), float(cy - yx * cx - yy * cy)};
}

__host__ __device__ inline float mix(float a, float b, float weight) { return fmaf(weight, b - a, a); }

// One channel of the source at a point between its pixels; outside it there is dark grey.
__host__ __device__ inline float sample(const uint8_t *source, int width, int height, int channel, float x, float y) {
    const float left = floorf(x), top = floorf(y);
    const int column = int(left), row = int(top);
    float corners[4];
    for (int i = 0; i < 4; i++) {
        const int cx = column + i % 2, cy = row + i / 2;
        const bool inside = cx >= 0 && cx < width && cy >= 0 && cy < height;
        corners[i] = inside ? source[(size_t(cy) * width + cx) * 3 + channel] : 32;
    }
    const float right = x - left;
    return mix(mix(corners[0], corners[1], right), mix(corners[2], corners[3], right), y - top);
}

// One pixel of the result. Host and device run this same function; every multiplication that is added to something is
// an explicit fmaf, so both compute the very same numbers.
__host__ __device__ inline void warp_pixel(const uint8_t *source, uint8_t *result, int width, int height, Affine map,
                                           int x, int y) {
    const float from_x = fmaf(map.xx, float(x), fmaf(map.xy, float(y), map.x0));
    const float from_y = fmaf(map.yx, float(x), fmaf(map.yy, float(y), map.y0));
    for (int channel = 0; channel < 3; channel++) {
        const float value = sample(source, width, height, channel, from_x, from_y);
        result[(size_t(y) * width + x) * 3 + channel] = uint8_t(value + 0.5f);
    }
}

__global__ void warp(const uint8_t *source, uint8_t *result, int width, int height, Affine map) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < width && y < height) warp_pixel(source, result, width, height, map, x, y);
}

int main(int argc, char **argv) {
    const Image source = argc > 1 ? load_image(argv[1]) : synthetic_image(203, 151);
    const int width = source.width, height = source.height;
    const Affine map = about_centre(width, height, 20, 0.8, 0.15);

    uint8_t *device_source, *device_result;
    CUDA_CHECK(cudaMalloc(&device_source, source.rgb.size()));
    CUDA_CHECK(cudaMalloc(&device_result, source.rgb.size()));
    CUDA_CHECK(cudaMemcpy(device_source, source.rgb.data(), source.rgb.size(), cudaMemcpyHostToDevice));
    const dim3 threads(32, 8), blocks((width + 31) / 32, (height + 7) / 8);
    auto once = [&] {
        warp<<<blocks, threads>>>(device_source, device_result, width, height, map);
        CUDA_CHECK(cudaGetLastError());
        CUDA_CHECK(cudaDeviceSynchronize());
    };
    once();  // the first launch compiles
    const double time = milliseconds(once);
    Image result(width, height);
    CUDA_CHECK(cudaMemcpy(result.rgb.data(), device_result, result.rgb.size(), cudaMemcpyDeviceToHost));
    CUDA_CHECK(cudaFree(device_source));
    CUDA_CHECK(cudaFree(device_result));

    Image expected(width, height);
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++) warp_pixel(source.rgb.data(), expected.rgb.data(), width, height, map, x, y);
    for (size_t i = 0; i < expected.rgb.size(); i++)
        REQUIRE(result.rgb[i] == expected.rgb[i], "byte %zu: %d, not %d", i, result.rgb[i], expected.rgb[i]);

    if (argc > 1) save_png(with_suffix(argv[1], "-warped"), result);
    succeed("%d x %d pixels in %.2f ms, each equal to the host's", width, height, time);
}
