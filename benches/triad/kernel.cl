kernel void triad(int n, double a, global const double *x, global const double *y, global double *z) {
    for (size_t i = get_global_id(0); i < n; i += get_global_size(0)) z[i] = x[i] + a * y[i];
}
