// A step of a lattice of a fluid in two dimensions, nine numbers to a cell: each cell takes its neighbours', which then relax.
// The lattice goes on at the other side.
__device__ float relaxed(float f, float weight, float density, float along, float square, float rate) {
    float equilibrium = weight * density * (1 + 3 * along + 4.5f * along * along - 1.5f * square);
    return f + rate * (equilibrium - f);
}

extern "C" __global__ void relax(int width, int height, float rate, const float *from, float *to) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    int size = width * height;
    int left = x == 0 ? width - 1 : x - 1, right = x == width - 1 ? 0 : x + 1;
    int above = y == 0 ? height - 1 : y - 1, below = y == height - 1 ? 0 : y + 1;
    float f0 = from[y * width + x];
    float f1 = from[size + y * width + left], f2 = from[2 * size + above * width + x];
    float f3 = from[3 * size + y * width + right], f4 = from[4 * size + below * width + x];
    float f5 = from[5 * size + above * width + left], f6 = from[6 * size + above * width + right];
    float f7 = from[7 * size + below * width + right], f8 = from[8 * size + below * width + left];
    float density = f0 + f1 + f2 + f3 + f4 + f5 + f6 + f7 + f8;
    float u = (f1 + f5 + f8 - f3 - f6 - f7) / density, v = (f2 + f5 + f6 - f4 - f7 - f8) / density;
    float square = u * u + v * v;
    int cell = y * width + x;
    to[cell] = relaxed(f0, 4 / 9.0f, density, 0, square, rate);
    to[size + cell] = relaxed(f1, 1 / 9.0f, density, u, square, rate);
    to[2 * size + cell] = relaxed(f2, 1 / 9.0f, density, v, square, rate);
    to[3 * size + cell] = relaxed(f3, 1 / 9.0f, density, -u, square, rate);
    to[4 * size + cell] = relaxed(f4, 1 / 9.0f, density, -v, square, rate);
    to[5 * size + cell] = relaxed(f5, 1 / 36.0f, density, u + v, square, rate);
    to[6 * size + cell] = relaxed(f6, 1 / 36.0f, density, v - u, square, rate);
    to[7 * size + cell] = relaxed(f7, 1 / 36.0f, density, -u - v, square, rate);
    to[8 * size + cell] = relaxed(f8, 1 / 36.0f, density, u - v, square, rate);
}
