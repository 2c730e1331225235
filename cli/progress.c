#include "progress.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "running.h"

static bool visible;

void show_progress(const char *format, ...) {
    static double last;
    static int terminal = -1;
    if (terminal < 0)
        terminal = isatty(STDERR_FILENO);
    double now = now_ns();
    if (!terminal || (last > 0 && now - last < 1e8))
        return;
    last = now;
    visible = true;
    va_list arguments;
    va_start(arguments, format);
    fputs("\r\033[K", stderr);
    vfprintf(stderr, format, arguments);
    fflush(stderr);
    va_end(arguments);
}

void clear_progress(void) {
    if (!visible)
        return;
    fputs("\r\033[K", stderr);
    fflush(stderr);
    visible = false;
}
