// Lengths of all shortest ways: a launch for each node that a way may lead through.
kernel void shorten(int n, int k, global const float *from, global float *to) {
    size_t j = get_global_id(0), i = get_global_id(1);
    if (i >= n || j >= n) return;
    to[i * n + j] = fmin(from[i * n + j], from[i * n + k] + from[k * n + j]);
}
