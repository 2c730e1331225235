/* DFT and STFT: many lines at once, by tiles of lines and numbers of their spectra.
 *
 * Roots are laid out once for each tile's numbers, since reading them by their index costs as much as the sums. A chunk of
 * lines is read, then each of its tiles is computed. */
#include <string.h>

#include "base/allocation.h"
#include "cpu/list.h"
#include "cpu/signal/transform.h"
#include "cpu/supports.h"
#include "ops/moving.h"
#include "ops/number.h"
#include "ops/signal.h"
#include "ops/signal_values.h"

/* Roots laid out at once, and lines read at once: about what the second-level cache holds of each. */
#define ROOT_BYTES ((int64_t)1 << 22)
#define LINE_BYTES ((int64_t)1 << 19)

typedef struct transform_job transform_job;

struct transform_job {
    sb_call *call;
    /* Reads line `line`, and says where number 0 of its spectrum goes. */
    void (*read)(const transform_job *job, int64_t line, double *real, double *imaginary);
    int64_t (*place)(const transform_job *job, int64_t line);
    const sb_tensor *input, *window;
    sb_tensor *output;
    sb_dft_plan dft;
    sb_stft_plan stft;
    int64_t lines, length, numbers; /* numbers of a spectrum */
    int64_t number_stride;          /* of the output */
    bool inverse, real_output;
    sb_transform *transform;

    const double *cosines, *sines; /* [length] */
    double *roots;                 /* a block for each tile's numbers: see sb_transform_tile */
    double *real, *imaginary;      /* of each group of SB_TRANSFORM_LINES lines: [length][SB_TRANSFORM_LINES] */
    int64_t first_block, blocks;   /* of numbers, laid out now */
    int64_t first_line, line_count, groups;
    /* Of each group: the first number of its lines that counts, and behind the last. Beside them all are zero, as under the
     * ends of a padded window: a root times zero changes no sum, see sb_transform_tile. */
    int64_t *begins, *ends;
};

static int64_t divide_up(int64_t count, int64_t by) {
    return (count + by - 1) / by;
}

/* ---- pieces of work ---- */

static void lay_out_roots(void *context, int64_t begin, int64_t end) {
    const transform_job *job = context;
    for (int64_t block = begin; block < end; block++) {
        double *to = job->roots + block * job->length * 2 * SB_TRANSFORM_NUMBERS;
        for (int64_t lane = 0; lane < SB_TRANSFORM_NUMBERS; lane++) {
            /* Numbers behind the last one are computed and dropped. */
            int64_t k = ((job->first_block + block) * SB_TRANSFORM_NUMBERS + lane) % job->length, turn = 0;
            for (int64_t m = 0; m < job->length; m++) {
                double s = job->sines[turn];
                to[m * 2 * SB_TRANSFORM_NUMBERS + lane] = job->cosines[turn];
                to[(m * 2 + 1) * SB_TRANSFORM_NUMBERS + lane] = job->inverse ? -s : s;
                turn += k;
                turn = turn >= job->length ? turn - job->length : turn;
            }
        }
    }
}

static void read_lines(void *context, int64_t begin, int64_t end) {
    const transform_job *job = context;
    for (int64_t line = begin; line < end; line++) {
        int64_t group = line / SB_TRANSFORM_LINES, lane = line % SB_TRANSFORM_LINES;
        int64_t at = group * job->length * SB_TRANSFORM_LINES + lane;
        job->read(job, job->first_line + line, job->real + at, job->imaginary != NULL ? job->imaginary + at : NULL);
    }
}

/* Finds what counts in groups [begin, end). */
static void find_ends(void *context, int64_t begin, int64_t end) {
    const transform_job *job = context;
    const int64_t width = SB_TRANSFORM_LINES;
    for (int64_t group = begin; group < end; group++) {
        const double *real = job->real + group * job->length * width;
        const double *imaginary = job->imaginary != NULL ? job->imaginary + group * job->length * width : real;
        int64_t first = 0, last = job->length * width;
        if (job->input->dtype != SB_F64) {
            while (first < last && real[first] == 0.0 && imaginary[first] == 0.0)
                first++;
            while (first < last && real[last - 1] == 0.0 && imaginary[last - 1] == 0.0)
                last--;
        }
        job->begins[group] = first / width;
        job->ends[group] = divide_up(last, width);
    }
}

