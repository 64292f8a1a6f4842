// What the plug-in offers.
#pragma once

constexpr int COUNT = 64;

struct PluginAnswer {
    int version;          // of the plug-in's runtime
    const void *runtime;  // a function of it
    int *made;            // device memory, COUNT times 7
};

// Doubles COUNT values in device memory. The result is what went wrong, or null.
extern "C" const char *plugin_work(int *values, PluginAnswer *answer);
