// clang: -ffast-math (rsqrtf is approximate on a GPU)
#include <math.h>
#include <stddef.h>

#include <vector>

void nbody(int n, float softening, const float *bodies, float *accelerations) {
    const size_t count = size_t(n);
    std::vector<float> x(count), y(count), z(count), mass(count);
    for (size_t i = 0; i < count; i++) {
        x[i] = bodies[i * 4];
        y[i] = bodies[i * 4 + 1];
        z[i] = bodies[i * 4 + 2];
        mass[i] = bodies[i * 4 + 3];
    }
#pragma omp parallel for
    for (int i = 0; i < n; i++) {
        const float ox = x[size_t(i)], oy = y[size_t(i)], oz = z[size_t(i)];
        float ax = 0, ay = 0, az = 0;
#pragma omp simd reduction(+ : ax, ay, az)
        for (size_t j = 0; j < count; j++) {
            const float dx = x[j] - ox, dy = y[j] - oy, dz = z[j] - oz;
            const float inverse = 1 / sqrtf(dx * dx + dy * dy + dz * dz + softening);
            const float strength = mass[j] * inverse * inverse * inverse;
            ax += dx * strength;
            ay += dy * strength;
            az += dz * strength;
        }
        float *out = accelerations + size_t(i) * 4;
        out[0] = ax;
        out[1] = ay;
        out[2] = az;
        out[3] = 0;
    }
}
