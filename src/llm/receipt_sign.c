/* Signatures of receipts: Ed25519 (RFC 8032) by libcrypto, over a receipt's digest. Keys are PEM files. */
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <string.h>

#include "base/allocation.h"
#include "base/file.h"
#include "llm/receipt.h"

#define KEY_BYTES ((size_t)64 << 10)

/* What is signed: these words, so that a signature of a receipt is none of anything else, and the digest. */
static const char words[] = "samebit receipt 1 signature";
enum { MESSAGE_BYTES = sizeof words + SB_DIGEST_BYTES };

static void write_message(const sb_llm_receipt *receipt, unsigned char message[MESSAGE_BYTES]) {
    memcpy(message, words, sizeof words);
    memcpy(message + sizeof words, receipt->digest, SB_DIGEST_BYTES);
}

/* Nobody is asked for a password: the library does not talk to terminals. */
static int no_password(char *text, int bytes, int writing, void *context) {
    (void)text;
    (void)bytes;
    (void)writing;
    (void)context;
    return -1;
}

static sb_status read_key(const char *path, bool is_private, EVP_PKEY **key, sb_error *error) {
    void *bytes;
    size_t size;
    SB_TRY(sb_file_read(path, KEY_BYTES, &bytes, &size, error));
    BIO *source = BIO_new_mem_buf(bytes, (int)size);
    *key = NULL;
    if (source != NULL)
        *key = is_private ? PEM_read_bio_PrivateKey(source, NULL, no_password, NULL)
                          : PEM_read_bio_PUBKEY(source, NULL, no_password, NULL);
    BIO_free(source);
    sb_free(bytes);
    ERR_clear_error();
    if (*key == NULL || EVP_PKEY_id(*key) != EVP_PKEY_ED25519) {
        const char *kind = *key == NULL ? "no" : "not an Ed25519";
        EVP_PKEY_free(*key);
        return sb_fail(error, SB_ERROR_INVALID_FILE,
                       "%.300s holds %s %s key in PEM without a password: make one by 'openssl genpkey -algorithm "
                       "ed25519', and its public half by 'openssl pkey -pubout'",
                       path, kind, is_private ? "private" : "public");
    }
    return SB_OK;
}

sb_status sb_llm_key_check(const char *key_path, sb_error *error) {
    EVP_PKEY *key;
    SB_TRY(read_key(key_path, true, &key, error));
    EVP_PKEY_free(key);
    return SB_OK;
}

sb_status sb_llm_receipt_sign(sb_llm_receipt *receipt, const char *key_path, sb_error *error) {
    unsigned char message[MESSAGE_BYTES];
    size_t bytes = sizeof receipt->signature;
    EVP_PKEY *key;
    SB_TRY(read_key(key_path, true, &key, error));
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    write_message(receipt, message);
    bool is_signed = context != NULL && EVP_DigestSignInit(context, NULL, NULL, NULL, key) == 1 &&
                     EVP_DigestSign(context, receipt->signature, &bytes, message, sizeof message) == 1 &&
                     bytes == sizeof receipt->signature;
    EVP_MD_CTX_free(context);
    EVP_PKEY_free(key);
    ERR_clear_error();
    receipt->is_signed = is_signed;
    return is_signed ? SB_OK : sb_fail(error, SB_ERROR_INTERNAL, "the Ed25519 of libcrypto failed");
}

sb_status sb_llm_receipt_check_signature(const sb_llm_receipt *receipt, const char *key_path, bool *fits,
                                         sb_error *error) {
    unsigned char message[MESSAGE_BYTES];
    EVP_PKEY *key;
    SB_TRY(read_key(key_path, false, &key, error));
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    write_message(receipt, message);
    bool ready = context != NULL && EVP_DigestVerifyInit(context, NULL, NULL, NULL, key) == 1;
    *fits = ready && receipt->is_signed &&
            EVP_DigestVerify(context, receipt->signature, sizeof receipt->signature, message, sizeof message) == 1;
    EVP_MD_CTX_free(context);
    EVP_PKEY_free(key);
    ERR_clear_error();
    return ready ? SB_OK : sb_fail(error, SB_ERROR_INTERNAL, "the Ed25519 of libcrypto failed");
}
