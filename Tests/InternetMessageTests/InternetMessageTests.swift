// InternetMessageTests
