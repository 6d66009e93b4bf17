// libcrypto for MailCrypto, its only importer.
#pragma once
#include <openssl/bn.h>
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/rsa.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

// Swift does not import macros made of other macros.
static const int COPENSSL_PKEY_PUBLIC_KEY = EVP_PKEY_PUBLIC_KEY;

// Stacks are made of macros.
static inline STACK_OF(X509) *COPENSSL_certificates_new(void) { return sk_X509_new_null(); }
static inline int COPENSSL_certificates_push(STACK_OF(X509) *stack, X509 *certificate) { return sk_X509_push(stack, certificate); }
static inline void COPENSSL_certificates_free(STACK_OF(X509) *stack) { sk_X509_free(stack); }
