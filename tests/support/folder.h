/* A fresh folder under the current one for a test's files, removed with all that it holds. Include after cmocka.h. */
#ifndef SB_TESTS_FOLDER_H
#define SB_TESTS_FOLDER_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[64];

static inline int folder_open(void **state) {
    (void)state;
    strcpy(folder, "test-files-XXXXXX");
    return mkdtemp(folder) != NULL ? 0 : -1;
}

/* The name of a file in the folder: valid until the fourth next call. */
static inline const char *folder_path(const char *name) {
    static char paths[4][512];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

/* The number of files in the folder; removes them on request. */
static inline int folder_count(bool remove_them) {
    int count = 0;
    DIR *listing = opendir(folder);
    for (struct dirent *entry; listing != NULL && (entry = readdir(listing)) != NULL;) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        count++;
        if (remove_them)
            unlink(folder_path(entry->d_name));
    }
    if (listing != NULL)
        closedir(listing);
    return count;
}

static inline int folder_close(void **state) {
    (void)state;
    folder_count(true);
    return rmdir(folder);
}

static inline void folder_write(const char *name, const void *bytes, size_t size) {
    FILE *file = fopen(folder_path(name), "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

#endif
