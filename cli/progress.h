/* A line of progress on stderr, only where somebody watches: when stderr is a terminal. */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

/** Replaces the line, at most ten times a second. */
void show_progress(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** Takes the line away: before anything else is printed, and at the end. */
void clear_progress(void);

#endif
