// PosternStore
