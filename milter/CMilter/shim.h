// libmilter for Milter. smfi_setmlreply is variadic, which Swift cannot call.
#pragma once
#include <libmilter/mfapi.h>
#include <libmilter/mfdef.h>
