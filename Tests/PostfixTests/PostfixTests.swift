// PostfixTests
