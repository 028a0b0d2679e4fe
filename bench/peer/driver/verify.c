// verify measures what llama-bench does not: one forward of k tokens of one
// sequence with the logits of all of them, as the verification of drafts wants.
//
//	verify MODEL THREADS CONTEXT CYCLES K...
//
// It prints one JSON object: the features that llama.cpp was built with and
// sees, and the milliseconds of every forward by k. The sizes take turns, so
// that what else the machine does meets all of them. Each turn begins with an
// untimed forward: llama.cpp rebuilds its graph when the size changes.

#include <stdio.h>
#include <stdlib.h>

#include "ggml-cpu.h"
#include "llama.h"

enum { max_sizes = 32, timed = 3 };

static void die(const char *what) {
    fprintf(stderr, "verify: %s\n", what);
    exit(1);
}

static void log_errors(enum ggml_log_level level, const char *text, void *data) {
    (void)data;
    if (level == GGML_LOG_LEVEL_ERROR) fputs(text, stderr);
}

// forward runs n random tokens from position on, with the logits of the last
// one or of all, and returns how long that took.
static double forward(struct llama_context *ctx, struct llama_batch *batch, int position, int n, bool all) {
    int vocab = llama_vocab_n_tokens(llama_model_get_vocab(llama_get_model(ctx)));
    batch->n_tokens = n;
    for (int i = 0; i < n; i++) {
        batch->token[i] = rand() % vocab;
        batch->pos[i] = position + i;
        batch->n_seq_id[i] = 1;
        batch->seq_id[i][0] = 0;
        batch->logits[i] = all || i == n - 1;
    }
    int64_t start = ggml_time_us();
    if (llama_decode(ctx, *batch) != 0) die("llama_decode failed");
    llama_synchronize(ctx);
    return (double)(ggml_time_us() - start) / 1000;
}

int main(int argc, char **argv) {
    if (argc < 6 || argc > 5 + max_sizes) die("usage: verify MODEL THREADS CONTEXT CYCLES K...");
    int threads = atoi(argv[2]), context = atoi(argv[3]), cycles = atoi(argv[4]), sizes = argc - 5;
    int k[max_sizes], largest = 0;
    for (int i = 0; i < sizes; i++) {
        k[i] = atoi(argv[5 + i]);
        if (k[i] < 1) die("K is a positive number");
        if (k[i] > largest) largest = k[i];
    }
    if (threads < 1 || context < 0 || cycles < 1) die("THREADS and CYCLES are positive numbers, CONTEXT is not negative");

    llama_log_set(log_errors, NULL);
    struct llama_model *model = llama_model_load_from_file(argv[1], llama_model_default_params());
    if (model == NULL) die("cannot load the model");

    struct llama_context_params cp = llama_context_default_params();
    cp.n_ctx = context + largest;
    cp.n_batch = cp.n_ubatch = largest > 512 ? largest : 512;
    cp.n_threads = cp.n_threads_batch = threads;
    struct llama_context *ctx = llama_init_from_model(model, cp);
    if (ctx == NULL) die("cannot make a context");
    struct ggml_threadpool_params tp = ggml_threadpool_params_default(threads);
    struct ggml_threadpool *pool = ggml_threadpool_new(&tp);
    if (pool == NULL) die("cannot make threads");
    llama_attach_threadpool(ctx, pool, NULL);

    struct llama_batch batch = llama_batch_init(cp.n_batch, 0, 1);
    for (int at = 0; at < context; at += cp.n_batch) {
        int n = context - at;
        forward(ctx, &batch, at, n < (int)cp.n_batch ? n : (int)cp.n_batch, false);
    }
    double *ms = calloc((size_t)sizes * cycles * timed, sizeof *ms);
    if (ms == NULL) die("out of memory");
    for (int cycle = 0; cycle < cycles; cycle++) {
        for (int i = 0; i < sizes; i++) {
            for (int j = -1; j < timed; j++) {
                llama_memory_seq_rm(llama_get_memory(ctx), 0, context, -1);
                double took = forward(ctx, &batch, context, k[i], true);
                if (j >= 0) ms[(i * cycles + cycle) * timed + j] = took;
            }
        }
    }

    printf("{\"features\": \"%s\", \"verify\": [", llama_print_system_info());
    for (int i = 0; i < sizes; i++) {
        printf("%s{\"k\": %d, \"ms\": [", i > 0 ? ", " : "", k[i]);
        for (int j = 0; j < cycles * timed; j++) printf("%s%.3f", j > 0 ? ", " : "", ms[i * cycles * timed + j]);
        printf("]}");
    }
    printf("]}\n");
    return 0;
}
