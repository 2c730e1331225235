/* Faults planted in the pipelines of Hopper's products (host_plants.h): each must be found, by wrong bytes of C or by
 * what the host refuses, under one of the schedules of test_hopper_rings.c. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "hopper_cases.h"

/* ---- what they are planted in ---- */

typedef enum place { TILES, FEW_ROWS, CLUSTERS, MAPPED, MAPPED_CLUSTERS, GENERAL, PLACES } place;

static const int64_t lengths[] = {17, 0, 40, 16, 1, 70, 33, 100, 15, 64, 47, 90, 5, 31, 128, 3, 66, 20};
enum { SAMPLES = sizeof lengths / sizeof lengths[0] };

/* A product with more tiles than blocks in a ring that begins again. */
static product product_of(place place) {
    static const struct {
        const char *schedule;
        int64_t m, n, k, batches;
    } places[PLACES] = {
        {"tile-128x128", 150, 136, 832, 2}, {"tile-64x32", 71, 72, 2560, 1},    {"tile-128x256", 300, 264, 576, 1},
        {"mapped-128x128", 192, 128, 0, 1}, {"mapped-128x256", 320, 192, 0, 1}, {"general", 100, 72, 256, 1},
    };
    product p = plain;
    p.c_dtype = p.dtype;
    p.schedule = places[place].schedule;
    p.m = places[place].m;
    p.n = places[place].n;
    p.k = places[place].k;
    p.batches = places[place].batches;
    p.b = COLUMNS;
    if (p.k > 0)
        return p;
    p.a = COLUMNS;
    p.b = ROWS;
    p.samples = SAMPLES;
    p.lengths = lengths;
    for (int i = 0; i < SAMPLES; i++)
        p.k += lengths[i];
    return p;
}

/* ---- planting ---- */

enum { SAME, DIFFERENT, REFUSED };

/* What becomes of a case with a plant, in a process of its own; `text` gets what is said. */
static int run_planted(setting *setting, const hopper_case *c, host_plant plant, const host_schedule *schedule,
                       char *text, size_t bytes) {
    FILE *said = tmpfile();
    assert_non_null(said);
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        const struct rlimit none = {0, 0};
        setrlimit(RLIMIT_CORE, &none);
        for (int i = 1; i < 32; i++)
            signal(i, SIG_DFL);
        dup2(fileno(said), STDERR_FILENO);
        alarm(100); /* a fault must not stop the tests */
        host_set_plant(plant);
        _exit(computes_the_same(setting, c, schedule) ? SAME : DIFFERENT);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    rewind(said);
    text[fread(text, 1, bytes - 1, said)] = '\0';
    fclose(said);
    if (WIFEXITED(status))
        return WEXITSTATUS(status);
    if (WTERMSIG(status) != SIGABRT)
        fail_msg("plant %d under \"%s\" ends by signal %d: %s", plant, schedule->name, WTERMSIG(status), text);
    return REFUSED;
}

static const char *const names[] = {
    "none",
#define HOST_PLANT(name, meaning) #name ": " meaning,
#include "host_plants.h"
#undef HOST_PLANT
};

/* Where a plant must be found, and by what. */
typedef struct expectation {
    host_plant plant;
    unsigned places;
    const char *says; /* NULL: wrong bytes */
} expectation;
enum {
    EVERYWHERE = (1 << GENERAL) - 1, /* among Hopper's own */
    WITH_CLUSTERS = 1 << CLUSTERS | 1 << MAPPED_CLUSTERS,
    WITH_ROW_MAPS = 1 << MAPPED | 1 << MAPPED_CLUSTERS,
    STORING = EVERYWHERE & ~(1 << FEW_ROWS), /* in bulk */
};
#define DEADLOCK "no thread can go on"
#define MORE_ARRIVE "than its phase waits for"

