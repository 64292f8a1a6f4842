// A generation of cells on a torus, a byte to each.
extern "C" __global__ void live(int width, int height, const unsigned char *from, unsigned char *to) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    int left = (x + width - 1) % width, right = (x + 1) % width;
    int above = (y + height - 1) % height, below = (y + 1) % height;
    int neighbours = from[above * width + left] + from[above * width + x] + from[above * width + right] +
                     from[y * width + left] + from[y * width + right] +
                     from[below * width + left] + from[below * width + x] + from[below * width + right];
    to[y * width + x] = neighbours == 3 || (neighbours == 2 && from[y * width + x]);
}