static void store_numbers(const transform_job *job, int64_t line, int64_t first, const double *re, const double *im) {
    int64_t left = job->numbers - first, count = left < SB_TRANSFORM_NUMBERS ? left : SB_TRANSFORM_NUMBERS;
    int64_t at = job->place(job, line) + first * job->number_stride;
    if (job->output->dtype == SB_F32 && job->number_stride == 2 && !job->inverse && !job->real_output) {
        float *to = (float *)(void *)job->output->data + at;
        for (int64_t i = 0; i < count; i++) {
            to[2 * i] = (float)re[i];
            to[2 * i + 1] = (float)im[i];
        }
        return;
    }
    double divisor = (double)job->length;
    sb_dtype dtype = job->output->dtype;
    for (int64_t i = 0; i < count; i++, at += job->number_stride) {
        sb_number_store(dtype, job->output->data, at, job->inverse ? re[i] / divisor : re[i]);
        if (!job->real_output)
            sb_number_store(dtype, job->output->data, at + 1, job->inverse ? im[i] / divisor : im[i]);
    }
}

static void compute_tiles(void *context, int64_t begin, int64_t end) {
    const transform_job *job = context;
    double re[SB_TRANSFORM_LINES * SB_TRANSFORM_NUMBERS], im[SB_TRANSFORM_LINES * SB_TRANSFORM_NUMBERS];
    for (int64_t item = begin; item < end; item++) {
        int64_t block = item / job->groups, group = item % job->groups;
        int64_t begin = job->begins[group], at = (group * job->length + begin) * SB_TRANSFORM_LINES;
        int64_t left = job->numbers - (job->first_block + block) * SB_TRANSFORM_NUMBERS;
        sb_transform_tile tile = {.length = job->ends[group] - begin,
                                  .numbers = left < SB_TRANSFORM_NUMBERS ? (int)left : SB_TRANSFORM_NUMBERS,
                                  .roots = job->roots + (block * job->length + begin) * 2 * SB_TRANSFORM_NUMBERS,
                                  .real = job->real + at,
                                  .imaginary = job->imaginary != NULL ? job->imaginary + at : NULL,
                                  .sum_real = re,
                                  .sum_imaginary = im};
        job->transform(&tile);
        int64_t first = group * SB_TRANSFORM_LINES;
        for (int64_t lane = 0; lane < SB_TRANSFORM_LINES && first + lane < job->line_count; lane++)
            store_numbers(job, job->first_line + first + lane, (job->first_block + block) * SB_TRANSFORM_NUMBERS,
                          re + lane * SB_TRANSFORM_NUMBERS, im + lane * SB_TRANSFORM_NUMBERS);
    }
}

/* ---- the whole job ---- */

static int64_t at_least_one(int64_t count) {
    return count < 1 ? 1 : count;
}

static int64_t smaller(int64_t a, int64_t b) {
    return a < b ? a : b;
}

/* Runs the job, whose first fields are set. */
static sb_status run_job(transform_job *job, bool complex) {
    sb_workers *workers = job->call->workers;
    int64_t length = job->length, all_blocks = divide_up(job->numbers, SB_TRANSFORM_NUMBERS);
    /* All of them fit sizes: there are tensors of `length` elements, and length is an int32. */
    int64_t block_elements = length * 2 * SB_TRANSFORM_NUMBERS, group_elements = length * SB_TRANSFORM_LINES;
    int64_t blocks = smaller(all_blocks, at_least_one(ROOT_BYTES / 8 / block_elements));
    int64_t groups = smaller(divide_up(job->lines, SB_TRANSFORM_LINES), at_least_one(LINE_BYTES / 8 / group_elements));
    int64_t line_elements = groups * group_elements;
    void *memory, *ends;
    SB_TRY(sb_call_workspace(job->call, (size_t)(2 * groups) * sizeof(int64_t), &ends));
    job->begins = ends;
    job->ends = job->begins + groups;
    SB_TRY(sb_call_workspace(
        job->call, (size_t)(2 * length + blocks * block_elements + (complex ? 2 : 1) * line_elements) * sizeof(double),
        &memory));
    double *cosines = memory, *sines = cosines + length;
    for (int64_t i = 0; i < length; i++)
        sb_signal_root(i, length, &cosines[i], &sines[i]);
    job->cosines = cosines;
    job->sines = sines;
    job->roots = sines + length;
    job->real = job->roots + blocks * block_elements;
    job->imaginary = complex ? job->real + line_elements : NULL;
    /* Lanes of no line are computed and dropped. */
    memset(job->real, 0, (size_t)((complex ? 2 : 1) * line_elements) * sizeof(double));
    for (job->first_block = 0; job->first_block < all_blocks; job->first_block += blocks) {
        job->blocks = smaller(blocks, all_blocks - job->first_block);
        sb_workers_run(workers, job->blocks, 1, lay_out_roots, job);
        for (job->first_line = 0; job->first_line < job->lines; job->first_line += groups * SB_TRANSFORM_LINES) {
            job->line_count = smaller(groups * SB_TRANSFORM_LINES, job->lines - job->first_line);
            job->groups = divide_up(job->line_count, SB_TRANSFORM_LINES);
            sb_workers_run(workers, job->line_count, at_least_one(4096 / length), read_lines, job);
            sb_workers_run(workers, job->groups, at_least_one(4096 / length), find_ends, job);
            sb_workers_run(workers, job->blocks * job->groups, 1, compute_tiles, job);
        }
    }
    return SB_OK;
}

