#include "tokenizing.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool is_between(char c) {
    return c == ',' || c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

int read_token_ids(const char *name, const char *text, size_t bytes, int64_t **ids, int64_t *count) {
    *ids = malloc((bytes / 2 + 1) * sizeof **ids); /* each but the last has something behind it */
    *count = 0;
    if (*ids == NULL)
        return out_of_memory();
    for (const char *at = text; at < text + bytes;) {
        char *end;
        errno = 0;
        long long id = strtoll(at, &end, 10);
        if (end == at || is_between(*at) || errno != 0 || id < 0 || (end < text + bytes && !is_between(*end)))
            return usage_error("%s: '%.40s' does not begin with a token's id", name, at);
        (*ids)[(*count)++] = id;
        at = end;
        while (at < text + bytes && is_between(*at))
            at++;
    }
    return *count > 0 ? EXIT_RIGHT : usage_error("%s: there is no token's id", name);
}

/* All that a stream has. `name` stands for it in messages. */
static int read_stream(FILE *stream, const char *name, char **text, size_t *bytes) {
    size_t room = 1 << 16;
    *bytes = 0;
    *text = malloc(room);
    while (*text != NULL) {
        *bytes += fread(*text + *bytes, 1, room - *bytes - 1, stream);
        if (*bytes < room - 1)
            break;
        char *larger = realloc(*text, room *= 2);
        if (larger == NULL)
            free(*text);
        *text = larger;
    }
    if (*text == NULL)
        return out_of_memory();
    (*text)[*bytes] = '\0';
    if (!ferror(stream))
        return EXIT_RIGHT;
    fprintf(stderr, "samebit: %s: cannot be read: %s\n", name, strerror(errno));
    free(*text);
    *text = NULL;
    return EXIT_FAILED;
}

int read_text_argument(const char *argument, char **text, size_t *bytes) {
    if (strcmp(argument, "-") == 0)
        return read_stream(stdin, "standard input", text, bytes);
    *bytes = strlen(argument);
    *text = strdup(argument);
    return *text != NULL ? EXIT_RIGHT : out_of_memory();
}

int read_text_file(const char *path, char **text, size_t *bytes) {
    if (strcmp(path, "-") == 0)
        return read_text_argument(path, text, bytes);
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        fprintf(stderr, "samebit: %s: cannot be opened: %s\n", path, strerror(errno));
        return EXIT_FAILED;
    }
    int code = read_stream(file, path, text, bytes);
    fclose(file);
    return code;
}

int encode_text(const sb_tokenizer *tokenizer, const sb_encode_options *options, const char *text, size_t bytes,
                int64_t **ids, int64_t *count) {
    sb_error error;
    size_t found;
    int64_t *encoded;
    if (sb_tokenizer_encode(tokenizer, text, bytes, options, &encoded, &found, &error) != SB_OK)
        return report(&error);
    *ids = malloc((found + 1) * sizeof **ids);
    *count = (int64_t)found;
    if (*ids != NULL)
        memcpy(*ids, encoded, found * sizeof **ids);
    sb_llm_free(encoded);
    return *ids != NULL ? EXIT_RIGHT : out_of_memory();
}

int encode_argument(const arguments *arguments, const sb_tokenizer *tokenizer, const char *argument, int64_t **ids,
                    int64_t *count) {
    sb_encode_options options = SB_ENCODE_DEFAULT;
    char *text;
    size_t bytes;
    options.bare = has_option(arguments, "bare");
    options.plain = has_option(arguments, "plain");
    int code = read_text_argument(argument, &text, &bytes);
    if (code != EXIT_RIGHT)
        return code;
    code = encode_text(tokenizer, &options, text, bytes, ids, count);
    free(text);
    return code;
}
