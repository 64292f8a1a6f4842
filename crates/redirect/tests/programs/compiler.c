/* Stands for NVIDIA's run-time compiler: what hands out machine code, and what hands out the PTX that it was made of. */
#include <stdio.h>
#include <string.h>

int nvrtcGetCUBINSize(void *program, size_t *size) {
    *size = 1;
    return 0;
}

int nvrtcGetCUBIN(void *program, char *code) {
    strcpy(code, "cubin");
    return 0;
}

#ifndef PART
int nvrtcGetPTXSize(void *program, size_t *size) {
    *size = 2;
    return 0;
}
#endif

int nvrtcGetPTX(void *program, char *code) {
    strcpy(code, "ptx");
    return 0;
}

void calls(void) {
    size_t size;
    char code[8];
    nvrtcGetCUBINSize(0, &size);
    nvrtcGetCUBIN(0, code);
    printf("%zu %s\n", size, code);
}
