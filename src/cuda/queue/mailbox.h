/* Mailboxes of a device: see sb_mailbox in kernel/device.h. */
#ifndef SB_CUDA_QUEUE_MAILBOX_H
#define SB_CUDA_QUEUE_MAILBOX_H

#include "kernel/device.h"

/** See sb_mailbox_create, sb_mailbox_destroy, sb_queue_receive, sb_queue_leave_words and sb_queue_collect_words. */
sb_status sb_cuda_mailbox_create(sb_queue *queue, size_t count, const sb_tensor *to, const sb_tensor *cleared,
                                 sb_mailbox **mailbox, sb_error *error);
void sb_cuda_mailbox_destroy(sb_mailbox *mailbox);
sb_status sb_cuda_mailbox_receive(sb_queue *queue, const sb_mailbox *mailbox, sb_error *error);
sb_status sb_cuda_mailbox_leave(sb_queue *queue, const sb_mailbox *mailbox, const void *address,
                                const sb_host_block *block, sb_error *error);
sb_status sb_cuda_mailbox_collect(sb_queue *queue, const sb_tensor *words, const sb_tensor *turn, void *places,
                                  int64_t count, sb_error *error);

#endif