static const expectation expectations[] = {
    {HOST_PLANT_EMPTY_COUNT, EVERYWHERE, DEADLOCK},
    {HOST_PLANT_FULL_COUNT, EVERYWHERE, DEADLOCK},
    {HOST_PLANT_NO_INIT_FENCE, EVERYWHERE, "not made known to the copy engine"},
    {HOST_PLANT_FULL_PARITY, EVERYWHERE, DEADLOCK},
    {HOST_PLANT_EMPTY_PARITY, EVERYWHERE, "empty_barriers[0], phase 0 to end; in phase 0"},
    {HOST_PLANT_FULL_PARITY_STAYS, EVERYWHERE, MORE_ARRIVE},
    {HOST_PLANT_EMPTY_PARITY_STAYS, EVERYWHERE, MORE_ARRIVE},
    {HOST_PLANT_NO_FULL_WAIT, EVERYWHERE, MORE_ARRIVE},
    {HOST_PLANT_NO_EMPTY_WAIT, EVERYWHERE, MORE_ARRIVE},
    {HOST_PLANT_EARLY_RELEASE, EVERYWHERE, NULL},
    {HOST_PLANT_NO_LAST_WAIT, EVERYWHERE, "it ends with products in flight"},
    {HOST_PLANT_NO_LAST_WAIT, STORING, NULL},
    {HOST_PLANT_RELEASE_NEXT, EVERYWHERE, DEADLOCK},
    {HOST_PLANT_RELEASE_TWICE, EVERYWHERE, DEADLOCK},
    {HOST_PLANT_NO_RELEASE, EVERYWHERE, "empty_barriers[0], phase 0 to end; in phase 0"},
    {HOST_PLANT_EXPECT_LESS, EVERYWHERE, "arrivals and -"},
    {HOST_PLANT_EXPECT_MORE, STORING, "0 of 1 arrivals and 128 bytes are missing"},
    {HOST_PLANT_EXPECT_MORE, 1 << FEW_ROWS, "0 of 2 arrivals and 256 bytes are missing"},
    {HOST_PLANT_LOAD_X, EVERYWHERE, NULL},
    {HOST_PLANT_LOAD_Y, EVERYWHERE, NULL},
    {HOST_PLANT_LOAD_Z, EVERYWHERE, NULL},
    {HOST_PLANT_LOAD_BATCH, EVERYWHERE, NULL},
    {HOST_PLANT_LOAD_PLACE, STORING, NULL},
    {HOST_PLANT_LOAD_PLACE, 1 << FEW_ROWS, "are not inside the dynamic"},
    {HOST_PLANT_LOAD_SWIZZLE, EVERYWHERE, NULL},
    {HOST_PLANT_MULTICAST_ONE, WITH_CLUSTERS, DEADLOCK},
    {HOST_PLANT_RELEASE_OWN, WITH_CLUSTERS, DEADLOCK},
    {HOST_PLANT_NO_CLUSTER_BEGIN, WITH_CLUSTERS, "there is no barrier at"},
    {HOST_PLANT_NO_CLUSTER_END, WITH_CLUSTERS, "which is not there"},
    {HOST_PLANT_NO_PRODUCTS_FENCE, EVERYWHERE, "products begin without a fence"},
    {HOST_PLANT_MATRIX_STRIDE, EVERYWHERE, NULL},
    {HOST_PLANT_MATRIX_LEADING, WITH_ROW_MAPS, NULL},
    {HOST_PLANT_MATRIX_SWIZZLE, EVERYWHERE, NULL},
    {HOST_PLANT_MATRIX_STEP, EVERYWHERE, NULL},
    {HOST_PLANT_CHAIN_GOES_ON, EVERYWHERE, NULL},
    {HOST_PLANT_CHAIN_BEGINS, EVERYWHERE, NULL},
    {HOST_PLANT_NO_CLEARING, WITH_ROW_MAPS, NULL},
    {HOST_PLANT_CLEARING_PLACE, WITH_ROW_MAPS, NULL},
    {HOST_PLANT_RESULT_PLACE, STORING, "are not inside the dynamic"},
    {HOST_PLANT_RESULT_SWIZZLE, STORING, NULL},
    {HOST_PLANT_NO_WRITTEN_FENCE, STORING, "that no fence is behind"},
    {HOST_PLANT_NO_STORES_READ, WITH_CLUSTERS, NULL},
    {HOST_PLANT_NO_LAST_STORES_READ, STORING, "ends before its stores have read"},
    {HOST_PLANT_NO_GROUP_SYNC, STORING, NULL},
    {HOST_PLANT_NO_COPIES_WAIT, 1 << GENERAL, NULL},
    {HOST_PLANT_STORE_X, STORING, NULL},
    {HOST_PLANT_STORE_Y, STORING, NULL},
};

