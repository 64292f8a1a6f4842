void empty() {
#pragma omp parallel
    asm volatile("");
}
