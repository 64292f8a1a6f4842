// What the workers share: loading the cases, checking, timing, and the protocol.
//
// A worker runs the cases in one way (our driver, an OpenCL platform, C++). Its arguments are the folder that
// scripts/bench builds into, and the cases' folders in it. It reads lines and answers each with one:
//
//   list                    as many lines `NAME<tab>TITLE<tab>UNIT<tab>FOR_MANY<tab>BOUND` as there are cases, and an empty one
//   check CASE              `ok`: one run of the small size gave what C++ computes
//   time CASE MILLISECONDS  the nanoseconds that one run takes, measured over at least so long, and its work; before the
//                           first measurement the results of one run are checked, and runs go on until they have
//                           lasted three times as long: what is compiled while they run is not measured
//   first CASE              the nanoseconds of making the small size ready, with all that is compiled for it, and of one run
//
// Instead, each may answer `error: REASON`, or `absent` where this worker does not have the case. CASE may be
// `operation:KIND:BYTES`, a copy or other use of memory.
#pragma once

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include <chrono>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <set>
#include <sstream>

#include "case.h"

// One case made ready in one way.
class Prepared {
public:
    virtual ~Prepared() = default;
    virtual void start() = 0;                           // may return before the work is done
    virtual void finish() {}                            // waits for everything started
    virtual void read(int, std::vector<unsigned char> &) {}  // a buffer as it is now
};

struct Located {
    std::string folder, path;
    Entry entry;
};

inline const std::vector<Entry> &load_cases(const std::string &path) {
    void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) throw std::runtime_error(dlerror());
    auto *found = static_cast<const std::vector<Entry> *>(dlsym(library, "cases"));
    if (!found) throw std::runtime_error(path + " has no cases");
    return *found;
}

inline std::string read_text(const std::string &path) {
    std::ifstream file(path);
    if (!file) throw std::runtime_error("cannot read " + path);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
}

class Worker {
public:
    virtual ~Worker() = default;
    // Null: not a case for this worker.
    virtual std::unique_ptr<Prepared> prepare(const Located &, const Case &, bool small) = 0;
    virtual std::unique_ptr<Prepared> operation(const std::string &kind, size_t bytes) = 0;

    int serve(int count, char **arguments) {
        for (int i = 2; i < count; i++) {
            const std::string path = std::string(arguments[1]) + "/" + arguments[i];
            for (const Entry &entry : load_cases(path + "/case.so")) located_[entry.name] = {arguments[i], path, entry};
        }
        std::string line;
        while (std::getline(std::cin, line)) {
            std::istringstream words(line);
            std::string verb, name;
            double milliseconds = 0;
            words >> verb >> name >> milliseconds;
            try {
                answer(verb, name, milliseconds);
            } catch (const std::exception &error) {
                ready_.erase(name);
                printf("error: %s\n", error.what());
            }
            fflush(stdout);
        }
        return 0;
    }

private:
    void answer(const std::string &verb, const std::string &name, double milliseconds) {
        if (verb == "list") {
            const char *const bounds[] = {"compute", "memory", "launch"};
            for (const auto &[key, found] : located_)
                printf("%s\t%s\t%s\t%d\t%s\n", key.c_str(), found.entry.title, found.entry.unit, found.entry.for_many,
                       bounds[int(found.entry.bound)]);
            puts("");
        } else if (verb == "check") {
            puts(checked(locate(name), true) ? "ok" : "absent");
        } else if (verb == "first") {
            const Located &located = locate(name);
            const Case c = located.entry.make(true);
            const auto begin = std::chrono::steady_clock::now();
            auto made = prepare(located, c, true);
            if (made) {
                made->start();
                made->finish();
            }
            const std::chrono::duration<double, std::nano> spent = std::chrono::steady_clock::now() - begin;
            if (made) printf("%.1f\n", spent.count());
            else puts("absent");
        } else if (verb == "time") {
            auto found = ready_.find(name);
            const bool is_new = found == ready_.end();
            if (is_new) found = ready_.emplace(name, make(name)).first;
            const bool waited = waited_.count(name) != 0;
            if (is_new && found->second) measure(*found->second, 3 * milliseconds, waited);
            if (found->second) printf("%.1f %.17g\n", measure(*found->second, milliseconds, waited), work_[name]);
            else puts("absent");
        } else {
            throw std::runtime_error("what is " + verb + "?");
        }
    }

    const Located &locate(const std::string &name) {
        const auto found = located_.find(name);
        if (found == located_.end()) throw std::runtime_error("no case " + name);
        return found->second;
    }

    std::unique_ptr<Prepared> make(const std::string &name) {
        if (name.rfind("operation:", 0) != 0) return checked(locate(name), false);
        const size_t end = name.rfind(':');
        const size_t bytes = std::stoull(name.substr(end + 1));
        work_[name] = double(bytes);
        auto made = operation(name.substr(10, end - 10), bytes);
        if (!made) return nullptr;
        made->start();
        made->finish();
        return made;
    }

    std::unique_ptr<Prepared> checked(const Located &located, bool small) {
        const Case c = located.entry.make(small);
        work_[located.entry.name] = c.work;
        if (c.waited) waited_.insert(located.entry.name);
        auto made = prepare(located, c, small);
        if (!made) return nullptr;
        made->start();
        made->finish();
        Memory wanted(c.buffers);
        c.reference(wanted);
        for (size_t i = 0; i < c.buffers.size(); i++) {
            if (!c.buffers[i].compare) continue;
            std::vector<unsigned char> found(c.buffers[i].bytes.size());
            made->read(int(i), found);
            c.buffers[i].compare(found.data(), wanted.at(int(i)));
        }
        return made;
    }

    // Nanoseconds for one run. Runs are started in batches and waited for together, as programs do, unless `waited`.
    static double measure(Prepared &prepared, double milliseconds, bool waited) {
        using Clock = std::chrono::steady_clock;
        prepared.start();  // not timed: others had the caches meanwhile
        prepared.finish();
        const auto begin = Clock::now();
        size_t runs = 0, batch = 1;
        double spent = 0;
        while (spent < milliseconds) {
            for (size_t i = 0; i < batch; i++) prepared.start();
            prepared.finish();
            runs += batch;
            spent = std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
            if (spent / double(runs) * double(batch) < 1 && batch < 256 && !waited) batch *= 2;
        }
        return spent * 1e6 / double(runs);
    }

    std::map<std::string, Located> located_;
    std::map<std::string, std::unique_ptr<Prepared>> ready_;
    std::map<std::string, double> work_;
    std::set<std::string> waited_;
};

// An operation from what starts it and what waits.
class Operation : public Prepared {
public:
    Operation(std::function<void()> start, std::function<void()> finish) : start_(std::move(start)), finish_(std::move(finish)) {}
    void start() override { start_(); }
    void finish() override { finish_(); }

private:
    std::function<void()> start_, finish_;
};

template <typename Make>
int run_worker(Make make, int count, char **arguments) {
    try {
        if (count < 2) throw std::runtime_error("usage: worker FOLDER CASES...");
        return make()->serve(count, arguments);
    } catch (const std::exception &error) {
        fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
