#include "manifest.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool manifest_add(manifest *manifest, const char *name, const char *reason) {
    struct manifest_line *lines = realloc(manifest->lines, (manifest->count + 1) * sizeof *manifest->lines);
    if (lines == NULL)
        return false;
    manifest->lines = lines;
    struct manifest_line line = {strdup(name), strdup(reason)};
    if (line.name == NULL || line.reason == NULL) {
        free(line.name);
        free(line.reason);
        return false;
    }
    lines[manifest->count++] = line;
    return true;
}

static bool add_line(manifest *manifest, char *text) {
    char *tab = strchr(text, '\t');
    if (tab == NULL || tab == text || tab[1] == '\0')
        return false;
    *tab = '\0';
    return manifest_add(manifest, text, tab + 1);
}

bool read_manifest(const char *path, manifest *manifest) {
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        fprintf(stderr, "samebit: cannot read manifest %s: %s\n", path, strerror(errno));
        return false;
    }
    char *line = NULL;
    size_t capacity = 0;
    bool good = true;
    for (int number = 1; good && getline(&line, &capacity, file) >= 0; number++) {
        line[strcspn(line, "\r\n")] = '\0';
        if (line[0] == '#' || line[0] == '\0')
            continue;
        good = add_line(manifest, line);
        if (!good)
            fprintf(stderr, "samebit: %s:%d: a line is NAME, a tab and the reason\n", path, number);
    }
    free(line);
    fclose(file);
    return good;
}

void free_manifest(manifest *manifest) {
    for (size_t i = 0; i < manifest->count; i++) {
        free(manifest->lines[i].name);
        free(manifest->lines[i].reason);
    }
    free(manifest->lines);
    *manifest = (struct manifest){0};
}

const char *manifest_reason(const manifest *manifest, const char *name) {
    for (size_t i = 0; i < manifest->count; i++) {
        if (strcmp(manifest->lines[i].name, name) == 0)
            return manifest->lines[i].reason;
    }
    return NULL;
}
