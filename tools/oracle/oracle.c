// oracle runs a GGUF file through llama.cpp's public C API and prints what
// Foretoken is compared with. Token ids are decimal numbers between spaces, one
// sequence on a line, in both directions.
//
//	oracle MODEL tokenize [bos] < texts       each text as its length in bytes, a newline, the
//	                                          bytes; one line of ids for each. bos: add what the
//	                                          model wants at the start
//	oracle MODEL greedy N       < sequence    N lines, one for each token of its greedy continuation:
//	                                          best id, its logprob, second id, its logprob
//	oracle MODEL best LAST      < sequence    the same for the rows that predict its last LAST tokens
//	oracle MODEL nll LAST       < sequences   one line for each: summed -logprob of its last LAST tokens
//	oracle MODEL floats OUT                   writes the model with all tensors decoded to F32
//
// Log-probabilities are natural logarithms of the softmax of the raw logits,
// summed in double precision here. The KV cache is F32 and flash attention is
// off; what remains of llama.cpp's own rounding is that its CPU kernels
// quantise activations to 8 bits where the weights are quantised. A model
// written by floats has the same weights without that.

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ggml-backend.h"
#include "gguf.h"
#include "llama.h"

static void die(const char *format, ...) {
    va_list args;
    va_start(args, format);
    fprintf(stderr, "oracle: ");
    vfprintf(stderr, format, args);
    fprintf(stderr, "\n");
    va_end(args);
    exit(1);
}

static void *allocate(size_t n, size_t size) {
    void *p = calloc(n > 0 ? n : 1, size);
    if (p == NULL) die("out of memory");
    return p;
}

static void log_errors(enum ggml_log_level level, const char *text, void *data) {
    (void)data;
    if (level == GGML_LOG_LEVEL_ERROR) fputs(text, stderr);
}

// read_all returns standard input, NUL-terminated; its length in *n.
static char *read_all(size_t *n) {
    size_t cap = 1 << 16;
    char *text = allocate(cap, 1);
    *n = 0;
    for (size_t got; (got = fread(text + *n, 1, cap - 1 - *n, stdin)) > 0;) {
        *n += got;
        if (*n == cap - 1) {
            cap *= 2;
            text = realloc(text, cap);
            if (text == NULL) die("out of memory");
        }
    }
    if (ferror(stdin)) die("reading standard input: %s", strerror(errno));
    text[*n] = '\0';
    return text;
}

// parse_ids reads the ids of one line into ids and returns how many there are.
static int parse_ids(const char *line, llama_token *ids, int max, int vocab) {
    int n = 0;
    for (const char *p = line;;) {
        char *end;
        long id = strtol(p, &end, 10);
        if (end == p) {
            if (p[strspn(p, " \t\r")] != '\0') die("not a token id: %.20s", p);
            return n;
        }
        if (id < 0 || id >= vocab) die("token id %ld is not in [0, %d)", id, vocab);
        if (n == max) die("a sequence has more than %d tokens", max);
        ids[n++] = (llama_token)id;
        p = end;
    }
}

// log_sum returns the logarithm of the sum of exp(logits).
static double log_sum(const float *logits, int vocab) {
    double top = logits[0], sum = 0;
    for (int i = 1; i < vocab; i++) top = logits[i] > top ? logits[i] : top;
    for (int i = 0; i < vocab; i++) sum += exp(logits[i] - top);
    return top + log(sum);
}

static struct llama_context *open_context(struct llama_model *model, int tokens) {
    struct llama_context_params params = llama_context_default_params();
    params.n_ctx = tokens;
    params.n_batch = params.n_ubatch = tokens;
    params.n_threads = params.n_threads_batch = 2;
    params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
    params.type_k = params.type_v = GGML_TYPE_F32;
    params.swa_full = true;
    struct llama_context *ctx = llama_init_from_model(model, params);
    if (ctx == NULL) die("cannot make a context of %d tokens", tokens);
    return ctx;
}

// decode runs n tokens from position first on and asks for the logits of the
// rows from row want on.
static void decode(struct llama_context *ctx, const llama_token *ids, int n, int first, int want) {
    struct llama_batch batch = llama_batch_init(n, 0, 1);
    batch.n_tokens = n;
    for (int i = 0; i < n; i++) {
        batch.token[i] = ids[i];
        batch.pos[i] = first + i;
        batch.n_seq_id[i] = 1;
        batch.seq_id[i][0] = 0;
        batch.logits[i] = i >= want;
    }
    int status = llama_decode(ctx, batch);
    if (status != 0) die("llama_decode: status %d", status);
    llama_batch_free(batch);
}

static void tokenize(const struct llama_vocab *vocab, bool bos) {
    size_t length;
    char *input = read_all(&length);
    for (char *p = input; p < input + length;) {
        char *text;
        long n = strtol(p, &text, 10);
        if (text == p || *text++ != '\n' || n < 0 || n > input + length - text) die("expected a length and so many bytes");
        p = text + n;

        int max = (int)n + 8; // a token for every byte, and special ones
        llama_token *ids = allocate(max, sizeof *ids);
        // Added tokens in the text are recognised, as Foretoken and Hugging Face do.
        int count = llama_tokenize(vocab, text, (int)n, ids, max, bos, true);
        if (count < 0) die("llama_tokenize: %d", count);
        for (int i = 0; i < count; i++) printf(i > 0 ? " %d" : "%d", ids[i]);
        printf("\n");
        free(ids);
    }
}