/* Whether imaginary parts are looked at: see sb_transform_tile. */
static bool has_imaginary(const sb_tensor *input, bool complex) {
    return complex || input->dtype == SB_F64;
}

/* ---- DFT ---- */

/* The offsets at which line `line` begins in a tensor: lines run along the axis, over all other dimensions but the last. */
static int64_t line_offset(const sb_tensor *tensor, const sb_dft_plan *plan, int64_t line) {
    int64_t offset = 0;
    for (int d = tensor->rank - 2; d >= 0; d--) {
        if (d == plan->axis)
            continue;
        offset += line % plan->dims[d] * tensor->strides[d];
        line /= plan->dims[d];
    }
    return offset;
}

static void read_dft(const transform_job *job, int64_t line, double *real, double *imaginary) {
    sb_dft_read_line(job->input, &job->dft, line_offset(job->input, &job->dft, line), SB_TRANSFORM_LINES, real,
                     imaginary);
}

static int64_t place_dft(const transform_job *job, int64_t line) {
    return line_offset(job->output, &job->dft, line);
}

static sb_status launch_dft(sb_call *call) {
    const sb_signal_params *params = call->node->params;
    transform_job job = {.call = call,
                         .read = read_dft,
                         .place = place_dft,
                         .input = sb_call_input(call, 0),
                         .inverse = params->inverse,
                         .transform = sb_transform_for(call->isa)};
    SB_TRY(sb_dft_read(call, &job.dft));
    int last = job.input->rank - 1, axis = job.dft.axis;
    SB_TRY(sb_call_output_shape(call, 0, job.input->dtype, job.input->rank, job.dft.dims, &job.output));
    if (sb_tensor_elements(job.output) == 0)
        return SB_OK;
    job.length = job.dft.length;
    job.numbers = job.dft.dims[axis];
    job.number_stride = job.output->strides[axis];
    job.real_output = job.dft.to_real;
    job.lines = sb_tensor_elements(job.output) / job.numbers / job.dft.dims[last];
    return run_job(&job, has_imaginary(job.input, job.input->dims[last] == 2 || job.dft.to_real));
}

/* ---- STFT ---- */

static void read_stft(const transform_job *job, int64_t line, double *real, double *imaginary) {
    const sb_stft_plan *plan = &job->stft;
    const sb_tensor *input = job->input, *window = job->window;
    bool packed =
        window == NULL || (window->dtype == SB_F32 && window->strides[0] == 1 && window->dims[0] >= plan->length);
    if (packed && input->dtype == SB_F32 && input->strides[1] == 1 && imaginary == NULL) {
        const float *from = (const float *)(const void *)input->data + line / plan->frames * input->strides[0] +
                            line % plan->frames * plan->step;
        const float *weights = window != NULL ? (const float *)(const void *)window->data : NULL;
        for (int64_t m = 0; m < plan->length; m++)
            real[m * SB_TRANSFORM_LINES] = (double)from[m] * (weights != NULL ? (double)weights[m] : 1.0);
        return;
    }
    sb_stft_read_frame(job->input, job->window, plan, line / plan->frames, line % plan->frames * plan->step,
                       SB_TRANSFORM_LINES, real, imaginary);
}

static int64_t place_stft(const transform_job *job, int64_t line) {
    return line * job->numbers * 2;
}

static sb_status launch_stft(sb_call *call) {
    transform_job job = {.call = call,
                         .read = read_stft,
                         .place = place_stft,
                         .input = sb_call_input(call, 0),
                         .window = sb_call_input(call, 2),
                         .number_stride = 2,
                         .transform = sb_transform_for(call->isa)};
    SB_TRY(sb_stft_read(call, &job.stft));
    const int64_t dims[4] = {job.input->dims[0], job.stft.frames, job.stft.bins, 2};
    SB_TRY(sb_call_output_shape(call, 0, job.input->dtype, 4, dims, &job.output));
    if (sb_tensor_elements(job.output) == 0)
        return SB_OK;
    job.length = job.stft.length;
    job.numbers = job.stft.bins;
    job.lines = dims[0] * dims[1];
    return run_job(&job, has_imaginary(job.input, job.stft.complex));
}

const sb_kernel sb_cpu_kernels_signal[] = {
    {.op = "DFT", .name = "dft", .supports = sb_cpu_supports_all, .launch = launch_dft},
    {.op = "STFT", .name = "stft", .supports = sb_cpu_supports_all, .launch = launch_stft},
    {0},
};
