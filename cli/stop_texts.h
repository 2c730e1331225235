/* Texts at which a generation ends: what comes is held back as long as it may be the beginning of one. */
#ifndef CLI_STOP_TEXTS_H
#define CLI_STOP_TEXTS_H

#include <stdbool.h>
#include <stddef.h>

/* Of which there may be none. */
typedef struct stop_texts {
    int count;
    char **texts; /* none is empty */
} stop_texts;

/** Adds a copy. False where memory ran out. */
bool add_stop_text(stop_texts *stops, const char *text);
/** Makes *to, which is empty, a copy. False where memory ran out. */
bool copy_stop_texts(const stop_texts *stops, stop_texts *to);
void free_stop_texts(stop_texts *stops);

/* Text on its way. */
typedef struct stop_watch {
    const stop_texts *stops; /* the caller's */
    char *held;
    size_t bytes, room;
    size_t given; /* bytes of `held` that were given out by the last call */
    bool found;
} stop_watch;

/** Takes a part of the text, and gives out what is before all stops: `*text`, `*bytes`, the watch's until its next call. Behind
 * a stop (`found`) nothing comes out any more. False where memory ran out. */
bool watch_text(stop_watch *watch, const char *part, size_t part_bytes, const char **text, size_t *bytes);
/** The same of the last part: what is held back comes out too. */
bool watch_last(stop_watch *watch, const char *part, size_t part_bytes, const char **text, size_t *bytes);
void free_watch(stop_watch *watch);

#endif
