/*
 * The filters that Postern is measured against, in C on libmilter, as lean as they can be.
 *
 * bench-filter SOCKET                   does nothing with anything
 * bench-filter SOCKET EDITS KEY.pem     makes the edits of a file to every message, whatever it says, and one RSA-SHA256 signature
 *
 * Both see exactly what Postern sees, and the same answers are negotiated away: what is measured is the work, not the protocol.
 * EDITS is a sequence of records, each of four texts ended by NUL: kind, number, name, value. Kinds: c changes a header field, x
 * deletes one, i inserts one, f is the new sender, d and a take recipients away and add them.
 */
#include <libmilter/mfapi.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sysexits.h>

struct edit { char kind; int number; char *name, *value; };

static struct edit *edits;
static size_t edit_count;
static EVP_PKEY *key;

static sfsistat connected(SMFICTX *c, char *n, _SOCK_ADDR *a) { (void)c, (void)n, (void)a; return SMFIS_NOREPLY; }
static sfsistat helo(SMFICTX *c, char *n) { (void)c, (void)n; return SMFIS_NOREPLY; }
static sfsistat sender(SMFICTX *c, char **v) { (void)c, (void)v; return SMFIS_NOREPLY; }
static sfsistat recipient(SMFICTX *c, char **v) { (void)c, (void)v; return SMFIS_CONTINUE; }
static sfsistat header(SMFICTX *c, char *n, char *v) { (void)c, (void)n, (void)v; return SMFIS_NOREPLY; }
static sfsistat end_of_header(SMFICTX *c) { (void)c; return SMFIS_NOREPLY; }
static sfsistat body(SMFICTX *c, unsigned char *b, size_t n) { (void)c, (void)b, (void)n; return SMFIS_NOREPLY; }

static int sign(void)
{
    static const unsigned char text[1024];
    unsigned char signature[512];
    size_t length = sizeof signature;
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    int done = context && EVP_DigestSignInit(context, NULL, EVP_sha256(), NULL, key) == 1
        && EVP_DigestSign(context, signature, &length, text, sizeof text) == 1;
    EVP_MD_CTX_free(context);
    return done;
}

static sfsistat end_of_message(SMFICTX *c)
{
    if (edit_count == 0) return SMFIS_CONTINUE;
    for (size_t i = 0; i < edit_count; i++) {
        struct edit *e = &edits[i];
        int status = MI_FAILURE;
        switch (e->kind) {
        case 'c': status = smfi_chgheader(c, e->name, e->number, e->value); break;
        case 'x': status = smfi_chgheader(c, e->name, e->number, NULL); break;
        case 'i': status = smfi_insheader(c, e->number, e->name, e->value); break;
        case 'f': status = smfi_chgfrom(c, e->value, NULL); break;
        case 'd': status = smfi_delrcpt(c, e->value); break;
        case 'a': status = smfi_addrcpt(c, e->value); break;
        }
        if (status != MI_SUCCESS) return SMFIS_TEMPFAIL;
    }
    return sign() ? SMFIS_CONTINUE : SMFIS_TEMPFAIL;
}

static sfsistat negotiate(SMFICTX *c, unsigned long offered, unsigned long steps, unsigned long r2, unsigned long r3,
    unsigned long *actions, unsigned long *wanted, unsigned long *w2, unsigned long *w3)
{
    (void)offered, (void)steps, (void)r2, (void)r3;
    *actions = edit_count ? SMFIF_ADDHDRS | SMFIF_CHGHDRS | SMFIF_CHGFROM | SMFIF_ADDRCPT | SMFIF_DELRCPT : 0;
    *actions |= SMFIF_SETSYMLIST;
    *wanted = SMFIP_HDR_LEADSPC | SMFIP_NR_CONN | SMFIP_NR_HELO | SMFIP_NR_MAIL | SMFIP_NODATA | SMFIP_NOUNKNOWN | SMFIP_NR_HDR
        | SMFIP_NR_EOH | SMFIP_NR_BODY;
    *w2 = *w3 = 0;
    smfi_setsymlist(c, SMFIM_CONNECT, "{daemon_name}");
    smfi_setsymlist(c, SMFIM_HELO, "");
    smfi_setsymlist(c, SMFIM_ENVFROM, "");
    smfi_setsymlist(c, SMFIM_ENVRCPT, "i");
    smfi_setsymlist(c, SMFIM_DATA, "");
    smfi_setsymlist(c, SMFIM_EOH, "i");
    smfi_setsymlist(c, SMFIM_EOM, "i");
    return SMFIS_CONTINUE;
}

static void fail(const char *what) { fprintf(stderr, "bench-filter: %s\n", what); exit(1); }

static void read_edits(const char *path)
{
    FILE *file = fopen(path, "rb");
    static char text[1 << 16];
    if (!file) fail("cannot open the edits");
    size_t length = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    edits = calloc(256, sizeof *edits);
    for (char *at = text, *end = text + length; at < end && edit_count < 256; edit_count++) {
        char *part[4];
        for (int i = 0; i < 4 && at < end; i++, at += strlen(at) + 1) part[i] = at;
        edits[edit_count] = (struct edit){ part[0][0], atoi(part[1]), part[2], part[3] };
    }
}

int main(int argc, char **argv)
{
    struct smfiDesc description = {
        .xxfi_name = "bench-filter", .xxfi_version = SMFI_VERSION,
        .xxfi_flags = SMFIF_ADDHDRS | SMFIF_CHGHDRS | SMFIF_CHGFROM | SMFIF_ADDRCPT | SMFIF_DELRCPT | SMFIF_SETSYMLIST,
        .xxfi_connect = connected, .xxfi_helo = helo, .xxfi_envfrom = sender, .xxfi_envrcpt = recipient, .xxfi_header = header,
        .xxfi_eoh = end_of_header, .xxfi_body = body, .xxfi_eom = end_of_message, .xxfi_negotiate = negotiate,
    };
    static const char usage[] = "usage: bench-filter SOCKET [EDITS KEY.pem]\n";
    if (argc == 2 && strcmp(argv[1], "--help") == 0) { fputs(usage, stdout); return 0; }
    if ((argc != 2 && argc != 4) || argv[1][0] == '-') { fputs(usage, stderr); return EX_USAGE; }
    if (argc == 4) {
        FILE *file = fopen(argv[3], "r");
        read_edits(argv[2]);
        key = file ? PEM_read_PrivateKey(file, NULL, NULL, NULL) : NULL;
        if (!key) fail("cannot read the key");
        fclose(file);
    }
    if (smfi_setconn(argv[1]) != MI_SUCCESS || smfi_register(description) != MI_SUCCESS) fail("cannot register");
    umask(0);
    smfi_setbacklog(1024);
    if (smfi_opensocket(1) != MI_SUCCESS) fail("cannot listen");
    puts("serving");
    fflush(stdout);
    return smfi_main();
}
