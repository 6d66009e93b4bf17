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

// Swift does not import macros made of other macros.
static const int COPENSSL_PKEY_PUBLIC_KEY = EVP_PKEY_PUBLIC_KEY;
