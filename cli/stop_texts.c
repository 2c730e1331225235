#include "stop_texts.h"

#include <stdlib.h>
#include <string.h>

bool add_stop_text(stop_texts *stops, const char *text) {
    char **more = realloc(stops->texts, ((size_t)stops->count + 1) * sizeof *more);
    if (more == NULL)
        return false;
    stops->texts = more;
    more[stops->count] = strdup(text);
    if (more[stops->count] == NULL)
        return false;
    stops->count++;
    return true;
}

bool copy_stop_texts(const stop_texts *stops, stop_texts *to) {
    for (int i = 0; i < stops->count; i++) {
        if (!add_stop_text(to, stops->texts[i]))
            return false;
    }
    return true;
}

void free_stop_texts(stop_texts *stops) {
    for (int i = 0; i < stops->count; i++)
        free(stops->texts[i]);
    free(stops->texts);
    *stops = (stop_texts){0};
}

/* ---- watching ---- */

/* How many bytes come before the first place at which a stop stands, or may yet; *whole says whether it does. */
static size_t count_before(const stop_watch *watch, bool *whole) {
    *whole = false;
    for (size_t at = 0; at < watch->bytes; at++) {
        bool may = false;
        for (int i = 0; i < watch->stops->count; i++) {
            size_t size = strlen(watch->stops->texts[i]), left = watch->bytes - at;
            if (memcmp(watch->held + at, watch->stops->texts[i], size < left ? size : left) != 0)
                continue;
            may = true;
            *whole = *whole || size <= left;
        }
        if (may)
            return at;
    }
    return watch->bytes;
}

static void forget_given(stop_watch *watch) {
    memmove(watch->held, watch->held + watch->given, watch->bytes - watch->given);
    watch->bytes -= watch->given;
    watch->given = 0;
}

bool watch_text(stop_watch *watch, const char *part, size_t part_bytes, const char **text, size_t *bytes) {
    *text = "";
    *bytes = 0;
    if (watch->found)
        return true;
    if (watch->bytes + part_bytes + 1 > watch->room) {
        size_t room = 2 * watch->room + part_bytes + 64;
        char *held = realloc(watch->held, room);
        if (held == NULL)
            return false;
        watch->held = held;
        watch->room = room;
    }
    forget_given(watch);
    memcpy(watch->held + watch->bytes, part, part_bytes);
    watch->bytes += part_bytes;
    watch->given = count_before(watch, &watch->found);
    *text = watch->held;
    *bytes = watch->given;
    return true;
}

bool watch_last(stop_watch *watch, const char *part, size_t part_bytes, const char **text, size_t *bytes) {
    if (!watch_text(watch, part, part_bytes, text, bytes))
        return false;
    if (!watch->found)
        *bytes = watch->given = watch->bytes;
    return true;
}

void free_watch(stop_watch *watch) {
    free(watch->held);
    *watch = (stop_watch){0};
}