// print_best prints the two best tokens of a row and returns the first.
static llama_token print_best(const float *logits, int vocab) {
    int first = 0, second = -1;
    for (int i = 1; i < vocab; i++) {
        if (logits[i] > logits[first]) {
            second = first;
            first = i;
        } else if (second < 0 || logits[i] > logits[second]) {
            second = i;
        }
    }
    double norm = log_sum(logits, vocab);
    printf("%d %.6f %d %.6f\n", first, logits[first] - norm, second, logits[second] - norm);
    return first;
}

// read_sequence returns the ids of the first line of standard input.
static llama_token *read_sequence(int vocab, int *n) {
    size_t length;
    char *text = read_all(&length);
    text[strcspn(text, "\n")] = '\0';
    llama_token *ids = allocate(length + 1, sizeof *ids);
    *n = parse_ids(text, ids, (int)length, vocab);
    free(text);
    return ids;
}

static void greedy(struct llama_model *model, int steps) {
    int vocab = llama_vocab_n_tokens(llama_model_get_vocab(model));
    int n, position = 0;
    llama_token *ids = read_sequence(vocab, &n);
    if (n == 0) die("greedy needs a prompt");

    struct llama_context *ctx = open_context(model, n + steps);
    for (int step = 0; step < steps; step++) {
        decode(ctx, ids, n, position, n - 1);
        position += n;
        ids[0] = print_best(llama_get_logits_ith(ctx, -1), vocab); // end-of-sequence does not stop it
        n = 1;
    }
}

static void best(struct llama_model *model, int last) {
    int vocab = llama_vocab_n_tokens(llama_model_get_vocab(model));
    int n;
    llama_token *ids = read_sequence(vocab, &n);
    if (last < 1 || last >= n) die("a sequence of %d tokens has no %d with a row before them", n, last);

    struct llama_context *ctx = open_context(model, n);
    decode(ctx, ids, n, 0, n - last - 1);
    for (int i = n - last - 1; i < n - 1; i++) print_best(llama_get_logits_ith(ctx, i), vocab);
}

static void nll(struct llama_model *model, int last) {
    enum { longest = 512 };
    size_t length;
    char *text = read_all(&length);
    int vocab = llama_vocab_n_tokens(llama_model_get_vocab(model));
    llama_token ids[longest];

    struct llama_context *ctx = open_context(model, longest);
    for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        int n = parse_ids(line, ids, longest, vocab), from = n - last;
        if (last < 1 || from < 1) die("a sequence of %d tokens has no %d with a row before them", n, last);
        llama_memory_clear(llama_get_memory(ctx), true);
        decode(ctx, ids, n, 0, from - 1);
        double sum = 0;
        for (int i = from; i < n; i++) {
            const float *logits = llama_get_logits_ith(ctx, i - 1);
            sum += log_sum(logits, vocab) - logits[ids[i]];
        }
        printf("%.6f\n", sum);
        fflush(stdout);
    }
}

// floats copies a model, decoding every tensor with ggml's own decoders.
static void floats(const char *in, const char *out) {
    struct ggml_context *tensors;
    struct gguf_context *source = gguf_init_from_file(in, (struct gguf_init_params){.ctx = &tensors});
    if (source == NULL) die("cannot read %s", in);
    struct gguf_context *copy = gguf_init_empty();
    gguf_set_kv(copy, source);
    gguf_set_val_u32(copy, "general.file_type", LLAMA_FTYPE_ALL_F32);

    for (int64_t i = 0; i < gguf_get_n_tensors(source); i++) {
        struct ggml_tensor *t = ggml_get_tensor(tensors, gguf_get_tensor_name(source, i));
        int64_t n = ggml_nelements(t);
        gguf_add_tensor(copy, t);
        gguf_set_tensor_type(copy, t->name, GGML_TYPE_F32);
        if (t->type == GGML_TYPE_F32) {
            gguf_set_tensor_data(copy, t->name, t->data);
            continue;
        }
        float *decoded = allocate(n, sizeof *decoded);
        ggml_get_type_traits(t->type)->to_float(t->data, decoded, n);
        gguf_set_tensor_data(copy, t->name, decoded);
    }
    if (!gguf_write_to_file(copy, out, false)) die("cannot write %s", out);
}

int main(int argc, char **argv) {
    if (argc < 3) die("usage: oracle MODEL tokenize [bos] | greedy N | best LAST | nll LAST | floats OUT");
    const char *command = argv[2], *option = argc > 3 ? argv[3] : "";

    llama_log_set(log_errors, NULL);
    ggml_backend_load_all_from_path(ORACLE_LIBRARIES);
    if (strcmp(command, "floats") == 0) {
        floats(argv[1], option);
        return 0;
    }
    struct llama_model_params params = llama_model_default_params();
    params.n_gpu_layers = 0;
    params.vocab_only = strcmp(command, "tokenize") == 0;
    struct llama_model *model = llama_model_load_from_file(argv[1], params);
    if (model == NULL) die("cannot load %s", argv[1]);

    if (strcmp(command, "tokenize") == 0) {
        tokenize(llama_model_get_vocab(model), strcmp(option, "bos") == 0);
    } else if (strcmp(command, "greedy") == 0) {
        greedy(model, atoi(option));
    } else if (strcmp(command, "best") == 0) {
        best(model, atoi(option));
    } else if (strcmp(command, "nll") == 0) {
        nll(model, atoi(option));
    } else {
        die("unknown command %s", command);
    }
    return 0;
}
