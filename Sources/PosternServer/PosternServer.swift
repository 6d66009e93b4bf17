// PosternServer
