#include "cuda/queue/mailbox.h"

#include "base/allocation.h"
#include "cuda/queue/mailbox_parameters.h"
#include "cuda/queue/run_queue.h"

typedef struct cuda_mailbox {
    sb_mailbox base;
    sb_cuda_pinned *pinned; /* the places */
    sb_storage *turn;       /* on the device: a word of 64 bits */
    sb_cuda_mail mail;
    sb_cuda_answer answer; /* but for its address */
    const sb_cuda_kernel *receive, *leave;
} cuda_mailbox;

static const cuda_mailbox *own(const sb_mailbox *mailbox) {
    return (const cuda_mailbox *)mailbox;
}

static CUdeviceptr address_of(const void *data) {
    return (CUdeviceptr)(uintptr_t)data;
}

void sb_cuda_mailbox_destroy(sb_mailbox *mailbox) {
    cuda_mailbox *box = (cuda_mailbox *)mailbox;
    sb_cuda_pinned_destroy(box->pinned);
    sb_storage_release(box->turn);
    sb_free(box);
}

/* Turns count from 0. */
static sb_status clear_turn(sb_queue *queue, const cuda_mailbox *box, sb_error *error) {
    const sb_cuda_task task = {
        .kind = SB_CUDA_FILL,
        .step = -1,
        .fill = {.to = address_of(box->turn->data), .bytes = sizeof(uint64_t), .value = 0},
    };
    return sb_cuda_launch(&((sb_cuda_run_queue *)queue)->tasks, &task, error);
}

static sb_status fill_mailbox(cuda_mailbox *box, sb_queue *queue, const sb_tensor *to, const sb_tensor *cleared,
                              sb_error *error) {
    sb_cuda_device *device = queue->device;
    SB_TRY(sb_cuda_kernel_find(device, "mailbox", "sb_cuda_mailbox_receive", sizeof box->mail, &box->receive, error));
    SB_TRY(sb_cuda_kernel_find(device, "mailbox", "sb_cuda_mailbox_leave", sizeof box->answer, &box->leave, error));
    SB_TRY(sb_cuda_pinned_create(device, box->base.count * box->base.place_bytes, &box->pinned, error));
    SB_TRY(sb_queue_storage(queue, sizeof(uint64_t), &box->turn, error));
    box->base.places = box->pinned->data;
    box->mail = (sb_cuda_mail){
        .places = box->pinned->data,
        .turn = box->turn->data,
        .to = (uint64_t *)(void *)to->data,
        .count = (int32_t)box->base.count,
        .words = (int32_t)(to->dims[0] / (int64_t)sizeof(uint64_t)),
        .cleared = (uint32_t *)(void *)cleared->data,
        .cleared_words = cleared->dims[0],
    };
    box->answer = (sb_cuda_answer){.words = box->mail.cleared, .count = cleared->dims[0]};
    return clear_turn(queue, box, error);
}

sb_status sb_cuda_mailbox_create(sb_queue *queue, size_t count, const sb_tensor *to, const sb_tensor *cleared,
                                 sb_mailbox **mailbox, sb_error *error) {
    cuda_mailbox *box = sb_allocate_array(1, sizeof *box);
    if (box == NULL)
        return sb_fail_memory(error, sizeof *box);
    box->base = (sb_mailbox){.count = count, .place_bytes = sizeof(uint64_t) + (size_t)to->dims[0]};
    sb_status status = fill_mailbox(box, queue, to, cleared, error);
    if (status != SB_OK) {
        sb_cuda_mailbox_destroy(&box->base);
        return status;
    }
    *mailbox = &box->base;
    return SB_OK;
}

static sb_status launch(sb_queue *queue, const sb_cuda_kernel *kernel, unsigned blocks, const void *parameters,
                        int range_count, const sb_cuda_range *ranges, sb_error *error) {
    const sb_cuda_task task = {.kind = SB_CUDA_KERNEL,
                               .step = -1,
                               .kernel = {.kernel = kernel,
                                          .grid = {blocks, 1, 1},
                                          .block = {SB_CUDA_MAILBOX_THREADS, 1, 1},
                                          .parameters = parameters,
                                          .range_count = range_count,
                                          .ranges = ranges}};
    return sb_cuda_launch(&((sb_cuda_run_queue *)queue)->tasks, &task, error);
}

sb_status sb_cuda_mailbox_receive(sb_queue *queue, const sb_mailbox *mailbox, sb_error *error) {
    const cuda_mailbox *box = own(mailbox);
    const sb_cuda_mail *mail = &box->mail;
    const sb_cuda_range ranges[] = {
        {address_of(mail->places), box->pinned->bytes, false},
        {address_of(mail->turn), sizeof *mail->turn, true},
        {address_of(mail->to), (size_t)mail->words * sizeof *mail->to, true},
        {address_of(mail->cleared), (size_t)mail->cleared_words * sizeof *mail->cleared, true},
    };
    return launch(queue, box->receive, 1, mail, 4, ranges, error);
}

sb_status sb_cuda_mailbox_leave(sb_queue *queue, const sb_mailbox *mailbox, const void *address,
                                const sb_host_block *block, sb_error *error) {
    const cuda_mailbox *box = own(mailbox);
    sb_cuda_answer answer = box->answer;
    answer.address = address;
    const sb_cuda_range ranges[] = {
        {address_of(answer.words), (size_t)answer.count * sizeof *answer.words, false},
        {address_of(address), sizeof *answer.address, false},
        {address_of(block->data), block->bytes, true},
    };
    unsigned blocks = (unsigned)((answer.count + SB_CUDA_MAILBOX_THREADS - 1) / SB_CUDA_MAILBOX_THREADS);
    return launch(queue, box->leave, blocks < 16 ? blocks : 16, &answer, 3, ranges, error);
}

sb_status sb_cuda_mailbox_collect(sb_queue *queue, const sb_tensor *words, const sb_tensor *turn, void *places,
                                  int64_t count, sb_error *error) {
    const sb_cuda_collection collection = {
        .words = (uint32_t *)(void *)words->data,
        .to = places,
        .turn = (uint64_t *)(void *)turn->data,
        .count = words->dims[0],
        .places = count,
    };
    /* All there is: in a recording this is behind every other task. Beside some of them, as a branch of the graph, a token of a language
     * model took 7 us longer than with a copy behind it. */
    const sb_cuda_range ranges[] = {{0, SIZE_MAX / 2, true}};
    const sb_cuda_kernel *kernel;
    SB_TRY(sb_cuda_kernel_find(queue->device, "mailbox", "sb_cuda_mailbox_collect", sizeof collection, &kernel, error));
    return launch(queue, kernel, 1, &collection, 1, ranges, error);
}
