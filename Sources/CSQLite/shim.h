// libsqlite3 for PosternSQLite.
#pragma once
#include <sqlite3.h>
