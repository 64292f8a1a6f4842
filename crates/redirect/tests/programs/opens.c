/* Opens libraries at run time and calls them: opens [lazy|now] LIBRARY... */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

int main(int count, char **arguments) {
    int mode = strcmp(arguments[1], "lazy") ? RTLD_NOW : RTLD_LAZY;
    for (int i = 2; i < count; i++) {
        void *library = dlopen(arguments[i], mode | RTLD_LOCAL);
        if (!library) {
            puts(dlerror());
            return 1;
        }
        ((void (*)(void))dlsym(library, "calls"))();
        dlclose(library);
    }
    return 0;
}
