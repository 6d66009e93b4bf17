// PosternTests
