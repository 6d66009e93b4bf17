// MilterTests
