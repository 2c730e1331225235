#include "base/machine_memory.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PATH_ROOM 4096

/* Lowers *limit to the number in a file; a file that is missing or says "max" lowers nothing. */
static void lower(int64_t *limit, const char *path) {
    FILE *file = fopen(path, "re");
    int64_t found;
    if (file == NULL)
        return;
    if (fscanf(file, "%" SCNd64, &found) == 1 && found > 0 && found < *limit)
        *limit = found;
    fclose(file);
}

/* A group is bound by its own limit and by those of the groups around it. */
static void lower_by_groups(int64_t *limit, const char *root, char *group, const char *name) {
    char path[2 * PATH_ROOM];
    for (;;) {
        snprintf(path, sizeof path, "%s%s/%s", root, group, name);
        lower(limit, path);
        char *last = strrchr(group, '/');
        if (last == NULL)
            return;
        *last = '\0';
    }
}

int64_t sb_machine_memory(void) {
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    int64_t limit = INT64_MAX;
    if (pages > 0 && page > 0 && pages < INT64_MAX / page)
        limit = (int64_t)pages * page;
    FILE *file = fopen("/proc/self/cgroup", "re");
    if (file == NULL)
        return limit;
    /* Lines of number:controllers:group. Version 2 has one line without controllers. */
    char line[PATH_ROOM];
    while (fgets(line, sizeof line, file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        char *controllers = strchr(line, ':');
        char *group = controllers != NULL ? strchr(controllers + 1, ':') : NULL;
        if (group == NULL)
            continue;
        *group++ = '\0';
        if (controllers[1] == '\0')
            lower_by_groups(&limit, "/sys/fs/cgroup", group, "memory.max");
        else if (strcmp(controllers + 1, "memory") == 0)
            lower_by_groups(&limit, "/sys/fs/cgroup/memory", group, "memory.limit_in_bytes");
    }
    fclose(file);
    return limit;
}
