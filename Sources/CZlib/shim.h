// zlib for LeakSearch. inflateInit2 is a macro, which Swift does not see.
#pragma once
#include <zlib.h>

/// Prepares a stream for deflate data without a header (RFC 1951).
static inline int inflateInitRaw(z_streamp stream) { return inflateInit2(stream, -MAX_WBITS); }
