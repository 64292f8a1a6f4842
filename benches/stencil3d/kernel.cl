kernel void stencil3d(int nx, int ny, int nz, global const float *in, global float *out) {
    size_t x = get_global_id(0), y = get_global_id(1), z = get_global_id(2);
    if (x > 0 && x < nx - 1 && y > 0 && y < ny - 1 && z > 0 && z < nz - 1) {
        size_t i = (z * ny + y) * nx + x, layer = nx * ny;
        out[i] = 0.4f * in[i] + 0.1f * (in[i - 1] + in[i + 1] + in[i - nx] + in[i + nx] + in[i - layer] + in[i + layer]);
    }
}
