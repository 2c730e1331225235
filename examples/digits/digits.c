/* Reads handwritten digits with the network in this folder, draws them, and checks the digest of the answers.
 *
 *   digits [FOLDER]     FOLDER holds digits.onnx, samples.npy, labels.npy and digest.txt; default: examples/digits
 *
 * Exit status: 0 when the digest is the documented one, 1 when it is not, 2 when something failed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <samebit/samebit.h>

#define SIDE 8   /* pixels of a picture's side */
#define WHITE 16 /* the darkest grey level: 0 is paper */
#define CLASSES 10
#define BAR_CHARACTERS 14

static const char *folder = "examples/digits";

/* What every call of Samebit reports: print it and stop. */
static void require(sb_status status, const sb_error *error) {
    if (status == SB_OK)
        return;
    fprintf(stderr, "digits: %s: %s\n", sb_status_name(status), error->message);
    exit(2);
}

static void require_that(bool condition, const char *what) {
    if (condition)
        return;
    fprintf(stderr, "digits: %s\n", what);
    exit(2);
}

static const char *in_folder(const char *name) {
    static char path[4096];
    require_that((size_t)snprintf(path, sizeof path, "%s/%s", folder, name) < sizeof path,
                 "the folder's name is too long");
    return path;
}

/* A file of the folder as a contiguous tensor of the given dtype and rank. */
static sb_tensor *load(const char *name, sb_dtype dtype, int rank) {
    sb_error error;
    sb_tensor *tensor, *contiguous;
    require(sb_tensor_load(in_folder(name), NULL, &tensor, &error), &error);
    require(sb_tensor_contiguous(tensor, &contiguous, &error), &error);
    sb_tensor_release(tensor);
    require_that(sb_tensor_dtype(contiguous) == dtype && sb_tensor_rank(contiguous) == rank,
                 "a file of the folder has another type than it should");
    return contiguous;
}

/* All pictures in one run: the batch is a symbol of the model, and any size will do. */
static sb_tensor *classify(sb_tensor *samples, char digest[SB_DIGEST_TEXT_BYTES]) {
    sb_error error;
    sb_model *model;
    sb_session *session;
    sb_tensor *answers, *contiguous;
    require(sb_model_load(in_folder("digits.onnx"), NULL, &model, &error), &error);
    require(sb_session_create(model, NULL, &session, &error), &error);
    require_that(sb_model_input_count(model) == 1 && sb_model_output_count(model) == 1,
                 "the model has other inputs and outputs than it should");
    require(sb_session_run_tensors(session, &samples, &answers, &error), &error);
    sb_value value = sb_value_of_tensor(answers);
    require(sb_digest_values(1, &value, digest, &error), &error);
    require(sb_tensor_contiguous(answers, &contiguous, &error), &error);
    sb_value_release(&value);
    sb_session_destroy(session);
    sb_model_release(model);
    return contiguous;
}

/* ---- drawing ---- */

/* One row of a picture, each pixel two characters wide: greys on a terminal, shades elsewhere. */
static void draw_row(const float *row, bool color) {
    static const char *const shades[] = {"  ", "░░", "▒▒", "▓▓", "██"};
    for (int x = 0; x < SIDE; x++) {
        float level = row[x] < 0 ? 0 : row[x] > WHITE ? WHITE : row[x];
        if (color) /* the palette's greys: 232 is black, 255 nearly white */
            printf("\033[48;5;%dm  ", 233 + (int)(level * 22 / WHITE));
        else
            fputs(shades[(int)(level * 4 / WHITE + 0.5f)], stdout);
    }
    if (color)
        fputs("\033[0m", stdout);
}

/* A bar in eighths of a character, padded to its full length. */
static void draw_bar(float share, const char *paint, bool color) {
    static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    int length = (int)(share * BAR_CHARACTERS * 8 + 0.5f), used = length / 8;
    fputs(color ? paint : "", stdout);
    for (int i = 0; i < used; i++)
        fputs("█", stdout);
    fputs(eighths[length % 8], stdout);
    fputs(color ? "\033[0m" : "", stdout);
    printf("%*s", BAR_CHARACTERS - used - (length % 8 != 0), "");
}

static void draw_class(const float *answer, int digit, int label, bool color) {
    printf("   %d ", digit);
    draw_bar(answer[digit], digit == label ? "\033[32m" : "\033[33m", color);
    printf(" %5.1f %%", 100 * (double)answer[digit]);
}

static int likeliest(const float *answer) {
    int best = 0;
    for (int digit = 1; digit < CLASSES; digit++)
        best = answer[digit] > answer[best] ? digit : best;
    return best;
}

/* A picture with its answer beside it: two columns of five classes, and what came of it. */
static void draw(int number, const float *picture, const float *answer, int label, bool color) {
    int guess = likeliest(answer);
    for (int y = 0; y < SIDE; y++) {
        fputs("  ", stdout);
        draw_row(picture + y * SIDE, color);
        if (y == 0 && guess == label)
            printf("   %d. read as %d: %sright%s", number, guess, color ? "\033[32m" : "", color ? "\033[0m" : "");
        else if (y == 0)
            printf("   %d. read as %d: %swrong%s, a person reads %d", number, guess, color ? "\033[31m" : "",
                   color ? "\033[0m" : "", label);
        for (int column = 0; column < 2 && y >= 2 && y < 2 + CLASSES / 2; column++)
            draw_class(answer, y - 2 + column * CLASSES / 2, label, color);
        putchar('\n');
    }
    putchar('\n');
}

/* ---- the digest ---- */

static bool is_documented(const char *digest) {
    char documented[SB_DIGEST_TEXT_BYTES + 1] = "";
    FILE *file = fopen(in_folder("digest.txt"), "r");
    require_that(file != NULL, "digest.txt cannot be read");
    require_that(fgets(documented, sizeof documented, file) != NULL, "digest.txt is empty");
    fclose(file);
    documented[strcspn(documented, "\r\n")] = '\0';
    return strcmp(digest, documented) == 0;
}

int main(int argc, char **argv) {
    char digest[SB_DIGEST_TEXT_BYTES];
    bool color = isatty(STDOUT_FILENO);
    if (argc > 1)
        folder = argv[1];
    sb_tensor *samples = load("samples.npy", SB_F32, 4), *labels = load("labels.npy", SB_S64, 1);
    sb_tensor *answers = classify(samples, digest);
    int64_t count = sb_tensor_dims(samples)[0];
    require_that(sb_tensor_elements(samples) == count * SIDE * SIDE && sb_tensor_elements(labels) == count &&
                     sb_tensor_elements(answers) == count * CLASSES && sb_tensor_dtype(answers) == SB_F32,
                 "samples, labels and answers do not fit each other");
    const float *pictures = sb_tensor_data(samples), *answer = sb_tensor_data(answers);
    const int64_t *label = sb_tensor_data(labels);
    int right = 0;
    for (int64_t i = 0; i < count; i++) {
        draw((int)i + 1, pictures + i * SIDE * SIDE, answer + i * CLASSES, (int)label[i], color);
        right += likeliest(answer + i * CLASSES) == label[i];
    }
    bool documented = is_documented(digest);
    printf("%d of %d right\nsha256 %s: %s\n", right, (int)count, digest,
           documented ? "the documented bits" : "NOT the documented bits (digest.txt)");
    sb_tensor_release(samples);
    sb_tensor_release(labels);
    sb_tensor_release(answers);
    return documented ? 0 : 1;
}
