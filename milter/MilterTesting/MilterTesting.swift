// MilterTesting
