/* A program with kernels, for whichever shared runtime it finds. */
#include <stdio.h>

long __cudaRegisterFatBinary(void *), cudaMalloc(void **, unsigned long);

__attribute__((section(".nv_fatbin"), used)) static int kernels = 1;

int main(void) {
    printf("%ld %ld\n", __cudaRegisterFatBinary(&kernels), cudaMalloc(0, 0));
    return 0;
}
