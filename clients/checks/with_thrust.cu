// Thrust's vectors and algorithms, each beside what the C++ library makes of the same.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <vector>

#include <thrust/binary_search.h>
#include <thrust/complex.h>
#include <thrust/copy.h>
#include <thrust/device_vector.h>
#include <thrust/extrema.h>
#include <thrust/host_vector.h>
#include <thrust/inner_product.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/zip_iterator.h>
#include <thrust/random.h>
#include <thrust/reduce.h>
#include <thrust/scan.h>
#include <thrust/set_operations.h>
#include <thrust/sort.h>
#include <thrust/transform.h>
#include <thrust/transform_reduce.h>
#include <thrust/tuple.h>
#include <thrust/unique.h>

struct Uniform {
    __host__ __device__ float operator()(unsigned i) const {
        thrust::default_random_engine engine;
        engine.discard(i);
        return thrust::uniform_real_distribution<float>(0, 1)(engine);
    }
};

struct InCircle {
    __host__ __device__ int operator()(thrust::tuple<float, float> at) const {
        const float x = thrust::get<0>(at), y = thrust::get<1>(at);
        return x * x + y * y < 1;
    }
};

struct IsThird {
    __host__ __device__ bool operator()(int i) const { return i % 3 == 0; }
};

int failed = 0;

void check(const char *name, bool right) {
    printf("%s %s: compared with the host's\n", right ? "ok" : "FAIL", name);
    failed += !right;
}

template <class T> std::vector<T> read(const thrust::device_vector<T> &values) {
    std::vector<T> copy(values.size());
    thrust::copy(values.begin(), values.end(), copy.begin());
    return copy;
}

int main() {
    const int n = 300007;
    thrust::counting_iterator<unsigned> first(0);
    thrust::device_vector<float> x(n), y(n);
    thrust::transform(first, first + n, x.begin(), Uniform());
    thrust::transform(first + n, first + 2 * n, y.begin(), Uniform());
    std::vector<float> host_x(n), host_y(n);
    int inside = 0;
    double product = 0;
    for (int i = 0; i < n; i++) {
        host_x[i] = Uniform()(i), host_y[i] = Uniform()(n + i);
        inside += InCircle()(thrust::make_tuple(host_x[i], host_y[i]));
        product += double(host_x[i]) * host_y[i];
    }
    check("random numbers", read(x) == host_x && read(y) == host_y);
    auto points = thrust::make_zip_iterator(x.begin(), y.begin());
    check("transformed sum", thrust::transform_reduce(points, points + n, InCircle(), 0, thrust::plus<int>()) == inside);
    check("inner product", std::abs(thrust::inner_product(x.begin(), x.end(), y.begin(), 0.0) - product) < 1e-9 * product);
    auto least = thrust::minmax_element(x.begin(), x.end()).first - x.begin();
    check("extrema", least == std::min_element(host_x.begin(), host_x.end()) - host_x.begin());

    std::vector<int> sets[2], numbers(n);
    thrust::device_vector<int> device[2];
    for (int which = 0; which < 2; which++) {
        for (int i = 0; i < n; i++) numbers[i] = int((i * 7919LL * (which + 1) + which * 13) % 50021);
        thrust::device_vector<int> values(numbers.begin(), numbers.end());
        thrust::sort(values.begin(), values.end());
        values.erase(thrust::unique(values.begin(), values.end()), values.end());
        std::sort(numbers.begin(), numbers.end());
        numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
        sets[which] = numbers, device[which] = values;
        numbers.resize(n);
    }
    check("sort and unique", read(device[0]) == sets[0] && read(device[1]) == sets[1]);
    sets[1].resize(sets[1].size() / 2), device[1].resize(sets[1].size());
    thrust::device_vector<int> both(n);
    both.erase(thrust::set_intersection(device[0].begin(), device[0].end(), device[1].begin(), device[1].end(), both.begin()), both.end());
    std::vector<int> expected;
    std::set_intersection(sets[0].begin(), sets[0].end(), sets[1].begin(), sets[1].end(), std::back_inserter(expected));
    check("intersection", read(both) == expected);
    thrust::device_vector<int> places(n);
    thrust::counting_iterator<int> all(0);
    thrust::lower_bound(device[1].begin(), device[1].end(), all, all + n, places.begin());
    expected.resize(n);
    for (int i = 0; i < n; i++) expected[i] = int(std::lower_bound(sets[1].begin(), sets[1].end(), i) - sets[1].begin());
    check("lower bounds", read(places) == expected);

    std::vector<int> keys(n), values(n), order(n);
    std::iota(values.begin(), values.end(), 0);
    for (int i = 0; i < n; i++) keys[i] = int(i * 31LL % 1009);
    thrust::device_vector<int> device_keys(keys.begin(), keys.end()), device_values(values.begin(), values.end());
    thrust::stable_sort_by_key(device_keys.begin(), device_keys.end(), device_values.begin());
    order = values;
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return keys[a] < keys[b]; });
    check("stable sort by key", read(device_values) == order);
    thrust::device_vector<int> sums(n);
    thrust::inclusive_scan_by_key(device_keys.begin(), device_keys.end(), device_values.begin(), sums.begin());
    for (int i = 0; i < n; i++) {
        const bool same = i > 0 && keys[order[i]] == keys[order[i - 1]];
        expected[i] = same ? int(unsigned(expected[i - 1]) + unsigned(order[i])) : order[i];
    }
    check("scan by key", read(sums) == expected);
    auto end = thrust::copy_if(device_values.begin(), device_values.end(), sums.begin(), IsThird());
    sums.erase(end, sums.end());
    expected.clear();
    std::copy_if(order.begin(), order.end(), std::back_inserter(expected), IsThird());
    check("chosen elements", read(sums) == expected);
    thrust::device_vector<thrust::complex<double>> complex(1000, thrust::complex<double>(0.5, 0.25));
    check("sum of complex numbers", thrust::reduce(complex.begin(), complex.end(), thrust::complex<double>()) == thrust::complex<double>(500, 250));
    return failed != 0;
}
