/* The driver of a fuzz target where libFuzzer is not at hand: runs it over every file of the
 * folders given, and over repeatable mutations of each. */
#include <dirent.h>
#include <string.h>

#include "fuzz/fuzz.h"
#include "support/random.h"

enum { MUTATIONS = 2000, ROOM = 1 << 16 };

static uint8_t seed[ROOM], mutated[ROOM];

/* libFuzzer gives each input in a block of its own size, so that sanitizers see every step past its end. */
static void run(const uint8_t *bytes, size_t size) {
    uint8_t *exact = malloc(size + (size == 0));
    FUZZ_CHECK(exact != NULL);
    memcpy(exact, bytes, size);
    LLVMFuzzerTestOneInput(exact, size);
    free(exact);
}

static size_t mutate(random_source *source, size_t size) {
    static const uint8_t telling[] = {0, 1, 0x7f, 0x80, 0xff, '\'', '(', ')', ',', '9', ' '};
    for (int64_t left = random_between(source, 1, 4); left > 0 && size > 0; left--) {
        size_t at = (size_t)random_between(source, 0, (int64_t)size - 1);
        size_t length = (size_t)random_between(source, 1, (int64_t)(size - at < 16 ? size - at : 16));
        switch (random_between(source, 0, 5)) {
        case 0:
            mutated[at] ^= (uint8_t)(1u << random_between(source, 0, 7));
            break;
        case 1:
            mutated[at] = telling[random_between(source, 0, (int64_t)sizeof telling - 1)];
            break;
        case 2:
            memset(mutated + at, mutated[at], length);
            break;
        case 3: /* cut out */
            memmove(mutated + at, mutated + at + length, size - at - length);
            size -= length;
            break;
        case 4: /* repeat */
            if (size + length > ROOM)
                break;
            memmove(mutated + at + length, mutated + at, size - at);
            size += length;
            break;
        default:
            size = random_between(source, 0, 3) == 0 ? at : size;
            break;
        }
    }
    return size;
}

static void replay_file(const char *path, random_source *source) {
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return;
    size_t size = fread(seed, 1, ROOM, file);
    fclose(file);
    run(seed, size);
    for (int i = 0; i < MUTATIONS; i++) {
        memcpy(mutated, seed, size);
        run(mutated, mutate(source, size));
    }
}

static int compare_names(const void *left, const void *right) {
    return strcmp(left, right);
}

int main(int count, char **arguments) {
    static char paths[1000][512];
    size_t files = 0;
    for (int i = 1; i < count; i++) {
        DIR *listing = opendir(arguments[i]);
        for (struct dirent *entry; listing != NULL && (entry = readdir(listing)) != NULL;) {
            if (entry->d_name[0] != '.' && files < sizeof paths / sizeof *paths)
                snprintf(paths[files++], sizeof *paths, "%s/%s", arguments[i], entry->d_name);
        }
        if (listing != NULL)
            closedir(listing);
    }
    if (files == 0) {
        fprintf(stderr, "no seeds\n");
        return 1;
    }
    qsort(paths, files, sizeof *paths, compare_names);
    random_source source = {1};
    for (size_t i = 0; i < files; i++)
        replay_file(paths[i], &source);
    printf("%zu seeds, %zu inputs\n", files, files * (MUTATIONS + 1));
    return 0;
}
