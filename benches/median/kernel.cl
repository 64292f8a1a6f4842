// The median of each pixel and its eight neighbours, by exchanges; the edge repeats.
#define ORDER(a, b)             \
    {                           \
        uchar least = min(a, b); \
        b = max(a, b);          \
        a = least;              \
    }

kernel void median(int width, int height, global const uchar *in, global uchar *out) {
    int x = get_global_id(0), y = get_global_id(1);
    if (x >= width || y >= height) return;
    uchar p[9];
    for (int dy = -1; dy <= 1; dy++)
        for (int dx = -1; dx <= 1; dx++) {
            int column = min(max(x + dx, 0), width - 1), row = min(max(y + dy, 0), height - 1);
            p[(dy + 1) * 3 + dx + 1] = in[row * width + column];
        }
    ORDER(p[1], p[2]) ORDER(p[4], p[5]) ORDER(p[7], p[8])
    ORDER(p[0], p[1]) ORDER(p[3], p[4]) ORDER(p[6], p[7])
    ORDER(p[1], p[2]) ORDER(p[4], p[5]) ORDER(p[7], p[8])
    ORDER(p[0], p[3]) ORDER(p[5], p[8]) ORDER(p[4], p[7])
    ORDER(p[3], p[6]) ORDER(p[1], p[4]) ORDER(p[2], p[5])
    ORDER(p[4], p[7]) ORDER(p[4], p[2]) ORDER(p[6], p[4])
    ORDER(p[4], p[2])
    out[y * width + x] = p[4];
}
