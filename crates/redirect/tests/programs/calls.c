/* A program, or a library with -DLIBRARY: calls its runtime in a constructor, then everything, from several threads. */
#include <pthread.h>
#include <stdio.h>

long __cudaRegisterFatBinary(void *), cudaMalloc(void **, unsigned long), cudaGetErrorString(int);
long cudaLaunchKernel(long, long, long, long, long, long, double, long, long);
long cudaGetDeviceProperties(void *, int), cudaThreeBytes(void), cudaTenBytes(void), cudaPeekAtLastError(void);
long cudaOfTheFuture(void);
int neighbour(void);

#ifdef KERNELS
__attribute__((section(".nv_fatbin"), used)) static int kernels = 1;
#endif

#ifdef OURS_INSIDE
/* What our static runtime leaves in a program. */
__attribute__((used)) static const char variable[] = "ANYWARP_TRACE";
#endif

/* A function of the program's own, whatever it is called. */
__attribute__((noinline)) int cudaCheckOfTheProgram(void) {
    asm volatile(".skip 64, 0x90");
    return 55;
}

static long registered;

__attribute__((constructor)) static void registration(void) { registered = __cudaRegisterFatBinary(0); }

static void *launch(void *result) {
    *(long *)result = cudaLaunchKernel(1, 2, 3, 4, 5, 6, 7.5, 8, 9);
    return 0;
}

void calls(void) {
    pthread_t threads[8];
    long launched[8];
    for (int i = 0; i < 8; i++) pthread_create(&threads[i], 0, launch, &launched[i]);
    for (int i = 0; i < 8; i++) pthread_join(threads[i], 0);
    for (int i = 1; i < 8; i++)
        if (launched[i] != launched[0]) launched[0] = -3;
    printf("%ld %ld %ld %ld %ld %ld %ld %ld %d %d %d\n", registered, cudaMalloc(0, 0), launched[0],
           cudaGetErrorString(0), cudaGetDeviceProperties(0, 0), cudaThreeBytes(), cudaTenBytes(), cudaPeekAtLastError(),
           (int)cudaOfTheFuture(), neighbour(), cudaCheckOfTheProgram());
    fflush(stdout);
}

#ifndef LIBRARY
int main(void) {
    calls();
    return 0;
}
#endif
