// PosternSQLite
