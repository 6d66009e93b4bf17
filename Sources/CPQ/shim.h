// libpq for PosternPostgres.
#pragma once
#include <libpq-fe.h>