/* Until a schedule finds it as expected. */
static void check_plant(setting *setting, const hopper_case *c, const expectation *expected) {
    char text[4096], all[8192] = "";
    for (int i = 0; i < HOPPER_SCHEDULES; i++) {
        int result = run_planted(setting, c, expected->plant, &hopper_schedules[i], text, sizeof text);
        if (expected->says != NULL ? result == REFUSED && strstr(text, expected->says) != NULL : result == DIFFERENT)
            return;
        size_t used = strlen(all);
        snprintf(all + used, sizeof all - used, "\"%s\": %s%s\n", hopper_schedules[i].name,
                 result == SAME        ? "the same bytes"
                 : result == DIFFERENT ? "other bytes"
                                       : "",
                 text);
    }
    fail_msg("%s, in %s: not found as expected.\n%s", names[expected->plant], c->product.schedule, all);
}

/* ---- tests ---- */

static hopper_case cases[PLACES];
static setting shared;

static int make_cases(void **unused) {
    shared = set_up_with(2);
    for (int place = 0; place < PLACES; place++) {
        const product p = product_of((enum place)place);
        cases[place] = make_hopper_case(&shared, &p);
    }
    return 0;
}

static int release_cases(void **unused) {
    for (int place = 0; place < PLACES; place++)
        release_hopper_case(&cases[place]);
    tear_down(&shared);
    return 0;
}

static void test_nothing_planted(void **unused) {
    for (int place = 0; place < PLACES; place++) {
        for (int i = 0; i < HOPPER_SCHEDULES; i++)
            assert_true(computes_the_same(&shared, &cases[place], &hopper_schedules[i]));
    }
}

static void test_plants(void **unused) {
    bool expected[HOST_PLANTS] = {true};
    for (size_t i = 0; i < sizeof expectations / sizeof expectations[0]; i++) {
        for (int place = 0; place < PLACES; place++) {
            if (expectations[i].places >> place & 1)
                check_plant(&shared, &cases[place], &expectations[i]);
        }
        expected[expectations[i].plant] = true;
    }
    for (int plant = 0; plant < HOST_PLANTS; plant++) {
        if (!expected[plant])
            fail_msg("%s: nothing is expected", names[plant]);
    }
}

/* All results of all plants everywhere, for who writes expectations. */
static void list_everything(void) {
    char text[4096];
    make_cases(NULL);
    for (int plant = 1; plant < HOST_PLANTS; plant++) {
        printf("%s\n", names[plant]);
        for (int place = 0; place < PLACES; place++) {
            for (int i = 0; i < HOPPER_SCHEDULES; i++) {
                int result =
                    run_planted(&shared, &cases[place], (host_plant)plant, &hopper_schedules[i], text, sizeof text);
                printf("    %s, %s: %s\n", cases[place].product.schedule, hopper_schedules[i].name,
                       result == SAME        ? "the same"
                       : result == DIFFERENT ? "different"
                                             : text);
            }
        }
    }
    release_cases(NULL);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_nothing_planted), cmocka_unit_test(test_plants)};
    if (argc > 1) {
        list_everything();
        return 0;
    }
    return cmocka_run_group_tests(tests, make_cases, release_cases);
}
